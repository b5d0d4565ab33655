"""Which event may free which pod: what the plugins of a profile registered, ready to be asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from attrs import define, field, frozen

from trio_sched.engine.plugin_errors import BadPlugin
from trio_sched.engine.profile import Caller, Profile
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import (
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    HintFunction,
    Resource,
    on,
)

EXTENDER = "Extender"
"""The name under which pods are kept that only an extender turned away."""

_WATCHED_BY_DEFAULT = (
    Resource.POD,
    Resource.NODE,
    Resource.PERSISTENT_VOLUME,
    Resource.PERSISTENT_VOLUME_CLAIM,
    Resource.CSI_NODE,
    Resource.CSI_DRIVER,
    Resource.CSI_STORAGE_CAPACITY,
    Resource.STORAGE_CLASS,
    Resource.RESOURCE_CLAIM,
    Resource.DEVICE_CLASS,
)


class Strategy(Enum):
    """Where a pod goes that an event may have freed."""

    SKIP = "stay"
    AFTER_BACKOFF = "to the backoff queue, or on if the backoff is over"
    IMMEDIATELY = "to the active queue"


@frozen
class HintEntry:
    """A registration together with the plugin that made it."""

    plugin: str
    event: ClusterEvent
    hint: HintFunction | None


@define(eq=False)
class HintTable:
    """The registrations of one profile, and the question whether an event is worth another attempt."""

    entries: tuple[HintEntry, ...]
    hint_errors: list[tuple[str, str, BaseException]] = field(factory=list)
    """(plugin, pod, error) of hint functions that failed, for the daemon to log and clear."""
    _matching: dict[ClusterEvent, tuple[HintEntry, ...]] = field(factory=dict)

    def matching(self, event: ClusterEvent) -> tuple[HintEntry, ...]:
        """The registrations that *event* is an instance of."""
        found = self._matching.get(event)
        if found is None:
            found = tuple(entry for entry in self.entries if entry.event.matches(event))
            self._matching[event] = found
        return found

    def events_of(self, plugin: str) -> list[ClusterEvent]:
        """What *plugin* registered."""
        return [entry.event for entry in self.entries if entry.plugin == plugin]

    def worth_requeuing(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> Strategy:
        """Whether, after *event*, the pod that its plugins turned away is worth another attempt."""
        rejectors = info.rejectors
        if not rejectors:
            return Strategy.AFTER_BACKOFF
        if event.is_wildcard:
            if new is not None and not (isinstance(new, Pod) and new.uid == info.uid):
                return Strategy.SKIP
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        for entry in self.matching(event):
            if entry.plugin not in rejectors or self._ask(entry, info.pod, old, new) == Hint.SKIP:
                continue
            if entry.plugin in info.pending_plugins:
                return Strategy.IMMEDIATELY
            if not info.pending_plugins:
                return Strategy.AFTER_BACKOFF
            strategy = Strategy.AFTER_BACKOFF
        return strategy

    def _ask(self, entry: HintEntry, pod: Pod, old: Any, new: Any) -> Hint:
        if entry.hint is None:
            return Hint.QUEUE
        try:
            return entry.hint(pod, old, new)
        except Exception as exc:  # an attempt too many does no harm, a pod forgotten does
            self.hint_errors.append((entry.plugin, pod.key, exc))
            return Hint.QUEUE


def build_hint_table(profile: Profile, *, extenders: bool = False, extra: Iterable[str] = ()) -> HintTable:
    """Collect the registrations of all plugins that can turn pods away.

    Args:
        profile: the profile.
        extenders: whether extenders are configured; pods that they turn away come back after any event.
        extra: resources that further features add to the default set.

    Raises:
        BadPlugin: a plugin could not say what it waits for.
    """
    registering = {caller.plugin: caller for caller in profile.events}
    entries: list[HintEntry] = []
    for plugin in profile.plugins:
        if plugin not in profile.rejecting:
            continue
        try:
            entries.extend(_entries_of(plugin, registering.get(plugin), extra))
        except Exception as exc:  # somebody else's code; without its events its pods would wait in vain
            found = type(profile.plugins[plugin])
            source = f"class {found.__module__}.{found.__qualname__}"
            raise BadPlugin(plugin, source, f"events_to_register failed: {exc!r}") from exc
    if extenders:
        entries.extend(_entries_of(EXTENDER, None, extra))
    return HintTable(tuple(entries))


def _entries_of(plugin: str, caller: Caller | None, extra: Iterable[str]) -> list[HintEntry]:
    registrations: Sequence[EventRegistration]
    if caller is None:
        registrations = [on(resource, Action.ALL) for resource in (*_WATCHED_BY_DEFAULT, *extra)]
    else:
        registrations = list(caller.call())
    entries = [HintEntry(plugin, r.event, r.hint) for r in registrations]
    for registration in registrations:
        event = registration.event
        # Rule of old: who waits for new nodes also hears of taints, because a node may become ready that way.
        if (
            event.resource == Resource.NODE
            and event.action & Action.ADD
            and not event.action & Action.UPDATE_NODE_TAINT
        ):
            entries.append(HintEntry(plugin, ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), None))
    return entries


def watched_resources(tables: Mapping[str, HintTable]) -> dict[str, Action]:
    """Resource → every action that somebody waits for."""
    watched: dict[str, Action] = {}
    for table in tables.values():
        for entry in table.entries:
            resource = entry.event.resource
            watched[resource] = watched.get(resource, Action(0)) | entry.event.action
    return watched
