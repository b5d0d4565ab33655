"""Dry runs of preemption: on which nodes a pod would fit if pods of lower priority were gone, and which of them.

Many nodes are tried at once, on a what-if copy of their columns: first with every pod of lower priority removed, then
reprieving one after the other: those that a disruption budget protects first, then by importance. Plugins whose
result for a node depends on pods elsewhere (those with add_pod and remove_pod) get a cycle state per node.

Source: preemption of kube-scheduler 1.36 (which pods are victims, in what order pods are reprieved, budgets).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial

from attrs import define, field

from trio_sched.engine.evaluation.filtering import NominatedPods
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
from trio_sched.snapshot.node_columns import NodeView
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo
from trio_sched.snapshot.what_if import WhatIf

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_SMALLEST_CHUNK = 64
MAX_DRY_RUNS = 8
"""Signatures and priorities whose outcomes are kept; each can have one for every node."""


Evictable = Callable[[NodeView], Iterable[Pod]]
"""The pods on a node that may be evicted."""


def importance(pod: Pod) -> tuple[int, str]:
    """Sorts the most important pod first: by priority, then by how long it has been running."""
    return -pod.priority, started_at(pod)


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
    """
    non_violating: dict[str, Victims] = {}
    violating: dict[str, Victims] = {}
    statuses: dict[str, Status] = {}
    error: Status | None = None
    rows = [table.row_of[name] for name in node_names if name in table.row_of]
    chunk = max(num_candidates, _SMALLEST_CHUNK)
    filters = WhatIfFilters(profile, pod, state)
    for start in range(0, len(rows), chunk):
        for name, outcome in _outcomes(
            filters, table, rows[start : start + chunk], nominated, budgets, kept, evictable
        ):
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
    filters: WhatIfFilters,
    table: NodeTable,
    rows: Sequence[int],
    nominated: NominatedPods,
    budgets: BudgetsByNamespace,
    kept: KeptOutcomes | None,
    evictable: Evictable | None,
) -> Iterator[tuple[str, Victims | Status]]:
    """Each of the nodes with its victims, or with the reason why it is no use."""
    if kept is None:
        yield from _Search(filters, WhatIf(table, rows), nominated, budgets, evictable).outcomes()
        return
    missing = kept.missing(table, rows, table.views.pod_objects_generation, nominated, most=table.count)
    fresh: dict[str, Victims | Status] = {}
    if missing:
        search = _Search(filters, WhatIf(table, list(missing)), nominated, budgets)
        for (name, outcome), version in zip(search.outcomes(), missing.values(), strict=True):
            fresh[name] = outcome
            if isinstance(outcome, Victims) or outcome.code != Code.ERROR:
                kept.keep(name, version, outcome)
    for row in rows:
        name = table.names[row]
        yield name, fresh[name] if name in fresh else kept.value(name)


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
class _Node(WhatIfNode):
    """One node of a search."""

    removed: list[tuple[PodInfo, bool]] = field(factory=list)
    """Removed pods that may be reprieved, in the order in which that is tried; and whether a budget protects them."""
    victims: list[Pod] = field(factory=list)
    violations: int = 0


@define(eq=False)
class _Search:
    """Looks for victims on some nodes, on all of them together."""

    filters: WhatIfFilters
    what_if: WhatIf
    nominated: NominatedPods
    budgets: BudgetsByNamespace
    evictable: Evictable | None = None

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
                yield node.name, Victims(tuple(sorted(node.victims, key=importance)), node.violations)

    def _remove_evictable(self, node: _Node) -> None:
        """Remove every pod that may be evicted."""
        on_node, priority = self.what_if.pods_on(node.name), self.filters.pod.priority
        if self.evictable is None:
            potential = [pod_info for pod_info in on_node if pod_info.pod.priority < priority]
        else:
            uids = {pod.uid for pod in self.evictable(self.what_if.nodes.node(node.position))}
            potential = [pod_info for pod_info in on_node if pod_info.pod.uid in uids]
        if not potential:
            node.status = NO_VICTIMS
            return
        if self.filters.plugins_with_extensions:
            node.state = clone_state(self.filters.state)
        for pod_info in potential:
            self._remove(node, pod_info)
        potential.sort(key=lambda pod_info: importance(pod_info.pod))
        account = PdbAllowance(self.budgets)
        candidates = [(pod_info, account.count_victim(pod_info.pod)) for pod_info in potential]
        node.removed = [one for one in candidates if one[1]] + [one for one in candidates if not one[1]]

    def _reprieve(self, nodes: Sequence[_Node]) -> None:
        """Reprieve pods one at a time on each node, those that budgets protect first; what does not fit is a victim."""
        turn = 0
        while nodes := [node for node in nodes if turn < len(node.removed) and node.status is None]:
            for node in nodes:
                self.filters.catch_failure(node, partial(self._add, node, node.removed[turn][0]))
            trying = [node for node in nodes if node.status is None]
            self._run_filters(trying)
            for node in trying:
                if node.status is None or node.status.code == Code.ERROR:
                    continue
                node.status = None
                pod_info, violates = node.removed[turn]
                self.filters.catch_failure(node, partial(self._remove, node, pod_info))
                node.victims.append(pod_info.pod)
                node.violations += violates
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

    def _remove(self, node: _Node, pod_info: PodInfo) -> None:
        self.what_if.remove_pod(node.name, pod_info.pod.uid)
        self.filters.remove_pod(self.what_if.nodes, node, pod_info.pod)
