"""Dry runs of preemption: on which nodes a pod would fit if less important ones were gone, and which of them.

Many nodes are tried at once, on a what-if copy of their columns: first with every less important pod gone, then giving
back one after the other, the most important first. Plugins whose answer about a node depends on pods elsewhere
(those with add_pod and remove_pod) keep a state per node.

Source: preemption of kube-scheduler 1.36 (who is a victim, in what order pods are given back, budgets).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from attrs import define, field

from trio_sched.engine.filtering import CycleFailed, NominatedPods, ask_filter, filter_one_node, plugin_failed
from trio_sched.engine.profile import Call, FilterCaller, Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import Budget, BudgetAccount, DryRun, MayEvict, Victims
from trio_sched.plugin_api.status import Code, Status, unresolvable
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable, PlacedPod
from trio_sched.snapshot.what_if import WhatIf

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
_SMALLEST_CHUNK = 64
_NOT_STARTED = "~"
"""Later than any time of day: a pod that has not started counts as started now."""


def importance(pod: Pod) -> tuple[int, str]:
    """Sorts the most important pod first: by priority, then by how long it has been running."""
    return -pod.priority, pod.status.start_time or _NOT_STARTED


def dry_run(
    profile: Profile,
    table: NodeTable,
    pod: Pod,
    state: CycleState,
    nominated: NominatedPods,
    node_names: Sequence[str],
    *,
    budgets: Sequence[Budget],
    enough: int,
    may_evict: MayEvict | None = None,
) -> DryRun:
    """Try *node_names* in order until enough of them would do.

    Args:
        profile: whose filters decide.
        table: the cluster; it is not changed.
        pod: the one to make room for.
        state: what the pre_filters of its cycle have left.
        nominated: pods that are promised a place and at least as important, by node.
        node_names: the nodes worth trying.
        budgets: how many pods may go.
        enough: candidates to stop at, once one of them violates no budget.
        may_evict: limits the victims further than to less important pods.
    """
    good: dict[str, Victims] = {}
    violating: dict[str, Victims] = {}
    statuses: dict[str, Status] = {}
    error: Status | None = None
    rows = [table.row_of[name] for name in node_names if name in table.row_of]
    chunk = max(enough, _SMALLEST_CHUNK)
    for start in range(0, len(rows), chunk):
        trial = _Trial(profile, WhatIf(table, rows[start : start + chunk]), pod, state, nominated, budgets)
        for name, outcome in trial.outcomes(may_evict):
            if isinstance(outcome, Victims):
                found = violating if outcome.pdb_violations else good
                if len(found) < enough:
                    found[name] = outcome
                if good and len(good) + len(violating) >= enough:
                    return DryRun({**good, **violating}, statuses, error)
            elif outcome.code == Code.ERROR:
                error = error or outcome
            else:
                statuses[name] = outcome
    return DryRun({**good, **violating}, statuses, error)


@define(eq=False)
class _Node:
    """One node of a trial."""

    position: int
    name: str
    waiting: list[tuple[PlacedPod, bool]] = field(factory=list)
    """Pods taken away that may be given back, in the order in which that is tried; and whether a budget forbids it."""
    state: CycleState | None = None
    """Of its own, if a plugin counts pods elsewhere."""
    victims: list[Pod] = field(factory=list)
    violations: int = 0
    status: Status | None = None


@define(eq=False)
class _Trial:
    """Some nodes, tried together."""

    profile: Profile
    what_if: WhatIf
    pod: Pod
    state: CycleState
    nominated: NominatedPods
    budgets: Sequence[Budget]
    _filters: list[FilterCaller] = field(init=False)
    _counting: frozenset[str] = field(init=False)
    """Plugins that follow which pods come and go."""

    def __attrs_post_init__(self) -> None:
        skipped = self.state.skip_filter
        self._filters = [caller for caller in self.profile.filter if caller.plugin not in skipped]
        self._counting = frozenset((self.profile.add_pod.keys() | self.profile.remove_pod.keys()) - skipped)

    def outcomes(self, may_evict: MayEvict | None) -> Iterator[tuple[str, Victims | Status]]:
        """Each node with its victims, or with the reason why it is no use."""
        nodes = [_Node(position, name) for position, name in enumerate(self.what_if.nodes.names)]
        for node in nodes:
            self._guarded(node, partial(self._take_away, node, may_evict))
        self._judge([node for node in nodes if node.status is None])
        self._give_back([node for node in nodes if node.status is None])
        for node in nodes:
            if node.status is not None:
                yield node.name, node.status
            elif not node.victims:
                text = f'expected at least one victim pod on node "{node.name}"'
                yield node.name, Status(Code.ERROR, (), RuntimeError(text))
            else:
                yield node.name, Victims(tuple(sorted(node.victims, key=importance)), node.violations)

    def _guarded(self, node: _Node, step: Callable[[], None]) -> None:
        try:
            step()
        except CycleFailed as failed:
            node.status = failed.status

    def _take_away(self, node: _Node, may_evict: MayEvict | None) -> None:
        """Remove everybody less important."""
        priority = self.pod.priority
        gone = [
            placed
            for placed in self.what_if.pods_on(node.name)
            if placed.pod.priority < priority and (may_evict is None or may_evict(placed.pod))
        ]
        if not gone:
            node.status = NO_VICTIMS
            return
        if self._counting:
            node.state = self.state.clone()
        for placed in gone:
            self._remove(node, placed)
        gone.sort(key=lambda placed: importance(placed.pod))
        account = BudgetAccount.open(self.budgets)
        judged = [(placed, account.violates(placed.pod)) for placed in gone]
        node.waiting = [one for one in judged if one[1]] + [one for one in judged if not one[1]]

    def _give_back(self, nodes: Sequence[_Node]) -> None:
        """Let pods come back one at a time on each node, those that budgets protect first; who does not fit must go."""
        turn = 0
        while nodes := [node for node in nodes if turn < len(node.waiting) and node.status is None]:
            for node in nodes:
                self._guarded(node, partial(self._add, node, node.waiting[turn][0]))
            trying = [node for node in nodes if node.status is None]
            self._judge(trying)
            for node in trying:
                if node.status is None or node.status.code == Code.ERROR:
                    continue
                node.status = None
                placed, violates = node.waiting[turn]
                self._guarded(node, partial(self._remove, node, placed))
                node.victims.append(placed.pod)
                node.violations += violates
            turn += 1

    # --- does the pod fit? ------------------------------------------------------------------------------------------

    def _judge(self, nodes: Sequence[_Node]) -> None:
        """Set the status of those of *nodes* where the pod does not fit as things stand."""
        plain = [node for node in nodes if node.name not in self.nominated]
        try:
            self._judge_together(plain)
        except CycleFailed:  # some node is to blame; one by one it shows which
            for node in plain:
                node.status = None
                self._guarded(node, partial(self._judge_together, [node]))
        for node in nodes:
            if node.name in self.nominated:
                self._guarded(node, partial(self._judge_beside_nominated, node))

    def _judge_together(self, nodes: Sequence[_Node]) -> None:
        columns = self.what_if.nodes
        alive = list(nodes)
        for caller in self._filters:
            if not alive:
                return
            if caller.per_node:
                continue
            if caller.plugin in self._counting:
                for node in alive:
                    one = columns.take(slice(node.position, node.position + 1))
                    verdicts = ask_filter(caller, self.pod, one, node.state or self.state)
                    code = int(verdicts.codes[0])
                    if code:
                        node.status = verdicts.explain(code).by(caller.plugin)
            else:
                verdicts = ask_filter(caller, self.pod, _subset(columns, alive), self.state)
                if not verdicts.passes.all():
                    for i in np.flatnonzero(verdicts.codes).tolist():
                        alive[i].status = verdicts.explain(int(verdicts.codes[i])).by(caller.plugin)
            alive = [node for node in alive if node.status is None]
        per_node = [caller for caller in self._filters if caller.per_node]
        if per_node:
            for node in alive:
                node.status = filter_one_node(per_node, self.pod, columns, node.position, node.state or self.state)

    def _judge_beside_nominated(self, node: _Node) -> None:
        """With the pods that are promised a place there, and then without: it must fit both ways."""
        kept = node.state
        promised = self.nominated[node.name]
        if self._counting:
            node.state = (kept or self.state).clone()
        for placed in promised:
            self._add(node, placed)
        self._judge_together([node])
        for placed in promised:
            self.what_if.remove_pod(node.name, placed.pod.uid)
        node.state = kept
        if node.status is None:
            self._judge_together([node])

    # --- pods come and go -------------------------------------------------------------------------------------------

    def _add(self, node: _Node, placed: PlacedPod) -> None:
        self.what_if.add_pod(node.name, placed)
        self._tell(node, placed.pod, "AddPod", self.profile.add_pod)

    def _remove(self, node: _Node, placed: PlacedPod) -> None:
        self.what_if.remove_pod(node.name, placed.pod.uid)
        self._tell(node, placed.pod, "RemovePod", self.profile.remove_pod)

    def _tell(self, node: _Node, other: Pod, verb: str, calls: Mapping[str, Call]) -> None:
        if node.state is None:
            return
        view = self.what_if.nodes.node(node.position)
        for plugin, call in calls.items():
            if plugin not in self._counting:
                continue
            prefix = f'running {verb} on PreFilter plugin "{plugin}"'
            try:
                status = call(self.pod, other, view, node.state)
            except Exception as exc:
                raise plugin_failed(prefix, plugin, exc) from exc
            if status is not None and status.code != Code.SUCCESS:
                raise plugin_failed(prefix, plugin, status.error or status.message)


def _subset(columns: NodeColumns, nodes: Sequence[_Node]) -> NodeColumns:
    if len(nodes) == len(columns):
        return columns
    if len(nodes) == 1:
        return columns.take(slice(nodes[0].position, nodes[0].position + 1))
    return columns.take(np.array([node.position for node in nodes], dtype=np.intp))
