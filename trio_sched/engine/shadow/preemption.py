"""Which nodes are best to preempt pods on for a pod that fits nowhere, as the plugin DefaultPreemption selects them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import field, frozen

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.preemption import Victims, best_candidates, budgets_of
from trio_sched.plugin_api.status import Code
from trio_sched.snapshot.node_columns import NodeColumns

_PLUGIN: Final = "DefaultPreemption"
_DEVICES: Final = "DynamicResources"
"""It has something to do after the filters for pods with claims only."""
_BUDGETS: Final = "PodDisruptionBudget"


@frozen(kw_only=True)
class PreemptionEvaluation:
    """What a dry run on all nodes has found."""

    candidates: Mapping[str, Victims] = field(factory=dict)
    """The nodes with pods whose eviction makes room, and these pods."""
    best: tuple[str, ...] = ()
    """Those of them whose victims matter least."""
    enough: int = 0
    """After how many candidates the plugin stops to look for more."""

    def may_be_sampled(self, node_name: str) -> bool:
        """Whether *node_name* can be the best of the candidates that the plugin has looked at."""
        return node_name in self.candidates and len(self.candidates) > self.enough

    def describe(self, node_name: str) -> str:
        """What speaks against *node_name*, which is none of the best."""
        victims = self.candidates.get(node_name)
        if victims is None or not self.best:
            return "no room can be made on that node" if node_name else "room can be made"
        best = self.candidates[self.best[0]]
        return f"its victims are {_in_words(victims)}, those of the best node {_in_words(best)}"


def _in_words(victims: Victims) -> str:
    violations, priority, _sum, count = victims.cost
    words = f"{count} of priority {priority} at most"
    return f"{words}, {violations} of them protected by budgets" if violations else words


NO_PREEMPTION: Final = PreemptionEvaluation()


def is_order_undefined(scheduler: Scheduler, pod: Pod, node_name: str) -> bool:
    """Whether the victims of *pod* on *node_name* depend on chance: several pods there have not started yet.

    Source: kube-scheduler takes the time of each comparison for the start of a pod that has none, so that of two such
    pods either can be the more important one.
    """
    position = NodeColumns(scheduler.cache.table).position(node_name)
    if position is None:
        return False
    pods = NodeColumns(scheduler.cache.table).node(position).pods
    return sum(one.priority < pod.priority and not one.status.start_time for one in pods) > 1


def evaluate_preemption(scheduler: Scheduler, pod: Pod, unplaced: SchedulingFailure) -> PreemptionEvaluation | None:
    """Try to make room for *pod*, which fits nowhere for the reasons in *unplaced*.

    Returns:
        None if another plugin than DefaultPreemption may help the pod, or none does: then there is nothing to compare.
    """
    plugins = {hook.plugin for hook in scheduler.profiles[pod.scheduler_name].post_filter}
    others = plugins - {_PLUGIN} if pod.spec.resource_claims else plugins - {_PLUGIN, _DEVICES}
    if _PLUGIN not in plugins or others or _BUDGETS not in scheduler.object_cache.kinds:
        return None
    diagnosis, state = unplaced.diagnosis, unplaced.state
    if diagnosis is None or state is None or pod.spec.preemption_policy == "Never":
        return NO_PREEMPTION
    names: Sequence[str] = scheduler.cache.table.names
    statuses, absent = diagnosis.statuses.by_node(), diagnosis.statuses.absent
    potential = [name for name in names if statuses.get(name, absent).code == Code.UNSCHEDULABLE]
    if not potential:
        return NO_PREEMPTION
    budgets = budgets_of(scheduler.object_cache.objects(_BUDGETS))
    found = scheduler.dry_run_preemption(pod, state, potential, len(potential), budgets).candidates
    best = tuple(best_candidates(found))
    plugin: Any = scheduler.profiles[pod.scheduler_name].plugins[_PLUGIN]
    return PreemptionEvaluation(candidates=found, best=best, enough=plugin.num_candidates(potential))
