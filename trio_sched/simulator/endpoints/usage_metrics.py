"""The metrics API, for ``kubectl top``: pods are pretended to use what they request.

Annotations of a pod, ``trio-sched.dev/usage-cpu`` and ``trio-sched.dev/usage-memory``, say otherwise.
"""

from __future__ import annotations

from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, QuantityError, parse_nano
from trio_sched.simulator.endpoints.messages import Request, Response
from trio_sched.simulator.endpoints.reading import predicate_of
from trio_sched.simulator.errors.status_errors import method_not_allowed
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.registry.lifecycle import require
from trio_sched.simulator.storage.cluster_state import ClusterState

USAGE: Final = "trio-sched.dev/usage-"
"""Beginning of an annotation of pods: what they use of ``cpu`` or ``memory``, in place of what they request."""
_WINDOW: Final = "30s"


def serve_metrics(state: ClusterState, target: Target, request: Request) -> Response:
    """Show what pods or nodes use.

    Raises:
        ApiError: 404 no such pod or node, 405 it is no reading request.
    """
    if target.verb not in ("get", "list") or request.flag("watch"):
        raise method_not_allowed(target.resource)
    plain = state.types.core(target.resource.plural)
    show = _pod_metrics if plain.plural == "pods" else _node_metrics
    if target.verb == "get":
        stored = require(state, plain, target.namespace, target.name)
        shown = {"kind": target.resource.kind, "apiVersion": target.resource.api_version}
        return Response(200, msgspec.json.encode({**shown, **show(state, stored.fields)}))
    predicate = predicate_of(plain, request)
    found = state.store.collection(plain.collection).in_order(target.namespace)
    chosen = [one.fields for one in found if predicate is None or predicate(one.fields)]
    if plain.plural == "pods":
        chosen = [fields for fields in chosen if _is_running(fields)]
    answer = {
        "kind": f"{target.resource.kind}List",
        "apiVersion": target.resource.api_version,
        "metadata": {},
        "items": [show(state, fields) for fields in chosen],
    }
    return Response(200, msgspec.json.encode(answer))


def _is_running(fields: Json) -> bool:
    return (fields.get("status") or {}).get("phase") == "Running"


def _shown_metadata(state: ClusterState, fields: Json) -> Json:
    kept = ("name", "namespace", "labels")
    metadata = {name: fields["metadata"][name] for name in kept if name in fields["metadata"]}
    return {
        "metadata": {**metadata, "creationTimestamp": state.timestamp()},
        "timestamp": state.timestamp(),
        "window": _WINDOW,
    }


def _pod_metrics(state: ClusterState, fields: Json) -> Json:
    containers = [
        {"name": container["name"], "usage": _written(_container_usage(container))}
        for container in fields["spec"].get("containers") or ()
    ]
    annotations = fields["metadata"].get("annotations") or {}
    for name in ("cpu", "memory"):
        given = annotations.get(f"{USAGE}{name}")
        if given is not None and containers:
            # As a whole, in the first container.
            for container in containers:
                container["usage"][name] = "0"
            containers[0]["usage"][name] = given if _is_quantity(given) else "0"
    return {**_shown_metadata(state, fields), "containers": containers}


def _is_quantity(text: str) -> bool:
    try:
        parse_nano(text)
    except QuantityError:
        return False
    return True


def _container_usage(container: Json) -> dict[str, int]:
    requests = (container.get("resources") or {}).get("requests") or {}
    return {name: parse_nano(requests.get(name, 0)) for name in ("cpu", "memory")}


def _written(usage: dict[str, int]) -> Json:
    return {"cpu": f"{usage['cpu']}n", "memory": f"{usage['memory'] // NANO // 1024}Ki"}


def _node_metrics(state: ClusterState, fields: Json) -> Json:
    name = fields["metadata"]["name"]
    total = {"cpu": 0, "memory": 0}
    for stored in state.store.collection("pods").objects.values():
        if stored.fields["spec"].get("nodeName") == name and _is_running(stored.fields):
            for container in _pod_metrics(state, stored.fields)["containers"]:
                for resource in total:
                    total[resource] += parse_nano(container["usage"][resource])
    return {**_shown_metadata(state, fields), "usage": _written(total)}
