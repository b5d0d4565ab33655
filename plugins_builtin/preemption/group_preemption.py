"""Selects the victims for a pod group, among the pods of the whole cluster.

Source: workload-aware preemption of kube-scheduler: units, their order, budgets, reprieves of 1.36 (`victims_of_group`)
and 1.37 (`victims_at_placement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from trio_sched.plugin_api import (
    CompositePodGroup,
    PodDisruptionBudget,
    PodGroup,
    PodGroupPostFilterResult,
    PodGroupTrial,
    Status,
    budgets_of,
    unresolvable,
)
from trio_sched.plugin_api.preemption import PdbAllowance
from trio_sched.plugin_api.preemption_units import DisruptionRules, PreemptionUnit

NO_VICTIMS = unresolvable("No preemption victims found for incoming preemptor")

_Counted = tuple[PreemptionUnit, int]
"""A unit, and how many of its pods violate a budget if they are evicted."""


def victims_of_group(
    group: PodGroup | CompositePodGroup,
    trial: PodGroupTrial,
    budgets: Iterable[PodDisruptionBudget],
    rules: DisruptionRules,
) -> PodGroupPostFilterResult | Status:
    """The pods to evict so that *group* fits, most important first; or why that does not help.

    Args:
        group: the preemptor.
        trial: tries to schedule it without some pods.
        budgets: all disruption budgets.
        rules: say which pods are evicted together.
    """
    units = _potential_units(group.spec.priority or 0, trial, rules)
    victims = _victims(units, trial, budgets, partial(_fits, trial))
    if isinstance(victims, Status):
        return victims
    return _result(sorted(victims, key=lambda counted: counted[0].importance))


def victims_at_placement(
    group: PodGroup | CompositePodGroup,
    trial: PodGroupTrial,
    budgets: Iterable[PodDisruptionBudget],
    rules: DisruptionRules,
) -> PodGroupPostFilterResult | Status:
    """The pods to evict so that *group* fits where it is placed without all of them; or why that does not help.

    Other than with `victims_of_group` it is placed only once. The arguments are the same.
    """
    units = _potential_units(group.spec.priority or 0, trial, rules)
    victims = _victims(units, trial, budgets, trial.still_fits)
    return victims if isinstance(victims, Status) else _result(victims)


def _victims(
    units: list[PreemptionUnit],
    trial: PodGroupTrial,
    budgets: Iterable[PodDisruptionBudget],
    fits: Callable[[], bool],
) -> list[_Counted] | Status:
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
    ordered = _split_by_budgets(units, PdbAllowance(budgets_of(budgets)))
    victims = _not_reprieved(ordered, trial, fits, only_where_placed=True)
    if not fits():  # pods elsewhere matter for the group after all: each unit has to be tried
        for unit in units:
            trial.remove(unit.pods)
        victims = _not_reprieved(ordered, trial, fits, only_where_placed=False)
    return victims


def _result(victims: Sequence[_Counted]) -> PodGroupPostFilterResult:
    pods = tuple(pod for unit, _violations in victims for pod in unit.pods)
    return PodGroupPostFilterResult(pods, pdb_violations=sum(violations for _unit, violations in victims))


def _potential_units(preemptor_priority: int, trial: PodGroupTrial, rules: DisruptionRules) -> list[PreemptionUnit]:
    """The units with a lower priority than *preemptor_priority*."""
    units: dict[str, PreemptionUnit] = {}
    for pod, node_name in trial.assigned_pods:
        together = rules.disrupted_together(pod)
        uid = pod.uid if together is None else together.metadata.uid
        if uid not in units:
            units[uid] = rules.new_unit(pod, together)
        units[uid].add(pod, node_name)
    return [unit for unit in units.values() if unit.priority < preemptor_priority]


def _fits(trial: PodGroupTrial) -> bool:
    return trial.run() is None


def _not_reprieved(
    ordered: Sequence[_Counted], trial: PodGroupTrial, fits: Callable[[], bool], *, only_where_placed: bool
) -> list[_Counted]:
    """Those of the units *ordered*, which are removed, with which it is not so that *fits*.

    With *only_where_placed*, a unit is reprieved without a trial if none of its pods is where the group was placed.
    """
    victims = []
    for counted in ordered:
        pods, node_names = counted[0].pods, counted[0].node_names
        trial.restore(pods)
        if only_where_placed and trial.node_names.isdisjoint(node_names):
            continue
        if not fits():
            trial.remove(pods)
            victims.append(counted)
    return victims


def _split_by_budgets(units: Iterable[PreemptionUnit], allowance: PdbAllowance) -> list[_Counted]:
    """*units*, those whose eviction violates a budget first; budgets are used up in the order of *units*."""
    counted = [(unit, sum(map(allowance.count_in_unit, unit.pods))) for unit in units]
    return [one for one in counted if one[1]] + [one for one in counted if not one[1]]
