"""The ``scale`` subresource: the number of replicas of a workload."""

from typing import Any

import msgspec

from trio_sched.documents.json_values import Json, encode
from trio_sched.go.text import shortened
from trio_sched.simulator.endpoints.messages import Request, Response
from trio_sched.simulator.endpoints.negotiation import accepted_form, mapping, read_body, read_object
from trio_sched.simulator.endpoints.patches.applying import note_update
from trio_sched.simulator.endpoints.writing import patch_type, patched
from trio_sched.simulator.errors.status_errors import bad_request, invalid
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.printers.table_cells import age, columns
from trio_sched.simulator.registry.lifecycle import change, require
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType, ScalePaths
from trio_sched.simulator.validation.meta.field_problems import bad_value

_PARTIAL = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
_SELECTOR = ("spec", "selector")
_BUILT_IN = ScalePaths(selector=_SELECTOR)


def scale_of(resource: ResourceType, stored: StoredObject) -> Json:
    """The Scale object of a workload."""
    fields, paths = stored.fields, resource.scale_paths or _BUILT_IN
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    metadata = fields["metadata"]
    status: Json = {"replicas": _number(fields, paths.actual, 0)}
    selector = at(fields, paths.selector) if paths.selector else ""
    if isinstance(selector, dict):
        labels = selector if resource.plural == "replicationcontrollers" else selector.get("matchLabels") or {}
        selector = ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
    if isinstance(selector, str) and selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: metadata[name] for name in kept if name in metadata},
        "spec": {"replicas": _number(fields, paths.wanted, 0 if resource.custom else 1)},
        "status": status,
    }


def _number(fields: Json, path: tuple[str, ...], default: int) -> int:
    found = at(fields, path)
    return found if isinstance(found, int) else default


def at(value: Any, path: tuple[str, ...]) -> Any:
    """What stands in *value* under *path*; ``None`` if nothing does."""
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def serve_scale(state: ClusterState, target: Target, request: Request) -> Response:
    """Read or write the number of replicas; the answer is a Scale.

    Raises:
        ApiError: 404 no such workload, 409 another version, 422 a number below zero.
    """
    resource = target.resource
    stored = require(state, resource, target.namespace, target.name)
    if target.verb == "get":
        return _answer(state, request, scale_of(resource, stored))
    content_type = request.headers.get("content-type", "")
    if target.verb == "patch":
        kind = patch_type(resource, content_type)
        wanted = patched(resource, target.name, scale_of(resource, stored), read_body(request.body, kind), kind)
    else:
        wanted = read_object(request.body, content_type)
    replicas = mapping(wanted, "spec").get("replicas", 0)
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        raise bad_request(f"spec.replicas must be a whole number, not {shortened(repr(replicas))}")
    if replicas < 0:
        problem = bad_value("spec.replicas", replicas, "must be greater than or equal to 0")
        raise invalid(resource, target.name, [problem])
    fields: Json = msgspec.json.decode(b"{" + stored.tail)
    _set(fields, (resource.scale_paths or _BUILT_IN).wanted, replicas)
    version = mapping(wanted, "metadata").get("resourceVersion")
    fields["metadata"]["resourceVersion"] = version or str(stored.version)
    note_update(state, target, stored, fields, request, "scale")
    changed = change(state, resource, stored, fields, dry_run=request.dry_run)
    return _answer(state, request, scale_of(resource, changed))


def _answer(state: ClusterState, request: Request, scale: Json) -> Response:
    """*scale*, or the table of it that kubectl prints."""
    if accepted_form(request.headers.get("accept", "")).form != "table":
        return Response(200, encode(scale))
    metadata = scale["metadata"]
    cells = [metadata["name"], scale["spec"]["replicas"], scale["status"]["replicas"], age(scale, state.now())]
    table = {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": metadata.get("resourceVersion", "")},
        "columnDefinitions": columns("Name", "Desired", "Available", "Age"),
        "rows": [{"cells": cells, "object": {**_PARTIAL, "metadata": metadata}}],
    }
    return Response(200, encode(table))


def _set(fields: Json, path: tuple[str, ...], value: int) -> None:
    for step in path[:-1]:
        inner = fields.get(step)
        if not isinstance(inner, dict):
            inner = fields[step] = {}
        fields = inner
    fields[path[-1]] = value
