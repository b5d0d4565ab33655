"""Applies what building the extenders changes in the configuration."""

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from trio_sched.config.errors import ConfigError
from trio_sched.config.schema import Extender, Profile, SchedulerConfig
from trio_sched.objects.timestamps import SECOND_NS
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs

_FIT: Final = "NodeResourcesFit"
_DEFAULT_TIMEOUT_NS: Final = 5 * SECOND_NS


def apply_extenders(config: SchedulerConfig) -> SchedulerConfig:
    """Set the default timeout of extenders, and the resources that NodeResourcesFit ignores because of them.

    The managed resources with ``ignoredByScheduler`` replace ``ignoredResources`` of NodeResourcesFit in every profile.

    Raises:
        ConfigError: a profile has no arguments of NodeResourcesFit.
    """
    extenders = tuple(
        extender if extender.http_timeout_ns else evolve(extender, http_timeout_ns=_DEFAULT_TIMEOUT_NS)
        for extender in config.extenders
    )
    ignored = _ignored_resources(extenders)
    profiles = tuple(_with_ignored(profile, ignored) for profile in config.profiles) if ignored else config.profiles
    return evolve(config, extenders=extenders, profiles=profiles)


def _ignored_resources(extenders: Sequence[Extender]) -> tuple[str, ...]:
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )


def _with_ignored(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    entries = list(profile.plugin_config)
    for index, entry in enumerate(entries):
        if entry.name == _FIT and isinstance(entry.args, NodeResourcesFitArgs):
            entries[index] = evolve(entry, args=evolve(entry.args, ignored_resources=ignored))
            return evolve(profile, plugin_config=tuple(entries))
    raise ConfigError.of("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
