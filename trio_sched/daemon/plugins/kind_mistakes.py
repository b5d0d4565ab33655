"""What plugins declare about kinds of objects and cannot mean, and what they write without declaring it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from trio_sched.daemon.watching.watched_kinds import KINDS, WATCHED_ANYWAY, kind_of
from trio_sched.errors import nearest_name
from trio_sched.plugin_api.cluster_events import PODS, Action, ClusterEvent, Resource
from trio_sched.plugin_api.custom_resources import CustomResource, Watched

_NAMES: Final = (*KINDS, *WATCHED_ANYWAY)
_FINE: Final = [action for action in Action if action.name is not None and action.name.startswith("UPDATE_")]


def kind_mistakes(plugin: Any, events: Iterable[ClusterEvent]) -> Iterator[str]:
    """Sentences about kinds that do not exist, and events that never happen; each with the fix.

    Args:
        plugin: the instance.
        events: what it has registered for.
    """
    for attribute in ("watches", "writes"):
        for kind in getattr(plugin, attribute, None) or ():
            name = kind if attribute == "watches" or isinstance(kind, CustomResource) else str(kind).partition("/")[0]
            if not _exists(name):
                yield f"its {attribute} name {name!r}, {_no_kind(name, _NAMES)}"
    for event in events:
        if not _is_resource(event.resource):
            known = (*PODS, Resource.NODE, *_NAMES)
            yield f"events_to_register names {event.resource!r}, {_no_kind(event.resource, known)}"
        elif never := _impossible(event):
            updates = " and ".join(f"Action.{action.name}" for action in never)
            yield f"events_to_register names {updates} of {event.resource}, which never happens; take it out"


def declared_writes(plugin: Any) -> frozenset[tuple[str, str]]:
    """The pairs (kind, or kind/subresource; verb) in the ``writes`` of a plugin."""
    writes = getattr(plugin, "writes", None) or {}
    return frozenset((str(kind), verb) for kind, verbs in writes.items() for verb in verbs)


def write_key(kind: Watched, subresource: str = "") -> str:
    """How *kind* is named in ``writes``."""
    return f"{kind}/{subresource}" if subresource else str(kind)


def undeclared_write(written: str, verb: str) -> str:
    """The sentence about a write that the plugin does not declare."""
    return (
        f"it may not {verb} {written} in a cluster, because its writes do not say so, from which `trio-sched rbac` "
        f'makes the roles; add "{written}": ("{verb}",) to them'
    )


def _exists(kind: Watched) -> bool:
    return kind_of(kind) is not None or kind in WATCHED_ANYWAY


def _is_resource(resource: str) -> bool:
    return resource in (*PODS, Resource.WILDCARD) or _exists(resource)


def _no_kind(name: Watched, known: Iterable[str]) -> str:
    close = nearest_name(str(name), known)
    fix = f"did you mean {close!r}?" if close else "declare it with CustomResource, and use that here"
    return f"which is no kind that trio-sched knows; {fix}"


def _impossible(event: ClusterEvent) -> list[Action]:
    """The updates in *event* that objects of its kind do not have; none if it names all updates."""
    if event.resource == Resource.WILDCARD or Action.UPDATE in event.action:
        return []
    about = "UPDATE_POD_" if event.resource in PODS else "UPDATE_NODE_" if event.resource == Resource.NODE else "-"
    return [action for action in _FINE if action in event.action and not str(action.name).startswith(about)]
