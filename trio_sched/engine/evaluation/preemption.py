"""Dry runs of preemption: on which nodes a pod would fit if pods of lower priority were gone, and which of them.

Many nodes are tried at once, on a what-if copy of their columns: first with every pod of lower priority removed, then
reprieving one after the other: those that a disruption budget protects first, then by importance. Plugins whose
result for a node depends on pods elsewhere (those with add_pod and remove_pod) get a cycle state per node. They alone
see that the pods of a group, which leave together, are gone from other nodes, too.

Source: preemption of kube-scheduler 1.36 and 1.37 (what is a victim, in what order they are reprieved, budgets).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial

from attrs import define, field

from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.engine.evaluation.group_victims import GroupVictims
from trio_sched.engine.evaluation.node_result_cache import NodeResultCache
from trio_sched.engine.evaluation.what_if_filters import WhatIfFilters, WhatIfNode
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import clone_state
from trio_sched.engine.registry.profile import Profile
from trio_sched.go.text import quote
from trio_sched.interrupts import raise_interrupt
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import (
    BudgetsByNamespace,
    DryRun,
    PdbAllowance,
    Victims,
    started_at,
)
from trio_sched.plugin_api.status import Code, Status, unresolvable
from trio_sched.plugin_api.verdicts import Domain, Input
from trio_sched.snapshot.node_columns import NodeColumns, NodeView
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.what_if import WhatIf

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_SMALLEST_CHUNK = 64
MAX_DRY_RUNS = 8
"""Signatures and priorities whose outcomes are kept; each can have one for every node."""


Evictable = Callable[[NodeView], Iterable[Pod]]
"""The pods on a node that may be evicted."""


def dry_run(
    profile: Profile,
    table: NodeTable,
    pod: Pod,
    state: CycleState,
    nominated: NominatedPods,
    node_names: Sequence[str],
    *,
    budgets: BudgetsByNamespace,
    num_candidates: int,
    kept: KeptOutcomes | None = None,
    evictable: Evictable | None = None,
    groups: GroupVictims | None = None,
) -> DryRun:
    """Try *node_names* in order until there are enough candidates.

    Args:
        profile: whose filters decide.
        table: the cluster; it is not changed.
        pod: the one to make room for.
        state: what the pre_filters of its cycle have left.
        nominated: nominated pods of equal or higher priority, by node.
        node_names: the nodes worth trying.
        budgets: how many pods may be disrupted.
        num_candidates: candidates to stop at, once one of them violates no budget.
        kept: what was found out for pods of the same signature and priority.
        evictable: which pods may be victims; by default those of lower priority.
        groups: by default, what is evicted together, and its priority; if not given every pod is evicted by itself.
    """
    non_violating: dict[str, Victims] = {}
    violating: dict[str, Victims] = {}
    statuses: dict[str, Status] = {}
    error: Status | None = None
    rows = [table.row_of[name] for name in node_names if name in table.row_of]
    chunk = max(num_candidates, _SMALLEST_CHUNK)
    filters = WhatIfFilters(profile, pod, state)
    search = partial(_Search, filters, table, nominated, budgets, evictable, groups)
    for start in range(0, len(rows), chunk):
        for name, outcome in _outcomes(search, table, rows[start : start + chunk], nominated, kept, groups):
            if isinstance(outcome, Victims):
                found = violating if outcome.pdb_violations else non_violating
                if len(found) < num_candidates:
                    found[name] = outcome
                if non_violating and len(non_violating) + len(violating) >= num_candidates:
                    return DryRun({**non_violating, **violating}, statuses, error)
            elif outcome.code == Code.ERROR:
                error = error or outcome
            else:
                statuses[name] = outcome
    return DryRun({**non_violating, **violating}, statuses, error)


def _outcomes(
    search: Callable[[WhatIf], _Search],
    table: NodeTable,
    rows: Sequence[int],
    nominated: NominatedPods,
    kept: KeptOutcomes | None,
    groups: GroupVictims | None,
) -> Iterator[tuple[str, Victims | Status]]:
    """Each of the nodes with its victims, or with the reason why it is no use."""
    if kept is None:
        yield from search(WhatIf(table, rows)).outcomes()
        return
    # What is evicted of a group depends on other nodes, and on the group, so that nothing is kept where it has pods.
    with_groups = {} if groups is None else {row: None for row in rows if _has_grouped_pods(table, row)}
    keeping = [row for row in rows if row not in with_groups] if with_groups else rows
    missing = kept.missing(table, keeping, table.views.pod_objects_generation, nominated, most=table.count)
    fresh: dict[str, Victims | Status] = {}
    if missing or with_groups:
        tried = [*missing, *with_groups]
        for row, (name, outcome) in zip(tried, search(WhatIf(table, tried)).outcomes(), strict=True):
            fresh[name] = outcome
            if row in missing and (isinstance(outcome, Victims) or outcome.code != Code.ERROR):
                kept.keep(name, missing[row], outcome)
    for row in rows:
        name = table.names[row]
        yield name, fresh[name] if name in fresh else kept.value(name)


def _has_grouped_pods(table: NodeTable, row: int) -> bool:
    return any(pod_info.pod.spec.scheduling_group is not None for pod_info in table.pods[row].values())


class KeptOutcomes(NodeResultCache[Victims | Status]):
    """What dry runs for pods of one signature and priority have found out."""

    __slots__ = ("budgets",)

    def __init__(self, budgets: BudgetsByNamespace) -> None:
        super().__init__()
        self.budgets = budgets
        """Those that all outcomes are for."""


class DryRunCache:
    """The outcomes of dry runs by profile, signature and priority, for those that were used last."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, KeptOutcomes] = OrderedDict()

    def of(
        self, profile: str, signature: tuple[Hashable, ...], priority: int, budgets: BudgetsByNamespace
    ) -> KeptOutcomes:
        """The outcomes with these *budgets*; none if the former ones were for others."""
        key = (profile, signature, priority)
        try:
            kept = self._kept.pop(key, None)
        except (
            BaseException
        ) as error:  # the parts of a signature are objects of plugins, whose __eq__ can raise anything
            raise_interrupt(error)
            self._kept.clear()
            kept = None
        if kept is None or kept.budgets is not budgets:
            kept = KeptOutcomes(budgets)
        self._kept[key] = kept
        if len(self._kept) > MAX_DRY_RUNS:
            self._kept.popitem(last=False)
        return kept

    def clear(self) -> None:
        """Start over."""
        self._kept.clear()


