"""Runs one plugin, or a few, on a handful of nodes: what the scheduler would decide, and why.

Runs the plain evaluation of the engine, so the outcome is that of a cluster::

    outcome = schedule(pod(memory="4Gi"), on=[node("a", memory="2Gi"), node("b", memory="3Gi")], plugins=[MyPlugin])
    assert outcome.reasons == {"a": ["Insufficient memory"], "b": ["Insufficient memory"]}
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from random import Random
from typing import Any

from attrs import evolve, field, frozen

from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import ResolvedProfile, resolve_profiles
from trio_sched.config.schema import PluginRef
from trio_sched.daemon.watching.watched_kinds import wanted_kinds
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.host_selection import best_positions, select_host
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes, SchedulingCycle
from trio_sched.engine.evaluation.scoring import Scores
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_hint, call_status_hook
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.queue.queueing_hints import build_hint_table
from trio_sched.engine.registry.plugin_registry import points_of
from trio_sched.engine.registry.profile import Profile, build_profile
from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_resources
from trio_sched.plugin_api.cluster_events import ClusterEvent, Hint
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.handle import Handle
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import NodeStatuses
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.testing.fake_handle import FakeHandle
from trio_sched.testing.given_plugins import Plugin, name_of, registry_of, registry_with
from trio_sched.testing.hook_limit import HookLimit


class UnknownNode(TrioSchedError, LookupError):
    """A pod of a test is on a node that does not exist."""

    def __init__(self, pod: Pod, nodes: Iterable[str]) -> None:
        self.pod, self.nodes = pod, tuple(nodes)
        super().__init__(pod, self.nodes)

    def __str__(self) -> str:
        close = difflib.get_close_matches(self.pod.node_name, self.nodes, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        some = ", ".join(self.nodes[:10]) + (", …" if len(self.nodes) > 10 else "")
        known = f"The nodes are: {some}" if some else "There are no nodes"
        return f"pod {self.pod.key} is on node {self.pod.node_name!r}, but there is no such node{meant} {known}"


@frozen(eq=False, kw_only=True)
class Outcome:
    """The decision about a pod, and the results of the plugins."""

    node_name: str | None = None
    """The node that was chosen; None if the pod was not placed."""
    feasible: tuple[str, ...] = ()
    """Nodes that passed every filter."""
    best: tuple[str, ...] = ()
    """The nodes with the highest total; the scheduler chooses one of them at random."""
    statuses: Mapping[str, Status] = field(factory=dict)
    """Node name → why it was rejected."""
    raw_scores: Mapping[str, Mapping[str, int]] = field(factory=dict)
    """Plugin → node name → what ``score`` returned."""
    scores: Mapping[str, Mapping[str, int]] = field(factory=dict)
    """Plugin → node name → the score after ``normalize_score``, before the weight."""
    totals: Mapping[str, int] = field(factory=dict)
    """Node name → sum of weighted scores."""
    message: str = ""
    """The message of the pod's condition; empty if it was placed."""
    rejected_by: frozenset[str] = frozenset()
    """Plugins that rejected the pod; their events can queue it again."""
    error: Status | None = None
    """The status of a plugin that failed."""
    state: CycleState = field(factory=CycleState)
    """What plugins have written to the state of the cycle."""

    @property
    def reasons(self) -> dict[str, list[str]]:
        """Node name → reasons why it was rejected."""
        return {name: list(status.all_reasons) for name, status in self.statuses.items()}

    def assert_scheduled(self, *, on: str | Iterable[str] | None = None) -> str:
        """Assert that the pod was placed: *on* names the node, or those that are right; None allows any.

        Returns:
            The name of the node.

        Raises:
            AssertionError: it was not, or on another node; the text has the reasons and scores of all nodes.
        """
        allowed = None if on is None else [on] if isinstance(on, str) else list(on)
        if self.node_name is not None and (allowed is None or self.node_name in allowed):
            return self.node_name
        wanted = "a node" if allowed is None else f"node {' or '.join(map(repr, allowed))}"
        raise AssertionError(f"the pod should be on {wanted}, but {self._describe()}")

    def assert_rejected(self, node: str | None = None, *, reason: str | re.Pattern[str] = "", plugin: str = "") -> None:
        """Assert that a node was rejected for the pod; without *node*, that the pod fits nowhere.

        Args:
            node: the name of the node.
            reason: a part of one of the reasons, or of the message; or a compiled pattern that is found there.
            plugin: the plugin that has rejected it.

        Raises:
            AssertionError: that is not so; the text has the reasons and scores of all nodes.
        """
        if node is None:
            texts, plugins = [self.message], self.rejected_by
            what, is_rejected = "the pod", self.node_name is None
        else:
            status = self.statuses.get(node)
            texts = [] if status is None else list(status.all_reasons)
            plugins = frozenset() if status is None else frozenset({status.plugin})
            what, is_rejected = f"node {node!r}", status is not None
        found = [text for text in texts if (reason.search(text) if isinstance(reason, re.Pattern) else reason in text)]
        if is_rejected and (found or not reason) and (not plugin or plugin in plugins):
            return
        because = f" because of {reason.pattern if isinstance(reason, re.Pattern) else reason!r}" if reason else ""
        by = f" by {plugin}" if plugin else ""
        raise AssertionError(f"{what} should be rejected{by}{because}, but {self._describe()}")

    def _describe(self) -> str:
        lines = ["the pod was not placed" if self.node_name is None else f"the pod is on {self.node_name!r}"]
        if self.message:
            lines.append(self.message)
        if self.rejected_by:
            lines.append(f"rejected by: {', '.join(sorted(self.rejected_by))}")
        for name, status in self.statuses.items():
            lines.append(
                f"{name}: {', '.join(status.all_reasons) or status.code.label} ({status.plugin or 'no plugin'})"
            )
        for name in self.feasible:
            parts = {plugin: scores[name] for plugin, scores in self.scores.items() if name in scores}
            lines.append(f"{name}: passed, total score {self.totals.get(name, 0)} {parts or ''}".rstrip())
        return "\n  ".join(lines)


