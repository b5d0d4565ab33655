"""Whether a plugin goes on refusing a node from which a pod was deleted: then no attempt is worth its while."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from attrs import define, field

from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.engine.hooks.bound_hooks import FilterHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_filter, call_pre_filter
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.registry.profile import Profile
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.what_if import WhatIf

_MAX_KEPT = 32
"""A signature can hold a megabyte, and what is kept serves one event, or the next few."""


@define(eq=False)
class NodeRefusals:
    """Keeps what was found out about pods that the plugin cannot tell apart, until the node or its pods change."""

    table: NodeTable
    _kept: dict[Hashable, tuple[tuple[int, int, Sequence[PodInfo]], bool]] = field(factory=dict, init=False)

    def clear(self) -> None:
        """Start over."""
        self._kept.clear()

    def is_refused(
        self, profile: Profile, plugin: str, info: QueuedPodInfo, node_name: str, nominated: NominatedPods
    ) -> bool:
        """See `is_refused_on_node`."""
        pod, row = info.pod, self.table.row_of.get(node_name)
        if row is None:
            return False
        part = None if info.signature is None else profile.part_of_signature(plugin, info.signature)
        if part is None:
            return is_refused_on_node(profile, plugin, pod, self.table, node_name, nominated)
        views = self.table.views
        beside = nominated.get(node_name, ())
        version = (int(views.pods_generation[row]), int(views.node_generation[row]), beside)
        key = (profile.name, plugin, node_name, pod.priority, pod.spec.preemption_policy, info.signature_epoch, part)
        try:
            known = self._kept.get(key)
        except (
            BaseException
        ) as error:  # the parts of a signature are objects of plugins, whose __hash__ can raise anything
            raise_interrupt(error)
            return is_refused_on_node(profile, plugin, pod, self.table, node_name, nominated)
        if known is not None and known[0][:2] == version[:2] and known[0][2] is beside:
            return known[1]
        refused = is_refused_on_node(profile, plugin, pod, self.table, node_name, nominated)
        if len(self._kept) >= _MAX_KEPT:
            self._kept.clear()
        self._kept[key] = version, refused
        return refused


def is_refused_on_node(
    profile: Profile, plugin: str, pod: Pod, table: NodeTable, node_name: str, nominated: NominatedPods
) -> bool:
    """Whether the filter of *plugin* fails for *pod* on a node, even if the pod preempted all that it may.

    Args:
        profile: the profile of the pod.
        plugin: its filter judges a node by what is on it.
        pod: the pod that it rejected.
        table: the cluster.
        node_name: the node.
        nominated: nominated pods of equal or higher priority, by node; their room counts as taken.

    Returns:
        False also if it is unknown.
    """
    hook = next((hook for hook in profile.filter if hook.plugin == plugin and not hook.per_node), None)
    row = table.row_of.get(node_name)
    if hook is None or row is None:
        return False
    columns, state = NodeColumns(table), CycleState()
    beside = nominated.get(node_name, ())
    can_preempt = bool(profile.post_filter) and pod.spec.preemption_policy != "Never"
    try:
        for pre_filter in profile.pre_filter:
            if pre_filter.plugin == plugin and call_pre_filter(pre_filter, pod, columns, state) is not None:
                return False
        less_important = [
            pod_info.pod.uid
            for pod_info in table.pods[row].values()
            if can_preempt and pod_info.pod.priority < pod.priority
        ]
        if not beside and not less_important:
            return _fails(hook, pod, columns.take(slice(row, row + 1)), state)
        what_if = WhatIf(table, [row])
        for uid in less_important:
            what_if.remove_pod(node_name, uid)
        for pod_info in beside:
            what_if.add_pod(node_name, pod_info)
        return _fails(hook, pod, what_if.nodes, state)
    except HookFailed:
        return False


def _fails(hook: FilterHook, pod: Pod, nodes: NodeColumns, state: CycleState) -> bool:
    return not call_filter(hook, pod, nodes, state).passes[0]
