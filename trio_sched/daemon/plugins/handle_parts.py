"""The parts of the daemon that handles of plugins reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from attrs import define, field

from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.metrics.series.handle_metrics import PluginMetricRegistry
from trio_sched.daemon.plugins.object_writes import ObjectWrites
from trio_sched.daemon.plugins.plugin_http import PluginHttp
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.pods.binder import Bind
from trio_sched.daemon.pods.preemption_executor import PreemptionExecutor
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.engine.evaluation.preemption import Evictable
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun, budgets_of
from trio_sched.plugin_api.status import Code

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extenders import Extenders


@define(eq=False, kw_only=True)
class HandleParts:
    """The parts of the daemon that handles reach: the same for all plugins."""

    scheduler: Scheduler
    object_waits: ObjectWaits
    waiting: WaitingPods
    preemption_executor: PreemptionExecutor
    extenders: Extenders | None
    writes: ObjectWrites
    activate: Callable[[Iterable[Pod]], None]
    retries_changed: Callable[[], None]
    """Called when a pod is to be tried again at some time."""
    bind: Bind
    recorder: EventRecorder
    background: PluginJobs
    metrics: MetricRecorder
    http: PluginHttp
    plugin_metrics: PluginMetricRegistry
    _budgets: tuple[int, BudgetsByNamespace] = field(factory=lambda: (-1, {}), init=False)

    def budgets(self) -> BudgetsByNamespace:
        """The disruption budgets, as far as they are watched."""
        cache = self.scheduler.object_cache
        if "PodDisruptionBudget" not in cache.kinds:
            return self._budgets[1]
        version = cache.version("PodDisruptionBudget")
        if self._budgets[0] != version:
            self._budgets = (version, budgets_of(cache.objects("PodDisruptionBudget")))
        return self._budgets[1]

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        evictable: Evictable | None,
    ) -> DryRun:
        """Find victims on copies of the columns; timed."""
        clock = self.scheduler.measurements.clock
        budgets, began = self.budgets(), clock()
        found = self.scheduler.dry_run_preemption(pod, state, node_names, num_candidates, budgets, evictable=evictable)
        code = Code.SUCCESS if found.candidates else Code.UNSCHEDULABLE if found.error is None else Code.ERROR
        self.metrics.evaluations.observe(clock() - began, "pod", code.label)
        return found
