"""Loads the profiles of a configuration: their plugins with the handles they are given, and the kinds they need."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

import trio
from attrs import define, frozen

from trio_sched.daemon.plugins.handle_parts import HandleParts
from trio_sched.daemon.plugins.kind_mistakes import declared_writes, kind_mistakes
from trio_sched.daemon.plugins.plugin_handle import PluginHandle, SharedObjects
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.watching.watched_kinds import declared_resources, wanted_kinds
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.failure_guard import FailureGuards
from trio_sched.engine.registry.likely_mistakes import likely_mistakes
from trio_sched.engine.registry.plugin_registry import PluginRegistry, is_built_in
from trio_sched.engine.registry.profile import build_profile
from trio_sched.engine.scheduler import PreparedProfiles, Scheduler
from trio_sched.plugin_api.cluster_events import Action
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.records import Configured

log = logging.getLogger(__name__)


@frozen(eq=False)
class LoadedProfiles:
    """The profiles of one configuration, ready to be scheduled with."""

    settings: DaemonSettings
    prepared: PreparedProfiles
    wanted_kinds: Mapping[Watched, Action]
    """What to watch besides pods and nodes, and after which changes pods move."""

    @property
    def background_tasks(self) -> list[BoundHook]:
        """The hooks ``run`` of all plugins that run in every replica."""
        return [hook for hook, on_leader_only in self._runs() if not on_leader_only]

    @property
    def leader_tasks(self) -> list[BoundHook]:
        """Those of plugins that run on the leader only."""
        return [hook for hook, on_leader_only in self._runs() if on_leader_only]

    def record(self, now: float) -> Configured:
        """What a recording says of these profiles, which are in force from *now* on."""
        from trio_sched.config.dump import dump_configuration  # only where decisions are recorded

        return Configured(
            now=now,
            configuration=dump_configuration(self.settings.config),
            gates=dict(self.settings.gates.overrides),
            plugins={name: source for one in self.prepared.profiles.values() for name, source in one.sources.items()},
            failure_policies={name: policy.text for name, policy in self.settings.failure_policies.items()},
            emulated_version=self.settings.gates.version_text,
        )

    def _runs(self) -> list[tuple[BoundHook, bool]]:
        found, seen = [], set()
        for profile in self.prepared.profiles.values():
            for hook in profile.run:
                plugin = profile.plugins[hook.plugin]
                if hook.plugin in seen and getattr(plugin, "run_once_per_process", False):
                    continue
                seen.add(hook.plugin)
                found.append((hook, bool(getattr(plugin, "run_on_leader_only", False))))
        return found


@define(eq=False, kw_only=True)
class ProfileLoader:
    """Has what the handles of plugins reach."""

    scheduler: Scheduler
    parts: HandleParts

    def load(self, settings: DaemonSettings) -> LoadedProfiles:
        """Instantiate the plugins of the profiles in *settings*; nothing is scheduled with them yet.

        Raises:
            PluginError: a plugin is missing or broken.
        """
        guards = FailureGuards(settings.failure_policies, trio.current_time, self.scheduler.plugin_failures)
        shared = SharedObjects()
        profiles = {
            resolved.name: build_profile(
                resolved, settings.registry, self._handles(settings, resolved.name, shared), guards
            )
            for resolved in settings.profiles
        }
        _log_likely_mistakes(settings.registry, {name for profile in profiles.values() for name in profile.plugins})
        prepared = self.scheduler.prepare_profiles(profiles, extenders=self.parts.extenders is not None)
        tables = {name: queueing.hints for name, queueing in prepared.queueing.items()}
        shared.custom_resources, shared.is_loading = declared_resources(profiles, tables), False
        for name, profile in profiles.items():
            for plugin, instance in profile.plugins.items():
                if plugin not in shared.writes and not is_built_in(type(instance)):
                    _log(plugin, profile.sources[plugin], kind_mistakes(instance, tables[name].events_of(plugin)))
                shared.writes[plugin] = declared_writes(instance)
        return LoadedProfiles(settings, prepared, wanted_kinds(profiles, tables, settings.gates.features))

    def _handles(
        self, settings: DaemonSettings, profile_name: str, shared: SharedObjects
    ) -> Callable[[str], PluginHandle]:
        def handle_of(plugin: str) -> PluginHandle:
            return PluginHandle(
                profile_name=profile_name,
                plugin_name=plugin,
                parts=self.parts,
                emulated_version=settings.gates.version,
                gate=settings.gates.enabled,
                shared=shared,
            )

        return handle_of


def _log_likely_mistakes(registry: PluginRegistry, plugins: Iterable[str]) -> None:
    for name in sorted(plugins):
        plugin = registry.load(name)
        if not is_built_in(plugin):
            _log(name, registry.source(name), likely_mistakes(plugin))


def _log(plugin: str, source: str, mistakes: Iterable[str]) -> None:
    for mistake in mistakes:
        log.warning("plugin %s from %s: %s", plugin, source, mistake, extra={"plugin": plugin, "distribution": source})
