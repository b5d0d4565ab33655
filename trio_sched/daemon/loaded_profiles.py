"""Loads the profiles of a configuration: their plugins with the handles they are given, and the kinds they need."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import trio
from attrs import define, frozen

from trio_sched.daemon.binder import Bind
from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extenders import Extenders
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.object_cache import ObjectCache
from trio_sched.daemon.plugin_handle import PluginHandle
from trio_sched.daemon.preemption_executor import PreemptionExecutor
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.unassigned_pods import UnassignedPods
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.watched_kinds import wanted_kinds
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.bound_hooks import BoundHook
from trio_sched.engine.failure_guard import FailureGuards
from trio_sched.engine.likely_mistakes import likely_mistakes
from trio_sched.engine.plugin_registry import PluginRegistry, is_built_in
from trio_sched.engine.profile import build_profile
from trio_sched.engine.scheduler import PreparedProfiles, Scheduler
from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import Action

log = logging.getLogger(__name__)


@frozen(eq=False)
class LoadedProfiles:
    """The profiles of one configuration, ready to be scheduled with."""

    settings: DaemonSettings
    prepared: PreparedProfiles
    wanted_kinds: Mapping[str, Action]
    """What to watch besides pods and nodes, and after which changes pods move."""

    @property
    def background_tasks(self) -> list[BoundHook]:
        """The hooks ``run`` of all plugins."""
        return [hook for profile in self.prepared.profiles.values() for hook in profile.run]


@define(eq=False, kw_only=True)
class ProfileLoader:
    """Has what the handles of plugins reach."""

    scheduler: Scheduler
    object_cache: ObjectCache
    unassigned: UnassignedPods
    waiting: WaitingPods
    preemption_executor: PreemptionExecutor
    extenders: Extenders | None
    client: KubeClient
    activate: Callable[[Iterable[Pod]], None]
    bind: Bind
    recorder: EventRecorder
    background: WorkPool
    metrics: MetricRecorder

    def load(self, settings: DaemonSettings) -> LoadedProfiles:
        """Instantiate the plugins of the profiles in *settings*; nothing is scheduled with them yet.

        Raises:
            PluginError: a plugin is missing or broken.
        """
        guards = FailureGuards(settings.failure_policies, trio.current_time, self.scheduler.plugin_failures)
        profiles = {
            resolved.name: build_profile(resolved, settings.registry, self._handle(settings, resolved.name), guards)
            for resolved in settings.profiles
        }
        _log_likely_mistakes(settings.registry, {name for profile in profiles.values() for name in profile.plugins})
        prepared = self.scheduler.prepare_profiles(profiles, extenders=self.extenders is not None)
        wanted = wanted_kinds(
            {name: queueing.hints for name, queueing in prepared.queueing.items()},
            [
                *(kind for profile in profiles.values() for kind in profile.watches),
                *(("PodGroup",) if settings.gates.enabled("GenericWorkload") else ()),
            ],
        )
        return LoadedProfiles(settings, prepared, wanted)

    def _handle(self, settings: DaemonSettings, profile_name: str) -> PluginHandle:
        return PluginHandle(
            profile_name=profile_name,
            scheduler=self.scheduler,
            object_cache=self.object_cache,
            unassigned=self.unassigned,
            waiting=self.waiting,
            preemption_executor=self.preemption_executor,
            extenders=self.extenders,
            client=self.client,
            gate=settings.gates.enabled,
            activate=self.activate,
            bind=self.bind,
            recorder=self.recorder,
            background=self.background,
            metrics=self.metrics,
        )


def _log_likely_mistakes(registry: PluginRegistry, plugins: Iterable[str]) -> None:
    for name in sorted(plugins):
        plugin = registry.load(name)
        for mistake in [] if is_built_in(plugin) else likely_mistakes(plugin):
            source = registry.source(name)
            log.warning("plugin %s from %s: %s", name, source, mistake, extra={"plugin": name, "distribution": source})
