"""The settings of the schedulers of a virtual cluster: a configuration, with the plugins under test in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve

from trio_sched.config.extenders import apply_extenders
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import MULTI_POINT, PluginRef, PluginSet, Profile, SchedulerConfig
from trio_sched.daemon.plugins.plugin_trace import TraceSelector
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.engine.hooks.failure_policy import FailurePolicy, check_failure_policy, read_failure_policy
from trio_sched.engine.hooks.plugin_errors import UnknownPlugin
from trio_sched.engine.registry.plugin_registry import hooks_of, points_of
from trio_sched.errors import nearest_name
from trio_sched.testing.given_plugins import name_of, registry_with


def cluster_settings(
    config: str | SchedulerConfig | None, gates: FeatureGates, plugins: Sequence[Any], leader_elect: bool
) -> DaemonSettings:
    """What the schedulers of a virtual cluster run; see `virtual_cluster`.

    Raises:
        PluginError: a plugin is missing or cannot be used.
        ConfigError: the configuration is not valid.
    """
    if not isinstance(config, SchedulerConfig):
        config = load_configuration(config, gates=gates)
    config = apply_extenders(config)
    registry = registry_with(plugins)
    classes = [registry.load(name_of(plugin)) for plugin in plugins]
    mentioned = {
        ref.name for profile in config.profiles for chosen in profile.plugins.values() for ref in _all_refs(chosen)
    }
    installed = [registry.load(name) for name in mentioned if name not in KNOWN_PLUGINS and name in registry]
    points = {**KNOWN_PLUGINS, **{plugin.name: points_of(plugin) for plugin in (*installed, *classes)}}
    extra = [PluginRef(plugin.name) for plugin in classes if plugin.name not in mentioned]
    config = evolve(
        config,
        leader_election=evolve(config.leader_election, leader_elect=leader_elect),
        profiles=tuple(_with_plugins(profile, extra) for profile in config.profiles),
    )
    return DaemonSettings(
        config=config,
        gates=gates,
        profiles=resolve_profiles(config, points, gates),
        registry=registry,
        identity="",
    )


def with_plugin_flags(
    settings: DaemonSettings, failure_policies: Mapping[str, str], trace_plugins: str
) -> DaemonSettings:
    """*settings* with what the flags ``--plugin-failure-policy`` and ``--trace-plugins`` set.

    Raises:
        ValueError: a policy is none, or *trace_plugins* chooses no pods.
        PluginError: a policy is that of a plugin that no profile enables, or that can only fail closed.
    """
    enabled = {name for profile in settings.profiles for name in profile.plugins}
    policies: dict[str, FailurePolicy] = {}
    for name, text in failure_policies.items():
        if name not in enabled:
            raise UnknownPlugin(name, nearest_name(name, enabled))
        policies[name] = read_failure_policy(text)
        plugin = settings.registry.load(name)
        check_failure_policy(name, settings.registry.source(name), policies[name], hooks_of(plugin))
    traced = TraceSelector.read(trace_plugins) if trace_plugins else None
    return evolve(settings, failure_policies=policies, trace_plugins=traced)


def _all_refs(chosen: PluginSet) -> tuple[PluginRef, ...]:
    return (*chosen.enabled, *chosen.disabled)


def _with_plugins(profile: Profile, extra: Sequence[PluginRef]) -> Profile:
    everywhere = profile.plugins[MULTI_POINT]
    return evolve(
        profile,
        plugins={**profile.plugins, MULTI_POINT: evolve(everywhere, enabled=(*everywhere.enabled, *extra))},
    )