def is_judged_by_signature(profile: Profile, signature: tuple[Hashable, ...], state: CycleState) -> bool:
    """Whether the filters judge a node from the signature and from what is on it.

    Args:
        profile: whose filters.
        signature: of a pod.
        state: what the pre_filters of its cycle have left.
    """
    cached, skipped = profile.cached_plugins(signature), state.skip_filter
    if not (profile.add_pod.keys() <= skipped and profile.remove_pod.keys() <= skipped):
        return False
    active = [hook.plugin for hook in profile.filter if hook.plugin not in skipped]
    return all(plugin in cached and not _sees_others(profile.depends_on[plugin]) for plugin in active)


def _sees_others(depends_on: frozenset[Input | Domain]) -> bool:
    return Input.ALL_NODES in depends_on or any(isinstance(one, Domain) for one in depends_on)


@define(eq=False)
class _Removed:
    """Pods that are assumed to be evicted, and may be reprieved together: of a group, or a single one."""

    pods: Sequence[Pod]
    importance: tuple[object, ...]
    """Sorts the most important first."""
    here: Sequence[PodInfo]
    """Those on the node in question."""
    elsewhere: Sequence[tuple[Pod, NodeView]] = ()
    """Those on other nodes, with these."""
    violations: int = 0
    """How many of the pods violate a budget if they are evicted."""


@define(eq=False)
class _Node(WhatIfNode):
    """One node of a search."""

    removed: list[_Removed] = field(factory=list)
    """What may be reprieved, in the order in which that is tried."""
    victims: list[_Removed] = field(factory=list)


