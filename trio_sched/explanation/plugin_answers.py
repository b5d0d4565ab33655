"""What every plugin says about a pod on every node, each asked by itself."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.hooks.bound_hooks import BoundHook, FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter, call_pre_filter, call_status_hook, explain
from trio_sched.engine.hooks.return_values import distinct_codes
from trio_sched.engine.registry.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status
from trio_sched.plugin_api.verdicts import PreFilterResult
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.node_columns import NodeColumns


@frozen(eq=False, kw_only=True)
class PluginAnswer:
    """What one plugin says at one extension point, whatever the others say; only of plugins that reject something."""

    plugin: str
    point: str
    """``PreEnqueue``, ``PreFilter`` or ``Filter``."""
    fails: BoolArray
    """Shape (nodes,)."""
    statuses: tuple[tuple[Status, Sequence[int]], ...]
    """Each status with the positions of the nodes that got it."""


@define(eq=False, kw_only=True)
class PluginAnswers:
    """What all plugins say, and the state that the pre_filters have left."""

    state: CycleState
    rejecting: list[PluginAnswer] = field(factory=list)


def ask_plugins(profile: Profile, pod: Pod, nodes: NodeColumns) -> PluginAnswers:
    """Ask pre_enqueue, pre_filter and filter of all plugins, also of those that others have made pointless.

    Args:
        profile: whose plugins are asked; one that fails rejects all nodes with its failure.
        pod: the pod.
        nodes: all nodes.
    """
    answers = PluginAnswers(state=CycleState())
    for hook in profile.pre_enqueue:
        status = _status_of(hook, pod)
        if status is not None:
            answers.rejecting.append(_everywhere(hook, "PreEnqueue", status, nodes))
    state, skipped, rejected = answers.state, set[str](), set[str]()
    for hook in profile.pre_filter:
        try:
            returned = call_pre_filter(hook, pod, nodes, state)
        except HookFailed as failed:
            returned = failed.status
        if isinstance(returned, PreFilterResult):
            if returned.node_names is not None:
                answers.rejecting += _left_out(hook, returned.node_names, nodes)
        elif returned is not None and returned.code == Code.SKIP:
            skipped.add(hook.plugin)
        elif returned is not None:
            rejected.add(hook.plugin)
            answers.rejecting.append(_everywhere(hook, "PreFilter", returned, nodes))
    state.skip_filter = frozenset(skipped)
    for hook in profile.filter:
        if hook.plugin not in skipped and hook.plugin not in rejected and len(nodes):
            answer = ask_filter(hook, pod, nodes, state)
            if answer.fails.any():
                answers.rejecting.append(answer)
    return answers


def ask_filter(hook: FilterHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> PluginAnswer:
    """What one filter says of each of *nodes*; on all of them its failure, if it fails."""
    grouped: dict[tuple[object, ...], tuple[Status, list[int]]] = {}

    def note(status: Status, positions: Sequence[int]) -> None:
        grouped.setdefault((status.code, status.all_reasons), (status, []))[1].extend(positions)

    fails = np.zeros(len(nodes), dtype=np.bool_)
    try:
        if hook.per_node:
            for position in range(len(nodes)):
                status = call_status_hook(hook, pod, nodes.node(position), state)
                if status is not None:
                    fails[position] = True
                    note(status, [position])
        else:
            verdicts = call_filter(hook, pod, nodes, state)
            fails = ~verdicts.passes
            for code in distinct_codes(verdicts.codes[fails]):
                note(explain(hook, verdicts, code), np.flatnonzero(verdicts.codes == code).tolist())
    except HookFailed as failed:
        return _everywhere(hook, "Filter", failed.status, nodes)
    return PluginAnswer(plugin=hook.plugin, point="Filter", fails=fails, statuses=tuple(grouped.values()))


def _status_of(hook: BoundHook, pod: Pod) -> Status | None:
    try:
        return call_status_hook(hook, pod)
    except HookFailed as failed:
        return failed.status


def _everywhere(hook: BoundHook, point: str, status: Status, nodes: NodeColumns) -> PluginAnswer:
    count = len(nodes)
    fails = np.ones(count, dtype=np.bool_)
    return PluginAnswer(plugin=hook.plugin, point=point, fails=fails, statuses=((status, range(count)),))


def _left_out(hook: BoundHook, names: frozenset[str], nodes: NodeColumns) -> list[PluginAnswer]:
    fails = np.array([name not in names for name in nodes.names], dtype=np.bool_)
    if not fails.any():
        return []
    status = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (f"node(s) didn't satisfy plugin {hook.plugin}",))
    statuses = ((status.by(hook.plugin), np.flatnonzero(fails).tolist()),)
    return [PluginAnswer(plugin=hook.plugin, point="PreFilter", fails=fails, statuses=statuses)]