def schedule(
    pod: Pod,
    *,
    on: Iterable[Node],
    plugins: Iterable[Plugin] | None = None,
    pods: Iterable[Pod] = (),
    args: Mapping[str, Any] | None = None,
    weights: Mapping[str, int] | None = None,
    handle: FakeHandle | None = None,
    seed: int = 0,
    hook_seconds: float | None = None,
) -> Outcome:
    """Decide on *pod*. Unlike the scheduler, scores the nodes even if only one passed.

    Args:
        pod: the pod to schedule.
        on: the nodes.
        plugins: classes, instances that the test has made, or names of installed plugins, in order; None takes the
            default profile. An instance keeps the arguments and the handle that it was made with.
        pods: existing pods: pods on nodes, and pods nominated to one.
        args: ``pluginConfig`` by plugin name, as in the configuration file, or instances of ``Args``.
        weights: the weights of scores by plugin name.
        handle: what plugins get as their handle.
        seed: of the random choice among the best nodes.
        hook_seconds: how long one call of a hook may take, of real time, before it is interrupted: an endless loop
            would never end; None takes pytest's option ``plugin_hook_seconds``, or 20 s.

    Raises:
        PluginError: a plugin does not keep the contract.
        UnknownNode: one of *pods* is on a node that is not among *on*.
        HookNeverReturned: a call of a hook was interrupted.
    """
    handle = handle or FakeHandle()
    with _hook_limit(hook_seconds):
        profile = make_profile(plugins, args=args, weights=weights, handle=handle)
        others = list(pods)
        table = make_table(on, others)
        handle.nodes = NodeColumns(table)
        return _schedule(pod, profile, table, others, seed)


def _hook_limit(seconds: float | None) -> HookLimit:
    return HookLimit() if seconds is None else HookLimit(seconds)


def _schedule(pod: Pod, profile: Profile, table: NodeTable, others: list[Pod], seed: int) -> Outcome:
    state = CycleState()
    try:
        for hook in profile.pre_enqueue:
            status = call_status_hook(hook, pod)
            if status is not None:
                return Outcome(message=status.message, rejected_by=frozenset({hook.plugin}))
    except HookFailed as failed:
        return Outcome(message=str(failed), error=failed.status, rejected_by=frozenset({failed.hook.plugin}))
    cycle = SchedulingCycle(profile, table, pod, _nominated(pod, others, table), state)
    try:
        found = cycle.find_feasible()
        if isinstance(found, SchedulingFailure):
            return _unplaced(found, table, state)
        scores = cycle.prioritize(found.nodes)
        return _placed(found, scores, table, state, Random(seed))
    except HookFailed as failed:
        return Outcome(message=str(failed), error=failed.status, state=state)


def make_profile(
    plugins: Iterable[Plugin] | None = None,
    *,
    args: Mapping[str, Any] | None = None,
    weights: Mapping[str, int] | None = None,
    handle: Handle | None = None,
    percentage_of_nodes_to_score: int = 0,
) -> Profile:
    """A profile in which each of *plugins* is enabled at all points that it extends; see `schedule`.

    Raises:
        PluginError: a plugin does not keep the contract.
    """
    handle = handle or FakeHandle()
    if plugins is None:
        registry = registry_with([])
        (resolved,) = resolve_profiles(load_configuration(None), KNOWN_PLUGINS)
    else:
        chosen = list(plugins)
        registry = registry_of(chosen)
        points: dict[str, tuple[PluginRef, ...]] = {}
        names = [name_of(plugin) for plugin in chosen]
        for name in names:
            for point in points_of(registry.load(name)):
                points[point] = (*points.get(point, ()), PluginRef(name, 1))
        resolved = ResolvedProfile(
            name=handle.profile_name,
            points=points,
            arguments={},
            without_point=tuple(name for name in names if not points_of(registry.load(name))),
        )
    given = weights or {}
    scorers = tuple(PluginRef(ref.name, given.get(ref.name, ref.weight)) for ref in resolved.points.get("score", ()))
    resolved = evolve(
        resolved,
        name=handle.profile_name,
        percentage_of_nodes_to_score=percentage_of_nodes_to_score,
        points={**resolved.points, "score": scorers},
        arguments={**resolved.arguments, **(args or {})},
    )
    profile = build_profile(resolved, registry, handles_of(handle))
    if isinstance(handle, FakeHandle):
        with suppress(PluginError):  # whoever needs the events reports it
            handle.watched = (handle.watched or frozenset()) | _watched(profile)
    return profile


