"""Checks ``sign`` and ``depends_on`` together: what the scheduler has cached must be what the plugin would say now.

Random clusters are changed at random; after every change the real cache decides, and so does a plain evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from attrs import define, field

from trio_sched.engine.evaluation.decision import Decision, ScheduleResult
from trio_sched.engine.evaluation.scheduling_cycle import SchedulingCycle
from trio_sched.engine.evaluation.signature_cache import SignatureCache
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.verdicts import Domain, Input
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing.conformance.cluster_state import NODE, RUNNING, WAITING, Change, ClusterState
from trio_sched.testing.conformance.description import describe_change
from trio_sched.testing.conformance.events import changes_for
from trio_sched.testing.conformance.subject import Subject, Trial

_ROUNDS: Final = 12
_CHANGES_PER_ROUND: Final = 16


def caching_problems(subject: Subject) -> Iterator[str]:
    """The first change after which a cached result is wrong."""
    trial = subject.fresh()
    if not trial.profile.depends_on or not (trial.profile.filter or trial.profile.score):
        return
    if not subject.pods or not subject.cluster.nodes:
        return
    changes = changes_for(subject, trial)
    for round_number in range(_ROUNDS * subject.effort):
        changes.rng.seed(round_number)
        cached = _Cached(subject.fresh(), changes.cluster_state())
        for change in [None, *[changes.change] * _CHANGES_PER_ROUND]:
            problem = cached.after(None if change is None else change(cached.cluster_state))
            if problem:
                yield problem
                return


@define(eq=False)
class _Cached:
    """A cluster, with what is cached about it."""

    trial: Trial
    cluster_state: ClusterState
    _table: NodeTable = field(init=False)
    _cache: SignatureCache = field(init=False)
    _invalidations: int = 0
    _first: dict[object, Pod] = field(factory=dict, init=False)
    """By signature: the first pod that had it."""

    def __attrs_post_init__(self) -> None:
        self._table = self.cluster_state.table()
        self.cluster_state.show(self.trial, self._table)
        self._cache = SignatureCache(self.trial.profile, self._table)

    def after(self, change: Change | None) -> str:
        """Make *change*; what is wrong afterwards, empty if nothing is."""
        if change is not None:
            self._make(change)
        for pod in self.cluster_state.waiting.values():
            problem = self._compare(pod, change)
            if problem:
                return problem
        return ""

    def _make(self, change: Change) -> None:
        self.cluster_state = self.cluster_state.after(change)
        change.make_in(self._table)
        self.cluster_state.show(self.trial, self._table)
        if change.kind not in (NODE, RUNNING, WAITING):
            self._cache.clear()
            self._first.clear()

    def _compare(self, pod: Pod, change: Change | None) -> str:
        profile = self.trial.profile
        try:
            signature = profile.signature(pod)
            if None in signature:
                return ""
            if self.trial.handle.invalidations != self._invalidations:
                self._invalidations = self.trial.handle.invalidations
                self._cache.clear()
            is_new = self._cache.evaluation(signature) is None
            self.trial.reset_random()
            decision = self._cache.decide(pod, signature, {}, Random(0))
            if decision is None or profile.name != pod.scheduler_name:
                return ""
            if is_new:
                self._first[signature] = pod
            feasible, best = self._plain(pod)
        except HookFailed:
            return ""
        if _is_right(decision, feasible, best):
            return ""
        if self._is_random(pod):
            return ""
        return self._describe(pod, signature, change, decision, feasible, best)

    def _plain(self, pod: Pod) -> tuple[frozenset[str], frozenset[str]]:
        """The nodes that pass, and those with the highest total.

        Raises:
            HookFailed: the plugin failed.
        """
        self.trial.reset_random()
        cycle = SchedulingCycle(self.trial.profile, self._table, pod, {}, CycleState())
        found = cycle.find_feasible()
        nodes = getattr(found, "nodes", None)
        if nodes is None:
            return frozenset(), frozenset()
        totals = cycle.prioritize(nodes).totals
        best = {name for name, total in zip(nodes.names, totals.tolist(), strict=True) if total == totals.max()}
        return frozenset(nodes.names), frozenset(best)

    def _is_random(self, pod: Pod) -> bool:
        """Whether the plugin has used the random number generator of its handle."""
        self.trial.reset_random()
        before = self.trial.handle.rng.getstate()
        self._plain(pod)
        return self.trial.handle.rng.getstate() != before

    def _declared(self) -> frozenset[Input | Domain]:
        return frozenset().union(*self.trial.profile.depends_on.values())

    def _judges_like(self, pod: Pod, feasible: frozenset[str], best: frozenset[str]) -> bool:
        """Whether the hooks say the same of *pod* now."""
        try:
            return self._plain(pod) == (feasible, best)
        except HookFailed:
            return False

    def _describe(
        self,
        pod: Pod,
        signature: object,
        change: Change | None,
        decision: Decision,
        feasible: frozenset[str],
        best: frozenset[str],
    ) -> str:
        cached = (
            f"{decision.feasible_nodes} nodes pass and {decision.node_name!r} is chosen"
            if isinstance(decision, ScheduleResult)
            else "no node passes"
        )
        now = f"{len(feasible)} nodes pass and one of {sorted(best)} is the best" if feasible else "no node passes"
        first = self._first.get(signature, pod)
        about = f"pod {pod.name!r}: a cached result is wrong: {cached}, but computed again {now}"
        keys = sorted({one.key for one in self._declared() if isinstance(one, Domain)})
        if keys and change is not None and self._judges_like(first, feasible, best):
            return (
                f"{about}. That was so after {describe_change(change)}, and depends_on names the domains of "
                f"{' or '.join(map(repr, keys))}: look at no other nodes, "
                "and let pre_filter and pre_score store nothing that depends on nodes"
            )
        if change is None or change.kind == WAITING or first.uid != pod.uid:
            whose = "that it had before it was changed" if first.uid == pod.uid else f"of pod {first.name!r}"
            return (
                f"{about}. sign gives it the signature {whose}, and the hooks treat the two differently: "
                "put into the signature everything of a pod that they look at"
            )
        missing = Input.PODS if change.kind == RUNNING else Input.NODE
        if change.kind == NODE and (change.old is None or change.new is None):
            missing = Input.ALL_NODES
        return f"{about}. That was so after {describe_change(change)}: depends_on needs {missing}"


def _is_right(decision: Decision, feasible: frozenset[str], best: frozenset[str]) -> bool:
    if not isinstance(decision, ScheduleResult):
        return not feasible
    return decision.node_name in best and decision.feasible_nodes == len(feasible)
