"""Clusters, changes and registrations in words, for the problems that are reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from trio_sched.plugin_api.cluster_events import Action, Resource
from trio_sched.plugin_api.custom_resources import CustomResource, as_json
from trio_sched.testing.conformance.cluster_state import NODE, RUNNING, WAITING, Change, ClusterState, Kind

_LONGEST: Final = 240
_CONSTANTS: Final = {value: f"Resource.{name}" for name, value in vars(Resource).items() if name.isupper()}
_OF_KIND: Final = {value.rpartition("/")[2]: constant for value, constant in _CONSTANTS.items()}
_RESOURCES: Final = {NODE: "Resource.NODE", RUNNING: "Resource.ASSIGNED_POD", WAITING: "Resource.TARGET_POD"}


def registration_for(change: Change, resources: Mapping[Kind, str]) -> str:
    """The call of ``on`` that registers for *change*."""
    actions = {event.action: None for event in change.events({change.kind: str(change.kind)})}
    if len(actions) > 1:
        actions.pop(Action.UPDATE, None)  # it is told of many more changes
    names = " | ".join(f"Action.{_name(action)}" for action in actions) or f"Action.{_name(change.action)}"
    known = None
    if isinstance(change.kind, str):
        known = _RESOURCES.get(change.kind) or _OF_KIND.get(change.kind)
    registered = change.kind if isinstance(change.kind, CustomResource) else resources.get(change.kind, change.kind)
    resource = known if known is not None else repr(registered)
    return f"on({resource}, {names})"


def _name(action: Action) -> str:
    return next(name for name, value in Action.__members__.items() if value == action)


def describe_change(change: Change) -> str:
    """What has changed, and from what to what."""
    one = change.old if change.new is None else change.new
    name = f"{change.kind} {one.metadata.name!r}"
    if change.new is None:
        return f"{name} is deleted"
    if change.old is None:
        return f"{name} is added: {_brief(one)}"
    return f"{name} changes: {'; '.join(differences(change.old, change.new))}"


def describe_cluster_state(cluster_state: ClusterState) -> Iterator[str]:
    """A line for each object."""
    for kind, objects in cluster_state.objects.items():
        for one in objects.values():
            where = f" on {one.spec.node_name!r}" if kind == RUNNING else ""
            yield f"{kind} {one.metadata.name!r}{where}: {_brief(one)}"


def differences(before: Any, after: Any) -> list[str]:
    """Every place in which two objects differ, with both values."""
    a, b = (one if isinstance(one, bytes) else as_json(one) for one in (before, after))
    return list(_differences("", msgspec.json.decode(a), msgspec.json.decode(b)))


def _differences(path: str, before: Any, after: Any) -> Iterable[str]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from _differences(f"{path}.{key}" if path else key, before.get(key), after.get(key))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            yield from _differences(f"{path}[{i}]", a, b)
    elif before != after:
        yield f"{path}: {_cut(before)} → {_cut(after)}"


def _cut(value: Any) -> str:
    text = "nothing" if value is None else msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _brief(one: Any) -> str:
    """An object without what seldom matters."""
    plain = msgspec.json.decode(as_json(one))
    metadata = plain.get("metadata") or {}
    spec = {key: part for key, part in (plain.get("spec") or {}).items() if key not in ("schedulerName", "nodeName")}
    if "containers" in spec:
        requests = [each["resources"]["requests"] for each in spec.pop("containers") if "resources" in each]
        if requests:
            spec["requests"] = requests
    status = {key: part for key, part in (plain.get("status") or {}).items() if key in ("allocatable", "conditions")}
    shown = {key: metadata[key] for key in ("labels", "annotations") if metadata.get(key)}
    return _cut({**shown, **({"spec": spec} if spec else {}), **({"status": status} if status else {})})
