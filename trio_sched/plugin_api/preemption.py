"""What making room for a pod is about: victims, candidates, and disruption budgets that say who may go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, field, frozen

from trio_sched.objects.disruption_budget import PodDisruptionBudget
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.label_selection import LabelMatcher, SelectorError, compile_selector


@frozen
class Victims:
    """The pods of one node that would have to go, the most important first."""

    pods: tuple[Pod, ...]
    pdb_violations: int = 0
    """How many of them a PodDisruptionBudget would not let go."""


@frozen
class DryRun:
    """What trying out victims node by node has shown."""

    candidates: Mapping[str, Victims]
    """Node name → who would have to go; nodes without violations of budgets first."""
    statuses: Mapping[str, Status]
    """Node name → why nothing would help there."""
    error: Status | None = None
    """The first failure of a plugin; of no matter if there are candidates."""


@frozen(eq=False)
class Budget:
    """A PodDisruptionBudget, ready to be asked."""

    namespace: str
    labels: LabelMatcher
    allowed: int
    """How many pods may be disrupted right now."""
    disrupted: frozenset[str]
    """Pods (by name) that are going already and have been taken account of."""

    def concerns(self, pod: Pod) -> bool:
        """Whether evicting *pod* counts."""
        return pod.namespace == self.namespace and self.labels.matches(pod.labels) and pod.name not in self.disrupted


BudgetsByNamespace = Mapping[str, Sequence[tuple[int, Budget]]]
"""Namespace → its budgets, each with a number of its own: a cluster has many, and most are about other namespaces."""


def budgets_of(objects: Iterable[PodDisruptionBudget]) -> BudgetsByNamespace:
    """The budgets that concern anybody: an empty selector means no pod, and one that does not parse neither."""
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
class BudgetAccount:
    """What is left of the budgets as one victim after the other is counted."""

    budgets: BudgetsByNamespace
    _left: dict[int, int] = field(factory=dict)

    def violates(self, pod: Pod) -> bool:
        """Count *pod*; whether one of the budgets that concern it is overdrawn."""
        if not pod.labels:
            return False
        overdrawn = False
        for i, budget in self.budgets.get(pod.namespace, ()):
            if budget.concerns(pod):
                left = self._left[i] = self._left.get(i, budget.allowed) - 1
                overdrawn = overdrawn or left < 0
        return overdrawn


NOT_STARTED = "~"
"""Later than any time of day."""


def started_at(pod: Pod) -> str:
    """When *pod* started, as text that sorts by time; one that has not started counts as started now."""
    return pod.status.start_time or NOT_STARTED


MayEvict = Callable[[Pod], bool]
"""Whether a pod may be a victim at all."""
