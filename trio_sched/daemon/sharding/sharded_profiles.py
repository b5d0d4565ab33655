"""Profiles of replicas that share the work: with one plugin more, and without those that this does not work with."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, evolve

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.schema import PluginRef
from trio_sched.daemon.loaded_profiles import LoadedProfiles, ProfileLoader
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.sharding.shard_plugin import NAME, POINTS, WEIGHT
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.engine.registry.plugin_registry import PluginClass, PluginRegistry, hooks_of, is_built_in
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.plugin_api.arguments import PodTopologySpreadArgs
from trio_sched.plugin_api.verdicts import Input

_JUDGE: frozenset[str] = frozenset({"pre_filter", "filter", "filter_node"})
_GIVE_AWAY: frozenset[str] = frozenset({"reserve", "permit", "pre_bind", "post_filter"})
_OF_NODE: frozenset[Any] = frozenset({Input.NODE, Input.PODS, Input.AMOUNTS})


class ShardingRefused(PluginError):
    """A profile that several replicas must not schedule with at a time."""

    def __init__(self, profile: str, why: str) -> None:
        super().__init__(profile, why)
        self.profile, self.why = profile, why

    def __str__(self) -> str:
        return f"profile {self.profile!r} does not work with sharding: {self.why}"


@define(eq=False, kw_only=True)
class ShardedProfileLoader(ProfileLoader):
    """Adds the plugin to every profile."""

    owned: OwnedShards
    plugin: PluginClass

    def load(self, settings: DaemonSettings) -> LoadedProfiles:
        """Instantiate the plugins of the profiles; see `ProfileLoader.load`.

        Raises:
            ShardingRefused: a profile cannot be scheduled with by several replicas.
            PluginError: a plugin is missing or broken.
        """
        registry = settings.registry.copy()
        for profile in settings.profiles:
            _check(profile, registry)
        # Those of a former configuration stay: until the new one is in force, it is the former one that counts.
        owned = self.owned
        owned.confined_profiles |= {
            one.name for one in settings.profiles if any(_reaches_beyond(registry.load(name)) for name in one.plugins)
        }
        owned.lane_profiles |= {one.name for one in settings.profiles if _spreads_all(one)}
        registry.put(self.plugin, "trio-sched")
        profiles = tuple(map(_with_plugin, settings.profiles))
        return super().load(evolve(settings, profiles=profiles, registry=registry))


def _check(profile: ResolvedProfile, registry: PluginRegistry) -> None:
    binders = [ref.name for ref in profile.points.get("bind", ())]
    if binders != ["DefaultBinder"]:
        others = ", ".join(name for name in binders if name != "DefaultBinder")
        why = f"{others} would bind pods without naming their version; disable it at bind"
        raise ShardingRefused(profile.name, why if others else "enable DefaultBinder, it binds the pods")
    for name in profile.plugins:
        if getattr(registry.load(name), "run_on_leader_only", False):
            why = f"{name} has a task that runs on the leader only, and there is none; disable it"
            raise ShardingRefused(profile.name, why)
        if name == NAME:
            raise ShardingRefused(profile.name, f"it enables a plugin called {NAME}, which sharding has; rename it")


def _reaches_beyond(plugin: PluginClass) -> bool:
    """Whether a plugin of another package may judge a node by others, or give away what others could, too."""
    if is_built_in(plugin):
        return False
    hooks = set(hooks_of(plugin))
    depends_on = getattr(plugin, "depends_on", None)
    judges_alone = depends_on is not None and "sign" in hooks and set(depends_on) <= _OF_NODE
    return bool(hooks & _GIVE_AWAY) or (bool(hooks & _JUDGE) and not judges_alone)


def _spreads_all(profile: ResolvedProfile) -> bool:
    args = profile.arguments.get("PodTopologySpread")
    constraints: Iterable[Any] = (args.default_constraints or ()) if isinstance(args, PodTopologySpreadArgs) else ()
    return any(one.when_unsatisfiable != "ScheduleAnyway" for one in constraints)


def _with_plugin(profile: ResolvedProfile) -> ResolvedProfile:
    points = dict(profile.points)
    for point in POINTS:
        ref = PluginRef(NAME, WEIGHT if point == "score" else 0)
        others = points.get(point, ())
        # Volumes and devices are given to a pod before the owner of a node is asked to bind it.
        points[point] = (*others, ref) if point == "pre_bind" else (ref, *others)
    return evolve(profile, points=points)
