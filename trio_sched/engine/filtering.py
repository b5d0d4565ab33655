"""Which nodes a pod can run on: pre_filter and filter, on all nodes or on some.

This is the plain evaluation. `kept_answers` gives the same masks faster for pods that come in many copies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from attrs import define, field, frozen

from trio_sched.engine.profile import Caller, FilterCaller
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status, failure, unresolvable
from trio_sched.plugin_api.verdicts import NodeStatuses, PreFilterResult, Verdicts
from trio_sched.snapshot.arrays import BoolArray
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.placed_pod import PlacedPod

NominatedPods = Mapping[str, Sequence[PlacedPod]]
"""Node name → pods that are promised a place there and have at least the priority of the pod in question."""


class CycleFailed(Exception):
    """A plugin could not answer; *status* says which one and why. The pod is tried again after its backoff."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


def plugin_failed(prefix: str, plugin: str, cause: BaseException | str) -> CycleFailed:
    """The error of *plugin* in the scheduling framework's words, the cause chained."""
    exc = RuntimeError(f"{prefix}: {cause}")
    if isinstance(cause, BaseException):
        exc.__cause__ = cause
    return CycleFailed(failure(exc).by(plugin))


@frozen
class PreFilterOutcome:
    """What all pre_filters together said."""

    node_names: frozenset[str] | None = None
    """The only nodes worth a look; None means all."""
    narrowed_by: tuple[str, ...] = ()
    rejected: Status | None = None


def run_pre_filters(callers: Iterable[Caller], pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterOutcome:
    """Ask every pre_filter in order; notes in *state* which plugins have nothing to do.

    Raises:
        CycleFailed: a plugin failed.
    """
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    rejected: Status | None = None
    skipped = set(state.skip_filter)
    try:
        for caller in callers:
            plugin = caller.plugin
            try:
                answer = caller.call(pod, nodes, state)
            except Exception as exc:
                raise plugin_failed(f'running PreFilter plugin "{plugin}"', plugin, exc) from exc
            if answer is None:
                continue
            if isinstance(answer, PreFilterResult):
                if answer.node_names is None:
                    continue
                names = answer.node_names if names is None else names & answer.node_names
                narrowed_by.append(plugin)
                if not names:
                    return PreFilterOutcome(names, tuple(narrowed_by), _conflict(narrowed_by))
            elif answer.code == Code.SKIP:
                skipped.add(plugin)
            elif answer.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                return PreFilterOutcome(None, (), answer.by(plugin))
            elif answer.code == Code.UNSCHEDULABLE:
                rejected = answer.by(plugin)
            elif answer.code != Code.SUCCESS:
                raise plugin_failed(f'running PreFilter plugin "{plugin}"', plugin, answer.error or answer.message)
    finally:
        state.skip_filter = frozenset(skipped)
    return PreFilterOutcome(names, tuple(narrowed_by), rejected)


def _conflict(plugins: Sequence[str]) -> Status:
    if len(plugins) == 1:
        return unresolvable(f"node(s) didn't satisfy plugin {plugins[0]}")
    return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}] simultaneously")


@define(eq=False)
class FilterOutcome:
    """Which of *nodes* a pod can run on, and for the others why not."""

    nodes: NodeColumns
    passes: BoolArray
    verdicts: list[tuple[str, Verdicts]] = field(factory=list)
    """Array filters, in order."""
    node_statuses: dict[int, Status] = field(factory=dict)
    """Positions at which something else said no: a per-node filter, or the pass with nominated pods."""
    unexamined: int = 0
    """Nodes nobody looked at because enough were found."""

    def groups(self) -> Iterator[tuple[Status, list[int]]]:
        """Each status with the positions of the nodes that got it: of several failing plugins the first one's."""
        for position, status in self.node_statuses.items():
            yield status, [position]
        failed = np.flatnonzero(~self.passes)
        if self.node_statuses:
            failed = failed[~np.isin(failed, list(self.node_statuses))]
        for plugin, verdicts in self.verdicts:
            codes = verdicts.codes[failed]
            given = codes != 0
            if not given.any():
                continue
            nodes, codes = failed[given], codes[given]
            for code in np.unique(codes).tolist():
                yield verdicts.explain(int(code)).by(plugin), nodes[codes == code].tolist()
            failed = failed[~given]

    def statuses(self) -> dict[str, Status]:
        """The status of every node that failed, by name."""
        return {self.nodes.name(position): status for status, positions in self.groups() for position in positions}

    def is_examined(self, position: int) -> bool:
        """Whether anybody looked at the node at *position*."""
        return bool(self.passes[position]) or self.status(position) is not None

    def status(self, position: int) -> Status | None:
        """Why the node at *position* failed; None if nobody looked at it."""
        found = self.node_statuses.get(position)
        if found is not None:
            return found
        for plugin, verdicts in self.verdicts:
            code = int(verdicts.codes[position])
            if code:
                return verdicts.explain(code).by(plugin)
        return None