def _watched(profile: Profile) -> frozenset[Watched]:
    """The kinds and resources of events that the plugins watch.

    Raises:
        PluginError: they cannot say for which events they register.
    """
    return frozenset(wanted_kinds({profile.name: profile}, {profile.name: build_hint_table(profile)}))


def handles_of(handle: Handle) -> Callable[[str], Handle]:
    """Gives each plugin its own view of a `FakeHandle`, or any other handle as it is."""
    return handle.for_plugin if isinstance(handle, FakeHandle) else lambda _plugin: handle


def make_plugin(plugin: Plugin, args: Any = None, handle: Handle | None = None) -> Any:
    """An instance of *plugin*; its *args* are read like those of the configuration file.

    Raises:
        PluginError: it does not keep the contract, or *args* do not fit its ``Args``.
    """
    name = name_of(plugin)
    return make_profile([plugin], args=None if args is None else {name: args}, handle=handle).plugins[name]


def make_table(nodes: Iterable[Node], pods: Iterable[Pod] = ()) -> NodeTable:
    """The table of *nodes*, with those of *pods* that are on a node; ``NodeColumns(table)`` is what plugins see.

    Raises:
        UnknownNode: a pod is on a node that is not among *nodes*.
    """
    table = NodeTable()
    for node in nodes:
        table.add_node(node)
    for pod in pods:
        if pod.node_name:
            if pod.node_name not in table.row_of:
                raise UnknownNode(pod, table.names)
            table.add_pod(table.row_of[pod.node_name], PodInfo(pod, pod_resources(pod)))
    return table


def ask_hint(
    plugin: Plugin,
    event: ClusterEvent,
    pod: Pod,
    *,
    old: Any = None,
    new: Any = None,
    args: Any = None,
    handle: Handle | None = None,
    hook_seconds: float | None = None,
) -> Hint | None:
    """The hint of *plugin* when *event* happens after it rejected *pod*; None if it has not registered for the event.

    *hook_seconds* is that of `schedule`.

    Raises:
        PluginError: the plugin does not keep the contract.
        HookFailed: its hint function failed.
        HookNeverReturned: its hint function was interrupted.
    """
    with _hook_limit(hook_seconds):
        profile = make_profile([plugin], args=None if args is None else {name_of(plugin): args}, handle=handle)
        hints = [
            Hint.QUEUE if entry.hint is None else call_hint(entry.hint, pod, old, new)
            for entry in build_hint_table(profile).matching(event)
        ]
    if not hints:
        return None
    return Hint.QUEUE if Hint.QUEUE in hints else Hint.SKIP


def _nominated(pod: Pod, others: Iterable[Pod], table: NodeTable) -> dict[str, list[PodInfo]]:
    nominated: dict[str, list[PodInfo]] = {}
    for other in others:
        name = other.nominated_node_name
        if not other.node_name and name in table.row_of and other.uid != pod.uid and other.priority >= pod.priority:
            nominated.setdefault(name, []).append(PodInfo(other, pod_resources(other)))
    return nominated


def _statuses(statuses: NodeStatuses, names: Iterable[str]) -> dict[str, Status]:
    by_node = statuses.by_node()
    return {name: by_node.get(name, statuses.absent) for name in names}


def _unplaced(found: SchedulingFailure, table: NodeTable, state: CycleState) -> Outcome:
    if found.diagnosis is None:
        return Outcome(message=found.message, state=state)
    diagnosis = found.diagnosis
    return Outcome(
        statuses=_statuses(diagnosis.statuses, table.names),
        message=found.message,
        rejected_by=diagnosis.unschedulable_plugins | diagnosis.pending_plugins,
        state=state,
    )


def _placed(found: FeasibleNodes, scores: Scores, table: NodeTable, state: CycleState, rng: Random) -> Outcome:
    names = found.nodes.names

    def by_node(column: Int64Array) -> dict[str, int]:
        return dict(zip(names, column.tolist(), strict=True))

    return Outcome(
        node_name=names[select_host(scores.totals, rng)],
        feasible=tuple(names),
        best=tuple(names[position] for position in best_positions(scores.totals)),
        statuses=_statuses(found.statuses, [name for name in table.names if name not in names]),
        raw_scores={plugin: by_node(column) for plugin, column in scores.raw.items()},
        scores={plugin: by_node(column) for plugin, column in scores.normalized.items()},
        totals=by_node(scores.totals),
        state=state,
    )
