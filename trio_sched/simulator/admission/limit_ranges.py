"""LimitRanges: the requests and limits that containers get, and those that are refused."""

from collections.abc import Iterable, Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import NANO, parse_nano
from trio_sched.objects.amounts.quantity_text import format_nano, style_of
from trio_sched.simulator.errors.status_errors import forbidden
from trio_sched.simulator.pods.containers import containers_of
from trio_sched.simulator.pods.pod_resources import pod_total
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType

_MARK: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = {"containers": "container", "initContainers": "init container"}


def _limits(state: ClusterState, fields: Json) -> list[Json]:
    """The limits of the namespace of an object."""
    namespace = fields["metadata"].get("namespace") or ""
    ranges = state.store.collection("limitranges").in_order(namespace)
    return [limit for stored in ranges for limit in stored.fields["spec"].get("limits") or ()]


def apply_defaults(state: ClusterState, fields: Json) -> None:
    """Give the containers of a new pod the requests and limits that they do not state."""
    limits = [limit for limit in _limits(state, fields) if limit.get("type") == "Container"]
    if not limits:
        return
    spec, notes = fields["spec"], []
    for name in _CONTAINERS:  # pods of one template share them, with and without a LimitRange
        if spec.get(name):
            spec[name] = [{**one, "resources": dict(one.get("resources") or {})} for one in spec[name]]
    for limit in limits:
        for container, kind in _named(spec):
            resources = container["resources"]
            for part, defaults in (("requests", limit.get("defaultRequest")), ("limits", limit.get("default"))):
                given = resources.get(part) or {}
                added = sorted((defaults or {}).keys() - given.keys())
                if added:
                    resources[part] = {**given, **{name: (defaults or {})[name] for name in added}}
                    notes.append(f"{', '.join(added)} {part[:-1]} for {kind} {container.get('name') or ''}")
    if notes:
        metadata = fields["metadata"]
        mark = f"LimitRanger plugin set: {'; '.join(notes)}"
        metadata["annotations"] = {**(metadata.get("annotations") or {}), _MARK: mark}


def _named(spec: Json) -> Iterator[tuple[Json, str]]:
    for name, kind in _CONTAINERS.items():
        for container in spec.get(name) or ():
            yield container, kind


def check_limits(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Refuse a new pod or claim that is not within the limits of its namespace.

    Raises:
        ApiError: 403.
    """
    problems = [text for limit in _limits(state, fields) for text in _problems(limit, resource, fields["spec"])]
    if problems:
        shown = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
        raise forbidden(resource, fields["metadata"].get("name") or "", shown)


def _problems(limit: Json, resource: ResourceType, spec: Json) -> Iterator[str]:
    kind = limit.get("type") or ""
    if resource.collection == "persistentvolumeclaims":
        if kind == "PersistentVolumeClaim":
            requests = (spec.get("resources") or {}).get("requests") or {}
            yield from _too_small(limit, kind, requests, {})
            yield from _too_large(limit, kind, requests, "request", requests)
    elif kind == "Container":
        for container in containers_of(spec):
            resources = container.get("resources") or {}
            yield from _of_pod(limit, kind, resources.get("requests") or {}, resources.get("limits") or {})
    elif kind == "Pod":
        totals = (
            {name: format_nano(amount, style_of("1Gi" if name == "memory" else "1")) for name, amount in total.items()}
            for total in (pod_total(spec, "requests"), pod_total(spec, "limits"))
        )
        yield from _of_pod(limit, kind, *totals)


def _of_pod(limit: Json, kind: str, requests: Json, limits: Json) -> Iterator[str]:
    yield from _too_small(limit, kind, requests, limits)
    yield from _too_large(limit, kind, limits, "limit", requests)
    for name, most in (limit.get("maxLimitRequestRatio") or {}).items():
        head = f"{name} max limit to request ratio per {kind} is {most}, but"
        request, ceiling = parse_nano(requests.get(name, 0)), parse_nano(limits.get(name, 0))
        if not request:
            yield f"{head} no request is specified or request is 0"
        elif not ceiling:
            yield f"{head} no limit is specified or limit is 0"
        elif ceiling * NANO > request * parse_nano(most):
            yield f"{head} provided ratio is {ceiling / request:f}"


def _too_small(limit: Json, kind: str, requests: Json, limits: Json) -> Iterator[str]:
    for name, least in (limit.get("min") or {}).items():
        head = f"minimum {name} usage per {kind} is {least}"
        if name not in requests:
            yield f"{head}.  No request is specified"
        elif parse_nano(requests[name]) < parse_nano(least):
            yield f"{head}, but request is {requests[name]}"
        elif name in limits and parse_nano(limits[name]) < parse_nano(least):
            yield f"{head}, but limit is {limits[name]}"


def _too_large(limit: Json, kind: str, stated: Json, what: str, requests: Json) -> Iterable[str]:
    for name, most in (limit.get("max") or {}).items():
        head = f"maximum {name} usage per {kind} is {most}"
        if name not in stated:
            yield f"{head}.  No {what} is specified"
        elif parse_nano(stated[name]) > parse_nano(most):
            yield f"{head}, but {what} is {stated[name]}"
        elif name in requests and parse_nano(requests[name]) > parse_nano(most):
            yield f"{head}, but request is {requests[name]}"
