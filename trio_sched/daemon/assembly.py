"""The parts of the daemon, connected; the supervisor runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import trio
from attrs import define, field

from trio_sched.daemon.clients import Clients
from trio_sched.daemon.hooks.blocking_hooks import BlockingHooks
from trio_sched.daemon.hooks.hook_time_limit import HookScopes
from trio_sched.daemon.loaded_profiles import LoadedProfiles, ProfileLoader
from trio_sched.daemon.metrics.metrics import Metrics
from trio_sched.daemon.plugins.background_tasks import BackgroundTasks
from trio_sched.daemon.plugins.plugin_http import PluginHttp
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.plugins.plugin_trace import PluginTrace
from trio_sched.daemon.pods.attempt_history import AttemptHistory
from trio_sched.daemon.pods.binding_cycle import BindingCycle
from trio_sched.daemon.pods.condition_remedies import ConditionRemedies
from trio_sched.daemon.pods.preemption_executor import PreemptionExecutor
from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.daemon.reload_counters import ReloadCounters
from trio_sched.daemon.schedule_one import ScheduleOne
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.wake_up import WakeUp
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.daemon.watching.watch_reconnect import WatchReconnect
from trio_sched.daemon.watching.watched_kinds import by_kind, check_kind
from trio_sched.daemon.watching.watches import Watches
from trio_sched.daemon.writes.event_recorder import EventRecorder
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.engine.event_handlers import EventHandlers
from trio_sched.engine.hooks.hook_times import HookTimes
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.scheduler import Scheduler

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from trio_sched.daemon.extenders.extenders import Extenders
    from trio_sched.daemon.leader_election import LeaderElector
    from trio_sched.daemon.recording.decision_recorder import DecisionRecorder  # only where decisions are recorded
    from trio_sched.daemon.shadow.shadow import Shadow
    from trio_sched.daemon.sharding.shard_elector import ShardElector
    from trio_sched.daemon.sharding.sharding import Sharding


@define(eq=False)
class CacheChecks:
    """Comparisons of the cache with the API server."""

    requested: WakeUp = field(factory=WakeUp)
    """Set on SIGUSR2, for a comparison at once and a dump."""
    count: int = 0
    """How many are over."""
    drift: Counter[str] = field(factory=Counter)
    """How many objects differed, by what was wrong."""


@define(eq=False, kw_only=True)
class Assembly:
    """The parts that the supervisor starts and stops."""

    clients: Clients
    random: Random
    wall_clock: Callable[[], datetime]
    scheduler: Scheduler
    event_handlers: EventHandlers
    delivery: Delivery
    recorder: EventRecorder
    bind_pool: WorkPool
    hook_scopes: HookScopes
    """The scopes of the tasks in *bind_pool*."""
    status_patch_pool: WorkPool
    plugin_jobs: PluginJobs
    """Runs what plugins have to do in the background."""
    preemption_executor: PreemptionExecutor
    binding: BindingCycle
    schedule_one: ScheduleOne
    pods_available: WakeUp
    """Set when the active queue may have got a pod."""
    backoff_changed: WakeUp
    """Set when a pod may have begun to back off."""
    extenders: Extenders | None
    blocking_hooks: BlockingHooks
    metrics: Metrics
    watches: Watches
    watch_reconnect: WatchReconnect
    hook_times: HookTimes
    plugin_trace: PluginTrace
    waiting: WaitingPods
    attempts: AttemptHistory
    """The last attempts of pending pods."""
    remedies: ConditionRemedies | None
    """What would help pending pods; None unless their conditions are to say so."""
    loader: ProfileLoader
    http: PluginHttp
    """Carries the requests of plugins."""
    loaded: LoadedProfiles
    """What is scheduled with; a reload replaces it."""
    started_at: float
    """When it was built, in seconds since 1970."""
    reloads: ReloadCounters
    cache_checks: CacheChecks
    tasks: BackgroundTasks
    """Those of the plugins that are scheduled with."""
    elector: LeaderElector | ShardElector | None
    """Holds the lease, or waits for it; None without leader election."""
    sharding: Sharding | None = None
    """Shares the work with other replicas; None: one of them schedules."""
    decisions: DecisionRecorder | None = None
    """Records what decisions depend on; None: nothing is recorded."""
    shadow: Shadow | None = None
    """Compares the decisions of another scheduler; None: this process schedules."""
    leading: trio.Nursery | None = None
    """Holds what only the leader does, while this process leads."""
    ending: trio.Event = field(factory=trio.Event)
    """Set when the end has begun."""
    synced: trio.Event = field(factory=trio.Event)
    """Set when the caches are filled."""

    @property
    def settings(self) -> DaemonSettings:
        """The settings in force."""
        return self.loaded.settings

    def recording(self) -> AbstractContextManager[None]:
        """Record decisions while the block runs, if that is wanted.

        Raises:
            CannotRecord: the folder of the recording cannot be written to.
        """
        return nullcontext() if self.decisions is None else self.decisions.running()

    def forget_attempts(self) -> None:
        """Forget the attempts of pods that are no longer pending, and what would have helped these."""
        pending = {pod.uid for pod in self.scheduler.cache.unassigned.pods()}
        self.attempts.keep(pending)
        if self.remedies is not None:
            self.remedies.forget(pending)

    def put_in_force(self, loaded: LoadedProfiles) -> None:
        """Schedule with *loaded* from now on; to be called between two pods. Nothing here waits, or can fail."""
        scheduler, config, now = self.scheduler, loaded.settings.config, trio.current_time()
        self.loaded = loaded
        self.event_handlers.wanted_kinds = by_kind(loaded.wanted_kinds)
        scheduler.object_cache.check_kind = partial(check_kind, loaded.wanted_kinds)
        self.preemption_executor.parallelism = config.parallelism
        # Watching the event loop costs every turn of it, so it is done only where there are plugins of other packages.
        self.hook_times.replace(hook for hook in loaded.prepared.hooks if not hook.built_in)
        self.plugin_trace.install(loaded.prepared.hooks)
        align_to_window = scheduler.queue.backoff.align_to_window
        scheduler.queue.replace_backoff(
            Backoff(config.pod_initial_backoff_seconds, config.pod_max_backoff_seconds, align_to_window=align_to_window)
        )
        scheduler.exchange_profiles(loaded.prepared, now=now)
        self.event_handlers.profiles_changed(self.watches.pods.objects, now=now)
        if self.decisions is not None:
            only_built_in = all(hook.built_in for hook in loaded.prepared.hooks)
            self.decisions.configured(loaded.record(now), only_built_in=only_built_in)
