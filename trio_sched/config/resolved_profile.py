"""One profile as it runs: what the configuration file, its defaults and the feature gates come to.

This is what the command line checks, the daemon is given, and the engine builds plugins from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from trio_sched.config.expansion import Expanded, PointsOf, expand_profiles
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.config.schema import MULTI_POINT, Profile, RawArguments, SchedulerConfig


@frozen(kw_only=True)
class ResolvedProfile:
    """One profile, by its schedulerName."""

    name: str
    percentage_of_nodes_to_score: int = 0
    """The percentage of the profile, else that of the configuration; 0 looks at every node."""
    points: Expanded
    """Extension point (snake case) → the plugins that run there, in order, scorers with their weight."""
    arguments: Mapping[str, Any]
    """``pluginConfig`` by plugin: an instance of its argument class, or what stands in the file."""
    without_point: tuple[str, ...] = ()
    """Plugins that are enabled at ``multiPoint`` and extend no point: those that only work in the background."""

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of all plugins that run, each once."""
        at_points = (ref.name for refs in self.points.values() for ref in refs)
        return tuple(dict.fromkeys((*at_points, *self.without_point)))


def resolve_profiles(
    config: SchedulerConfig, points_of: PointsOf, gates: FeatureGates = DEFAULT_GATES
) -> tuple[ResolvedProfile, ...]:
    """Resolve every profile of *config*.

    Args:
        config: the completed configuration.
        points_of: every plugin there is, with the extension points that it implements.
        gates: say which plugins are on by default.

    Raises:
        ConfigError: the first profile that cannot be built, and why.
    """
    expanded = expand_profiles(config.profiles, points_of, gates)
    return tuple(
        _resolved(config, profile, points, points_of) for profile, points in zip(config.profiles, expanded, strict=True)
    )


def _resolved(config: SchedulerConfig, profile: Profile, points: Expanded, points_of: PointsOf) -> ResolvedProfile:
    percentage = profile.percentage_of_nodes_to_score
    return ResolvedProfile(
        name=profile.scheduler_name,
        percentage_of_nodes_to_score=config.percentage_of_nodes_to_score if percentage is None else percentage,
        points=points,
        arguments={
            entry.name: entry.args.value() if isinstance(entry.args, RawArguments) else entry.args
            for entry in profile.plugin_config
        },
        without_point=tuple(
            ref.name
            for ref in profile.plugins[MULTI_POINT].enabled
            if ref.name in points_of and not points_of[ref.name]
        ),
    )
