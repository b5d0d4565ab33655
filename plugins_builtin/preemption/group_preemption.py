"""Selects the victims for a pod group, among the pods of the whole cluster.

Source: workload-aware preemption of kube-scheduler: units, their order, budgets, reprieves of 1.36 (`victims_of_group`)
and 1.37 (`victims_at_placement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from attrs import define, field, frozen

from trio_sched.plugin_api import (
    NOT_STARTED,
    BudgetsByNamespace,
    CompositePodGroup,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PodGroupPostFilterResult,
    PodGroupTrial,
    Status,
    budgets_of,
    started_at,
    unresolvable,
)

NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")


@frozen(eq=False)
class Together:
    """A group whose pods are evicted together."""

    group: PodGroup | CompositePodGroup
    priority: int
    """Of the root of its tree, which is that of all pods in the tree."""


@define(eq=False)
class _Unit:
    """Pods that are evicted together: those of a group, or a single one."""

    priority: int
    is_composite: bool
    """Whether they are those below a composite group."""
    pods: list[Pod] = field(factory=list)
    node_names: set[str] = field(factory=set)
    violations: int = 0
    """How many of the pods violate a budget if they are evicted."""

    @property
    def importance(self) -> tuple[object, ...]:
        """Sorts the most important unit first."""
        start = min(map(started_at, self.pods), default=NOT_STARTED)
        is_grouped = self.pods[0].spec.scheduling_group is not None
        return -self.priority, not self.is_composite, not is_grouped, -len(self.pods) if is_grouped else 0, start


def victims_of_group(
    group: PodGroup | CompositePodGroup,
    trial: PodGroupTrial,
    budgets: Iterable[PodDisruptionBudget],
    disrupted_together: Callable[[Pod], Together | None],
) -> PodGroupPostFilterResult | Status:
    """The pods to evict so that *group* fits, most important first; or why that does not help.

    Args:
        group: the preemptor.
        trial: tries to schedule it without some pods.
        budgets: all disruption budgets.
        disrupted_together: the group that a pod is in, if the pods of that group are evicted together.
    """
    units = _potential_units(group.spec.priority or 0, trial, disrupted_together)
    victims = _victims(units, trial, budgets, partial(_fits, trial))
    if isinstance(victims, Status):
        return victims
    return _result(sorted(victims, key=lambda unit: unit.importance))


def victims_at_placement(
    group: PodGroup | CompositePodGroup,
    trial: PodGroupTrial,
    budgets: Iterable[PodDisruptionBudget],
    disrupted_together: Callable[[Pod], Together | None],
) -> PodGroupPostFilterResult | Status:
    """The pods to evict so that *group* fits where it is placed without all of them; or why that does not help.

    Other than with `victims_of_group` it is placed only once. The arguments are the same.
    """
    units = _potential_units(group.spec.priority or 0, trial, disrupted_together)
    victims = _victims(units, trial, budgets, trial.still_fits)
    return victims if isinstance(victims, Status) else _result(victims)


def _victims(
    units: list[_Unit], trial: PodGroupTrial, budgets: Iterable[PodDisruptionBudget], fits: Callable[[], bool]
) -> list[_Unit] | Status:
    """Those of *units* that have to go, those that violate budgets first; or why it does not help if all go.

    Whether the group *fits* is asked after each unit that may come back.
    """
    if not units:
        return NO_VICTIMS
    for unit in units:
        trial.remove(unit.pods)
    problem = trial.run()
    if problem is not None:
        return problem
    units.sort(key=lambda unit: unit.importance)
    violating, others = _split_by_budgets(units, budgets_of(budgets))
    ordered = [*violating, *others]
    victims = _not_reprieved(ordered, trial, fits, only_where_placed=True)
    if not fits():  # pods elsewhere matter for the group after all: each unit has to be tried
        for unit in units:
            trial.remove(unit.pods)
        victims = _not_reprieved(ordered, trial, fits, only_where_placed=False)
    return victims


def _result(units: Sequence[_Unit]) -> PodGroupPostFilterResult:
    pods = tuple(pod for unit in units for pod in unit.pods)
    return PodGroupPostFilterResult(pods, pdb_violations=sum(unit.violations for unit in units))


def _potential_units(
    preemptor_priority: int, trial: PodGroupTrial, disrupted_together: Callable[[Pod], Together | None]
) -> list[_Unit]:
    """The units with a lower priority than *preemptor_priority*."""
    units: dict[str, _Unit] = {}
    for pod, node_name in trial.assigned_pods:
        together = disrupted_together(pod)
        uid = pod.uid if together is None else together.group.metadata.uid
        unit = units.get(uid)
        if unit is None:
            priority = pod.priority if together is None else together.priority
            is_composite = together is not None and isinstance(together.group, CompositePodGroup)
            unit = units[uid] = _Unit(priority, is_composite)
        unit.pods.append(pod)
        unit.node_names.add(node_name)
    return [unit for unit in units.values() if unit.priority < preemptor_priority]


def _fits(trial: PodGroupTrial) -> bool:
    return trial.run() is None


def _not_reprieved(
    units: Sequence[_Unit], trial: PodGroupTrial, fits: Callable[[], bool], *, only_where_placed: bool
) -> list[_Unit]:
    """Of *units*, which are removed, those with which it is not so that *fits*.

    With *only_where_placed*, a unit is reprieved without a trial if none of its pods is where the group was placed.
    """
    victims = []
    for unit in units:
        trial.restore(unit.pods)
        if only_where_placed and not unit.node_names & trial.node_names:
            continue
        if not fits():
            trial.remove(unit.pods)
            victims.append(unit)
    return victims


def _split_by_budgets(units: Iterable[_Unit], budgets: BudgetsByNamespace) -> tuple[list[_Unit], list[_Unit]]:
    """The units whose eviction violates a budget, and the others; budgets are used up in the order of *units*."""
    violating: list[_Unit] = []
    others: list[_Unit] = []
    left: dict[int, int] = {}
    for unit in units:
        unit.violations = sum(_violates(pod, budgets, left) for pod in unit.pods)
        (violating if unit.violations else others).append(unit)
    return violating, others


def _violates(pod: Pod, budgets: BudgetsByNamespace, left: dict[int, int]) -> bool:
    """Count *pod* as a victim, up to the first budget that it violates."""
    for number, budget in budgets.get(pod.namespace, ()) if pod.labels else ():
        if budget.concerns(pod):
            left[number] = left.get(number, budget.allowed) - 1
            if left[number] < 0:
                return True
    return False