@define(eq=False)
class _Search:
    """Looks for victims on some nodes, on all of them together."""

    filters: WhatIfFilters
    table: NodeTable
    nominated: NominatedPods
    budgets: BudgetsByNamespace
    evictable: Evictable | None
    groups: GroupVictims | None
    what_if: WhatIf

    def outcomes(self) -> Iterator[tuple[str, Victims | Status]]:
        """Each node with its victims, or with the reason why it is no use."""
        nodes = [_Node(position, name) for position, name in enumerate(self.what_if.nodes.names)]
        for node in nodes:
            self.filters.catch_failure(node, partial(self._remove_evictable, node))
        self._run_filters([node for node in nodes if node.status is None])
        self._reprieve([node for node in nodes if node.status is None])
        for node in nodes:
            if node.status is not None:
                yield node.name, node.status
            elif not node.victims:
                text = f"expected at least one victim pod on node {quote(node.name)}"
                yield node.name, Status(Code.ERROR, (), RuntimeError(text))
            else:
                node.victims.sort(key=lambda removed: removed.importance)
                pods = tuple([pod for removed in node.victims for pod in removed.pods])
                yield node.name, Victims(pods, sum([removed.violations for removed in node.victims]))

    def _remove_evictable(self, node: _Node) -> None:
        """Remove everything that may be evicted."""
        potential = self._evictable(node) if self.groups is None else self._evictable_units(node, self.groups)
        if not potential:
            node.status = NO_VICTIMS
            return
        if self.filters.plugins_with_extensions:
            node.state = clone_state(self.filters.state)
        potential.sort(key=lambda removed: removed.importance)
        allowance = PdbAllowance(self.budgets)
        violates = allowance.count_victim if self.groups is None else allowance.count_in_unit
        for removed in potential:
            self._remove(node, removed)
            removed.violations = sum(map(violates, removed.pods))
        node.removed = [one for one in potential if one.violations] + [one for one in potential if not one.violations]

    def _evictable(self, node: _Node) -> list[_Removed]:
        """The pods that may be evicted, each by itself and by its own priority."""
        on_node, priority = self.what_if.pods_on(node.name), self.filters.pod.priority
        if self.evictable is None:
            potential = [pod_info for pod_info in on_node if pod_info.pod.priority < priority]
        else:
            uids = {pod.uid for pod in self.evictable(self.what_if.nodes.node(node.position))}
            potential = [pod_info for pod_info in on_node if pod_info.pod.uid in uids]
        return [_Removed((one.pod,), (-one.pod.priority, started_at(one.pod)), (one,)) for one in potential]

    def _evictable_units(self, node: _Node, groups: GroupVictims) -> list[_Removed]:
        on_node = {pod_info.pod.uid: pod_info for pod_info in self.what_if.pods_on(node.name)}
        found, columns = [], NodeColumns(self.table)
        for unit in groups.on_node(node.name, on_node.values()):
            if unit.priority >= self.filters.pod.priority:
                continue
            places = zip(unit.pods, unit.node_names, strict=True)
            elsewhere = [(pod, columns.node(self.table.row_of[name])) for pod, name in places if name != node.name]
            here = [on_node[pod.uid] for pod in unit.pods if pod.uid in on_node]
            found.append(_Removed(unit.pods, unit.importance, here, elsewhere))
        return found

    def _reprieve(self, nodes: Sequence[_Node]) -> None:
        """Reprieve one unit at a time on each node, what budgets protect first; what does not fit is a victim."""
        turn = 0
        while nodes := [node for node in nodes if turn < len(node.removed) and node.status is None]:
            for node in nodes:
                self.filters.catch_failure(node, partial(self._restore, node, node.removed[turn]))
            trying = [node for node in nodes if node.status is None]
            self._run_filters(trying)
            for node in trying:
                if node.status is None or node.status.code == Code.ERROR:
                    continue
                node.status = None
                self.filters.catch_failure(node, partial(self._remove, node, node.removed[turn]))
                node.victims.append(node.removed[turn])
            turn += 1

    # --- does the pod fit? ------------------------------------------------------------------------------------------

    def _run_filters(self, nodes: Sequence[_Node]) -> None:
        """Set the status of those of *nodes* where the pod does not fit as things stand.

        Where pods are nominated it must fit with them, and without them too.
        """
        with_nominated = [node for node in nodes if node.name in self.nominated]
        states = [node.state for node in with_nominated]
        for node in with_nominated:
            if self.filters.plugins_with_extensions:
                self.filters.catch_failure(node, partial(self._clone_state, node))
            for pod_info in self.nominated[node.name]:
                self.filters.catch_failure(node, partial(self._add, node, pod_info))
        self._run_filters_once([node for node in with_nominated if node.status is None])
        for node, state in zip(with_nominated, states, strict=True):
            for pod_info in self.nominated[node.name]:
                self.what_if.remove_pod(node.name, pod_info.pod.uid)
            node.state = state
        self._run_filters_once([node for node in nodes if node.status is None])

    def _run_filters_once(self, nodes: Sequence[_Node]) -> None:
        columns = self.what_if.nodes
        try:
            self.filters.run(columns, nodes)
        except HookFailed:  # on one of the nodes; run one by one, it shows on which
            for node in nodes:
                node.status = None
                self.filters.catch_failure(node, partial(self.filters.run, columns, [node]))

    def _clone_state(self, node: _Node) -> None:
        node.state = clone_state(node.state or self.filters.state)

    def _add(self, node: _Node, pod_info: PodInfo) -> None:
        self.what_if.add_pod(node.name, pod_info)
        self.filters.add_pod(self.what_if.nodes, node, pod_info.pod)

    def _restore(self, node: _Node, removed: _Removed) -> None:
        for pod_info in removed.here:
            self._add(node, pod_info)
        for pod, elsewhere in removed.elsewhere:
            self.filters.add_pod(self.what_if.nodes, node, pod, elsewhere)

    def _remove(self, node: _Node, removed: _Removed) -> None:
        for pod_info in removed.here:
            self.what_if.remove_pod(node.name, pod_info.pod.uid)
            self.filters.remove_pod(self.what_if.nodes, node, pod_info.pod)
        for pod, elsewhere in removed.elsewhere:
            self.filters.remove_pod(self.what_if.nodes, node, pod, elsewhere)
