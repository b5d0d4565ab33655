"""What is counted in one daemon, and where; light to import, because every start does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from attrs import define, field

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.metrics.options import MetricsOptions
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.metrics.requests import RequestLogs
from trio_sched.daemon.metrics.series.handle_metrics import PluginMetricRegistry
from trio_sched.daemon.metrics.series.serving import HealthChecks, ServingMetrics
from trio_sched.daemon.writes.work_pool import Jobs
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.watch import Reflector
from trio_sched.objects.pod import Pod

if TYPE_CHECKING:
    from trio_sched.engine.shadow.judgement import Judgements
    from trio_sched.engine.sharding.shard_counts import ShardCounts


@define(eq=False, kw_only=True)
class Sources:
    """What counts, and what is looked at when metrics are shown."""

    options: MetricsOptions
    gates: FeatureGates
    scheduler: Scheduler
    clients: Mapping[str, KubeClient]
    """By their names in metrics."""
    requests: RequestLogs
    """The requests of these clients, and of those that ask about the clients of the endpoints."""
    pools: Mapping[str, Jobs]
    """What works on jobs, by the names of the pools in metrics."""
    binding: Callable[[], int]
    """Returns how many pods are in their binding cycle."""
    unsent_events: Callable[[], int]
    dropped_events: Callable[[], int]
    cache_checks: Callable[[], tuple[int, Mapping[str, int]]]
    """Returns how often the cache was compared with the API server, and the objects that differed, by difference."""
    reloads: Callable[[], tuple[Mapping[str, int], bool]]
    """Returns the number of reloads by result, and whether the last one has succeeded."""
    recording: Callable[[], tuple[bool, int]]
    """Returns whether decisions are recorded, and how much was left out."""
    recorder: MetricRecorder
    of_plugins: PluginMetricRegistry
    """What plugins count through their handles."""
    reflectors: list[Reflector[Any]]
    """The reflectors of all kinds that are watched."""
    pods: Reflector[Pod]
    """The one of pods."""
    shadow: Judgements | None = None
    """What a shadow has compared."""
    shards: Callable[[], ShardCounts] | None = None
    """What a replica that shares the work has counted."""
    serving: ServingMetrics = field(factory=ServingMetrics, init=False)
    health_checks: HealthChecks = field(factory=HealthChecks, init=False)
    shows_information: bool = field(default=True, init=False)
    """Whether this build is described; not after a reset."""

    def reset(self) -> None:
        """Forget what was counted under labels, as kube-scheduler does, and what describes this build."""
        self.shows_information = False
        self.scheduler.measurements.reset()
        self.scheduler.plugin_failures.totals.clear()
        self.scheduler.queue.counters.reset_incoming()
        self.recorder.reset()
        for pool in self.pools.values():
            pool.times.reset()
        self.serving.reset()
        self.of_plugins.reset()
        self.requests.reset()
