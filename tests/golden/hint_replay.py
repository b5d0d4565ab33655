"""Replays recorded queueing hints, registrations, and the splitting of updates into events."""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve
from comparison import Comparison, missing
from golden_objects import ACTIONS, event_of, object_of
from golden_profiles import REGISTRY, profiles_of

from trio_sched.engine.queue.cluster_changes import node_update_events, pod_update_events
from trio_sched.engine.queue.queueing_hints import HintTable, build_hint_table
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, ClusterEvent, Hint, Node

_ACTION_NAMES = {action: name for name, action in ACTIONS.items()}


def hint_rows(case: Mapping[str, Any]) -> Iterator[Comparison]:
    """What one line of the recording comes to; the row is the plugin, or ``derive``."""
    if "plugin" in case:
        rows = _compare_hint(case)
    elif "events" in case:
        rows = _compare_table(case)
    else:
        rows = iter(())
    for compared in (*rows, *_compare_derived(case)):
        yield evolve(compared, detail=f"{case['name']}: {compared.detail}")


def _table(case: Mapping[str, Any]) -> tuple[HintTable, Mapping[str, Any]]:
    objects: dict[str, list[Any]] = {}
    for recorded in case.get("objects") or ():
        objects.setdefault(recorded["kind"], []).append(object_of(recorded))
    profile = profiles_of(case, objects)["default-scheduler"]
    extenders = bool((case.get("config") or {}).get("extenders"))
    groups = (case.get("featureGates") or {}).get("GenericWorkload", False)
    extra = ["scheduling.k8s.io/PodGroup"] if groups else []
    return build_hint_table(profile, extenders=extenders, extra=extra), profile.plugins


def _compare_hint(case: Mapping[str, Any]) -> Iterator[Comparison]:
    plugin, expected = case["plugin"], case["expect"]
    if plugin not in REGISTRY:
        yield missing(plugin, "hint")
        return
    table, _plugins = _table(case)
    event = event_of(case["event"])
    pod, old, new = (object_of(case.get(key)) for key in ("pod", "old", "new"))
    hint: str | None = None
    failed = False
    for entry in table.matching(event):
        if entry.plugin != plugin:
            continue
        if entry.hint is None:
            hint = Hint.QUEUE.value
            continue
        try:
            hint = entry.hint.function(pod, old, new).value
        except Exception:
            hint, failed = Hint.QUEUE.value, True
    same_error = failed == (expected["error"] is not None)
    agreed = same_error and (failed or hint == expected["hint"])
    yield Comparison(plugin, agreed, f"hint: expected {expected}, got {hint} (failed: {failed})")


def _compare_table(case: Mapping[str, Any]) -> Iterator[Comparison]:
    table, plugins = _table(case)
    for plugin, events in case["events"].items():
        if plugin not in REGISTRY and plugin != "Extender":
            yield missing(plugin, "registrations")
            continue
        actual = sorted((event.resource, int(event.action)) for event in table.events_of(plugin))
        wanted = sorted((event["resource"], event["bits"]) for event in events)
        yield Comparison(plugin, actual == wanted, f"registrations: expected {wanted}, got {actual}")
    for plugin in plugins:
        if plugin not in case["events"]:
            yield Comparison(plugin, not table.events_of(plugin), "expected no registrations")


def _compare_derived(case: Mapping[str, Any]) -> Iterator[Comparison]:
    if "derivedEvents" not in case or "old" not in case or "new" not in case:
        return
    old, new = object_of(case["old"]), object_of(case["new"])
    if isinstance(new, Pod) and isinstance(old, Pod):
        events = pod_update_events(old, new)
    elif isinstance(new, Node) and isinstance(old, Node):
        gate = (case.get("featureGates") or {}).get("NodeDeclaredFeatures", True)
        events = node_update_events(old, new, declared_features=gate)
    else:
        return
    actual = [(event.resource, _names(event)) for event in events]
    wanted = [(event["resource"], sorted(event["actionType"])) for event in case["derivedEvents"]]
    yield Comparison("derive", actual == wanted, f"derived events: expected {wanted}, got {actual}")


def _names(event: ClusterEvent) -> list[str]:
    if event.action in (Action.UPDATE, Action.ALL):
        return [_ACTION_NAMES[event.action]]
    return sorted(name for action, name in _ACTION_NAMES.items() if action in event.action and action.bit_count() == 1)
