"""Which event may make which pod schedulable: what the plugins of a profile have registered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any
from weakref import WeakSet

from attrs import define, field, frozen

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed, place_in_plugin
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.hooks.plugin_calls import call_events_to_register, call_hint
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.hooks.status_labels import ERROR
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.registry.profile import Profile
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
from trio_sched.plugin_api.custom_resources import CustomResource

EXTENDER_NAME = "Extender"
"""Stands among the plugins that rejected a pod if an extender filtered out nodes."""

_UNROLLED_WILDCARD = (
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
_right_methods: WeakSet[Callable[..., Any]] = WeakSet()
"""The functions of methods that were found to be callable as hints: to read a signature takes long."""


class QueueingStrategy(Enum):
    """Where a pod is moved that an event may have made schedulable."""

    SKIP = "stay"
    AFTER_BACKOFF = "to the backoff queue, or on if the backoff is over"
    IMMEDIATELY = "to the active queue"


IsRefused = Callable[[QueuedPodInfo, str, str], bool]
"""``is_refused(pod, plugin, node)``; see `trio_sched.engine.evaluation.node_refusal`."""


@frozen
class HintEntry:
    """A registration together with the plugin that made it."""

    plugin: str
    event: ClusterEvent
    hint: BoundHook | None
    """None if every event is worth an attempt."""
    is_never: bool = False
    """No event is worth an attempt: the registration only has pre_enqueue called again."""
    node_local: bool = False
    """See `EventRegistration`."""
    custom_resource: CustomResource[Any] | None = None
    """The custom resource of that `EventRegistration`, if it has one."""


@define(eq=False)
class HintTable:
    """The registrations of one profile; decides whether an event is worth another attempt."""

    entries: tuple[HintEntry, ...]
    plugin_failures: PluginFailures = field(factory=PluginFailures)
    is_refused: IsRefused | None = None
    """For registrations that are local to a node; without it their hints alone count."""
    measurements: Measurements = field(factory=Measurements)
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

    def queueing_strategy(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> QueueingStrategy:
        """Whether, after *event*, the pod that its plugins rejected is worth another attempt."""
        rejectors = info.rejectors
        if not rejectors:
            return QueueingStrategy.AFTER_BACKOFF
        if event.is_wildcard:
            if new is not None and not (isinstance(new, Pod) and new.uid == info.uid):
                return QueueingStrategy.SKIP
            return QueueingStrategy.AFTER_BACKOFF
        strategy = QueueingStrategy.SKIP
        for entry in self.matching(event):
            if entry.is_never or entry.plugin not in rejectors:
                continue
            if self._hint(entry, event, info.pod, old, new) == Hint.SKIP or self._is_refused_there(
                entry, info, old, new
            ):
                continue
            if entry.plugin in info.pending_plugins:
                return QueueingStrategy.IMMEDIATELY
            if not info.pending_plugins:
                return QueueingStrategy.AFTER_BACKOFF
            strategy = QueueingStrategy.AFTER_BACKOFF
        return strategy

    def rules_out(self, info: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any) -> bool:
        """Whether *event* is of no use to any pod with the signature, priority and rejectors of *info*.

        The pods that are nominated to the node of the event are another matter.
        """
        if self.is_refused is None or event.is_wildcard or not info.rejectors:
            return False
        return all(
            entry.is_never or self._is_refused_there(entry, info, old, new)
            for entry in self.matching(event)
            if entry.plugin in info.rejectors
        )

    def _is_refused_there(self, entry: HintEntry, info: QueuedPodInfo, old: Any, new: Any) -> bool:
        """Whether the plugin still refuses the pod on the node of a deleted pod, the only one that is different now."""
        if not entry.node_local or self.is_refused is None or new is not None or not isinstance(old, Pod):
            return False
        node_name = old.node_name or old.nominated_node_name
        return bool(node_name) and self.is_refused(info, entry.plugin, node_name)

    def _hint(self, entry: HintEntry, event: ClusterEvent, pod: Pod, old: Any, new: Any) -> Hint:
        if entry.hint is None:
            return Hint.QUEUE
        measured, label = self.measurements, ERROR
        began = measured.clock()
        try:
            hint = call_hint(entry.hint, pod, old, new)
            label = hint.value
            return hint
        except HookFailed as failed:  # an attempt too many does no harm, a pod that stays pending for ever does
            self.plugin_failures.add(failed, pod.key)
            return Hint.QUEUE
        finally:
            measured.observe_hint(entry.plugin, event.label, label, measured.clock() - began)


def build_hint_table(
    profile: Profile,
    *,
    extenders: bool = False,
    extra: Iterable[str] = (),
    plugin_failures: PluginFailures | None = None,
    is_refused: IsRefused | None = None,
    measurements: Measurements | None = None,
) -> HintTable:
    """Collect the registrations of all plugins that can reject pods.

    Args:
        profile: the profile.
        extenders: whether extenders are configured; pods that they reject move after any event.
        extra: resources that further features add to the default set.
        plugin_failures: gets the failures of hint functions.
        is_refused: see `HintTable`.
        measurements: gets the durations of hint functions.

    Raises:
        BadPlugin: an events_to_register failed, or a hint function is ``async``.
    """
    registering = {hook.plugin: hook for hook in profile.events_to_register}
    entries: list[HintEntry] = []
    for plugin in profile.plugins:
        if plugin not in profile.rejector_plugins:
            continue
        entries.extend(_entries_of(plugin, registering.get(plugin), extra))
    if extenders:
        entries.extend(_entries_of(EXTENDER_NAME, None, extra))
    failures = PluginFailures() if plugin_failures is None else plugin_failures
    return HintTable(tuple(entries), failures, is_refused, Measurements() if measurements is None else measurements)


def _entries_of(plugin: str, hook: BoundHook | None, extra: Iterable[str]) -> list[HintEntry]:
    registrations: Sequence[EventRegistration]
    if hook is None:
        registrations = [on(resource, Action.ALL) for resource in (*_UNROLLED_WILDCARD, *extra)]
    else:
        try:
            registrations = call_events_to_register(hook)
        except HookFailed as failed:  # without its events its pods would wait in vain
            problem = f"{failed.problem}{place_in_plugin(failed.__cause__)}"
            raise BadPlugin(plugin, hook.source, problem) from failed.__cause__
    entries = [
        HintEntry(
            plugin, r.event, _bound_hint(plugin, hook, r.hint), r.hint is Hint.SKIP, r.node_local, r.custom_resource
        )
        for r in registrations
    ]
    for registration in registrations:
        event = registration.event
        # Rule of kube-scheduler: Node/Add implies taint updates, because that is how a node may become ready.
        if (
            event.resource == Resource.NODE
            and event.action & Action.ADD
            and not event.action & Action.UPDATE_NODE_TAINT
        ):
            entries.append(HintEntry(plugin, ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), None))
    return entries


def _bound_hint(plugin: str, hook: BoundHook | None, hint: HintFunction | Hint | None) -> BoundHook | None:
    if hint is None or hint is Hint.QUEUE or hook is None:
        return None
    if isinstance(hint, Hint):
        return BoundHook(plugin, "hint", lambda _pod, _old, _new: Hint.SKIP, hook.source, hook.built_in)
    if inspect.iscoroutinefunction(hint):
        raise BadPlugin(
            plugin, hook.source, "a hint function is async, but hints return at once; write it as plain def"
        )
    if wrong := _wrong_signature(hint):
        raise BadPlugin(plugin, hook.source, wrong)
    return BoundHook(plugin, "hint", hint, hook.source, hook.built_in)


def _wrong_signature(hint: HintFunction) -> str:
    """Why *hint* cannot be called as hints are; empty if it can, or if that is not known."""
    method = hint.__func__ if inspect.ismethod(hint) else None
    if method in _right_methods:
        return ""
    try:
        signature = inspect.signature(hint)
    except (TypeError, ValueError):  # something that has none, or no function at all
        return ""
    try:
        signature.bind(None, None, None)
    except TypeError:
        name = getattr(hint, "__qualname__", repr(hint))
        taken = ", ".join(str(one.replace(annotation=one.empty)) for one in signature.parameters.values())
        return (
            f"the hint function {name}({taken}) cannot be called with the three arguments (pod, old, new): the pod "
            "that was rejected, and the object before and after its change"
        )
    if inspect.isfunction(method):
        _right_methods.add(method)
    return ""


def watched_resources(tables: Mapping[str, HintTable]) -> dict[str, Action]:
    """Resource → every action that a plugin has registered for."""
    watched: dict[str, Action] = {}
    for table in tables.values():
        for entry in table.entries:
            resource = entry.event.resource
            watched[resource] = watched.get(resource, Action(0)) | entry.event.action
    return watched