def run_filters(
    filters: Iterable[FilterCaller],
    pod: Pod,
    nodes: NodeColumns,
    state: CycleState,
    *,
    enough: int | None = None,
    start: int = 0,
) -> FilterOutcome:
    """Ask every filter about *nodes*, first those that take all nodes at once.

    Args:
        filters: the profile's filters; those in ``state.skip_filter`` are left out.
        pod: the pod.
        nodes: the nodes to look at.
        state: the cycle's state.
        enough: stop asking per-node filters once this many nodes have passed; None asks about all.
        start: position at which per-node filters begin, so that small samples do not always hit the same nodes.

    Raises:
        CycleFailed: a plugin failed.
    """
    outcome = FilterOutcome(nodes, np.ones(len(nodes), dtype=np.bool_))
    per_node: list[FilterCaller] = []
    for caller in filters:
        if caller.plugin in state.skip_filter:
            continue
        if caller.per_node:
            per_node.append(caller)
            continue
        verdicts = ask_filter(caller, pod, nodes, state)
        if verdicts.may_fail:
            check_failures(caller, verdicts, outcome.passes)
        outcome.verdicts.append((caller.plugin, verdicts))
        outcome.passes &= verdicts.passes
    if per_node:
        _run_per_node(per_node, pod, outcome, state, enough, start)
    return outcome


def ask_filter(caller: FilterCaller, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
    """What one filter that takes all nodes at once says.

    Raises:
        CycleFailed: it failed.
    """
    try:
        verdicts: Verdicts = caller.call(pod, nodes, state)
        if verdicts.codes.shape != (len(nodes),):
            raise ValueError(f"answered with shape {verdicts.codes.shape}, expected ({len(nodes)},)")
    except Exception as exc:
        raise plugin_failed(f'running "{caller.plugin}" filter plugin', caller.plugin, exc) from exc
    return verdicts


def check_failures(caller: FilterCaller, verdicts: Verdicts, reached: BoolArray) -> None:
    """Look whether a filter failed on a node that it had to judge.

    Args:
        caller: the filter.
        verdicts: what it said.
        reached: shape (nodes,): the nodes that passed the filters before it.

    Raises:
        CycleFailed: it did.
    """
    for code in np.unique(verdicts.codes[reached]).tolist():
        status = verdicts.explain(code) if code else None
        if status is not None and not status.is_rejected:
            raise plugin_failed(
                f'running "{caller.plugin}" filter plugin', caller.plugin, status.error or status.message
            )


def _run_per_node(
    filters: Sequence[FilterCaller],
    pod: Pod,
    outcome: FilterOutcome,
    state: CycleState,
    enough: int | None,
    start: int,
) -> None:
    candidates = np.flatnonzero(outcome.passes)
    candidates = np.roll(candidates, -int(np.searchsorted(candidates, start % max(len(outcome.nodes), 1))))
    found = 0
    for i, position in enumerate(candidates.tolist()):
        if enough is not None and found >= enough:
            rest = candidates[i:]
            outcome.passes[rest] = False
            outcome.unexamined = len(rest)
            return
        status = filter_one_node(filters, pod, outcome.nodes, position, state)
        if status is None:
            found += 1
        else:
            outcome.passes[position] = False
            outcome.node_statuses[position] = status


def filter_one_node(
    filters: Iterable[FilterCaller], pod: Pod, nodes: NodeColumns, position: int, state: CycleState
) -> Status | None:
    """Ask per-node *filters* about one node.

    Raises:
        CycleFailed: a plugin failed.
    """
    node = nodes.node(position)
    for caller in filters:
        prefix = f'running "{caller.plugin}" filter plugin'
        try:
            status: Status | None = caller.call(pod, node, state)
        except Exception as exc:
            raise plugin_failed(prefix, caller.plugin, exc) from exc
        if status is None or status.code == Code.SUCCESS:
            continue
        if not status.is_rejected:
            raise plugin_failed(prefix, caller.plugin, status.error or status.message)
        return status.by(caller.plugin)
    return None


def node_statuses(outcome: FilterOutcome, narrowed_by: Sequence[str]) -> NodeStatuses:
    """The statuses as post_filter and the message want them: looked at, and all the others."""
    reasons = (f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(narrowed_by))}]",) if narrowed_by else ()
    # A copy of the names: rows may be given to other nodes while somebody still looks at the statuses.
    return NodeStatuses(tuple(outcome.groups()), list(outcome.nodes.names), unresolvable(*reasons))
