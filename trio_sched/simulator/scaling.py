"""The ``scale`` subresource: the number of replicas of a workload."""

from typing import Any

import msgspec

from trio_sched.simulator.cluster_state import ClusterState
from trio_sched.simulator.lifecycle import change, require
from trio_sched.simulator.messages import Request, Response
from trio_sched.simulator.negotiation import media_type, read_object
from trio_sched.simulator.object_store import StoredObject
from trio_sched.simulator.status_errors import bad_value, invalid
from trio_sched.simulator.targets import Target
from trio_sched.simulator.writing import patched

Json = dict[str, Any]

_encode = msgspec.json.Encoder().encode


def scale_of(stored: StoredObject) -> Json:
    """The Scale object of a workload."""
    fields = stored.fields
    metadata, spec = fields["metadata"], fields.get("spec") or {}
    selector = (spec.get("selector") or {}).get("matchLabels") or {}
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": spec.get("replicas", 1)},
        "status": {
            "replicas": (fields.get("status") or {}).get("replicas", 0),
            "selector": ",".join(f"{key}={value}" for key, value in sorted(selector.items())),
        },
    }


def serve_scale(state: ClusterState, target: Target, request: Request) -> Response:
    """Read or write the number of replicas; the answer is a Scale.

    Raises:
        ApiError: 404 no such workload, 409 another version, 422 a number below zero.
    """
    stored = require(state, target.resource, target.namespace, target.name)
    if target.verb == "get":
        return Response(200, _encode(scale_of(stored)))
    content_type = request.headers.get("content-type", "")
    wanted = read_object(request.body, content_type)
    if target.verb == "patch":
        wanted = patched(target.resource, target.name, scale_of(stored), wanted, media_type(content_type))
    replicas = (wanted.get("spec") or {}).get("replicas", 0)
    if not isinstance(replicas, int) or replicas < 0:
        problem = bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(target.resource, target.name, [problem])
    fields: Json = msgspec.json.decode(b"{" + stored.tail)
    fields["spec"]["replicas"] = replicas
    version = (wanted.get("metadata") or {}).get("resourceVersion")
    fields["metadata"]["resourceVersion"] = version or str(stored.version)
    changed = change(state, target.resource, stored, fields, dry_run=request.dry_run)
    return Response(200, _encode(scale_of(changed)))
