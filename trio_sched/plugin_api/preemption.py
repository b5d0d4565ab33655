"""Preemption: victims, candidates, and the disruption budgets that evictions violate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from attrs import define, field, frozen

from trio_sched.objects.disruption_budget import PodDisruptionBudget
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.labels.label_selection import LabelMatcher, SelectorError, compile_selector

PRIORITY_OFFSET = 2**31
"""Makes every priority positive."""


@frozen
class Victims:
    """The pods that would be evicted to make room on one node, by descending importance."""

    pods: tuple[Pod, ...]
    """From 1.37 on with those on other nodes, ``spec.nodeName`` says which, of groups that are evicted as a whole."""
    pdb_violations: int = 0
    """How many of the evictions would violate a PodDisruptionBudget."""

    @cached_property
    def cost(self) -> tuple[int, int, int, int]:
        """How much is lost, in the order of what counts: compare it with that of other nodes.

        Violated budgets, the highest priority, the sum of the priorities (made positive, so that it grows with every
        victim), the number of victims.
        """
        priorities = [pod.priority for pod in self.pods]
        highest = priorities[0] if priorities else -PRIORITY_OFFSET
        return self.pdb_violations, highest, sum(priorities) + PRIORITY_OFFSET * len(priorities), len(priorities)

    @cached_property
    def earliest_start(self) -> str:
        """When the first of the most important victims started."""
        highest = max((pod.priority for pod in self.pods), default=0)
        return min((started_at(pod) for pod in self.pods if pod.priority == highest), default=NOT_STARTED)


@frozen
class DryRun:
    """The result of a dry run of preemption, by node."""

    candidates: Mapping[str, Victims]
    """Node name → its victims; nodes without violations of disruption budgets first."""
    statuses: Mapping[str, Status]
    """Node name → why preemption does not help there."""
    error: Status | None = None
    """The first failure of a plugin; without effect if there are candidates."""


@frozen(eq=False)
class Budget:
    """A PodDisruptionBudget with its selector compiled."""

    namespace: str
    labels: LabelMatcher
    allowed: int
    """``status.disruptionsAllowed``."""
    disrupted: frozenset[str]
    """``status.disruptedPods``: names of pods whose eviction is counted in *allowed* already."""

    def concerns(self, pod: Pod) -> bool:
        """Whether evicting *pod* uses up this budget."""
        return pod.namespace == self.namespace and self.labels.matches(pod.labels) and pod.name not in self.disrupted


BudgetsByNamespace = Mapping[str, Sequence[tuple[int, Budget]]]
"""Namespace → its budgets, each with a number that is unique among all budgets."""


def budgets_of(objects: Iterable[PodDisruptionBudget]) -> BudgetsByNamespace:
    """The budgets by namespace; without those that match no pod: with an empty selector, or one that does not parse.

    Whether one of them protects a pod::

        found = budgets_of(handle.objects("PodDisruptionBudget")).get(pod.namespace, ())
        is_protected = any(budget.concerns(pod) and budget.allowed <= 0 for _, budget in found)
    """
    found: dict[str, list[tuple[int, Budget]]] = {}
    for i, budget in enumerate(objects):
        try:
            labels = compile_selector(budget.spec.selector)
        except SelectorError:
            continue
        if not labels.is_everything and not labels.is_nothing:
            status = budget.status
            disrupted = frozenset(status.disrupted_pods or ())
            compiled = Budget(budget.metadata.namespace, labels, status.disruptions_allowed, disrupted)
            found.setdefault(compiled.namespace, []).append((i, compiled))
    return found


@define(eq=False)
class PdbAllowance:
    """The remaining disruptions of each budget, as victims are counted one after the other."""

    budgets: BudgetsByNamespace
    _left: dict[int, int] = field(factory=dict)

    def count_victim(self, pod: Pod) -> bool:
        """Count *pod* as a victim; returns whether that violates a budget."""
        if not pod.labels:
            return False
        violated = False
        for i, budget in self.budgets.get(pod.namespace, ()):
            if budget.concerns(pod):
                left = self._left[i] = self._left.get(i, budget.allowed) - 1
                violated = violated or left < 0
        return violated

    def count_in_unit(self, pod: Pod) -> bool:
        """The same for a pod of a unit; budgets after the first that it violates are not used up."""
        for i, budget in self.budgets.get(pod.namespace, ()) if pod.labels else ():
            if budget.concerns(pod):
                left = self._left[i] = self._left.get(i, budget.allowed) - 1
                if left < 0:
                    return True
        return False


NOT_STARTED = "~"
"""The start time of pods that have not started; sorts after every other start time."""


def started_at(pod: Pod) -> str:
    """The start time of *pod*, as text that sorts by time; `NOT_STARTED` if it has not started."""
    return pod.status.start_time or NOT_STARTED


def best_candidates(candidates: Mapping[str, Victims]) -> list[str]:
    """The candidates that no other one is better than, in the order given.

    Better is, one after the other: fewer violated budgets; a less important most important victim; a smaller sum of
    priorities; fewer victims; a most important victim (the one among them that started first) that started later.
    """
    lowest = min((victims.cost for victims in candidates.values()), default=None)
    best = [name for name, victims in candidates.items() if victims.cost == lowest]
    if len(best) > 1:
        latest = max(candidates[name].earliest_start for name in best)
        best = [name for name in best if candidates[name].earliest_start == latest]
    return best
