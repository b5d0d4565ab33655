"""Turns the plugin sets of a profile into what runs at each extension point, in order and with weights.

Source: how kube-scheduler's framework is built from a profile, and what it refuses to build.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import evolve

from trio_sched.config.decode import Given
from trio_sched.config.errors import ConfigError
from trio_sched.config.feature_gates import DEFAULT_GATES, FeatureGates
from trio_sched.config.known_plugins import DEFAULT_PREEMPTION, default_plugins
from trio_sched.config.plugin_arguments.table import argument_problems
from trio_sched.config.schema import MULTI_POINT, PluginConfig, PluginRef, PluginSet, Profile
from trio_sched.go.text import quote
from trio_sched.plugin_api.arguments import NodeResourcesFitArgs

PointsOf = Mapping[str, frozenset[str]]
"""Which extension points each plugin implements, by its name."""

Expanded = dict[str, tuple[PluginRef, ...]]
"""The plugins of each extension point, in order; scorers with the weight that counts."""

_TYPE_NAMES: Final = {
    "pre_filter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "post_filter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "pre_score": "PreScorePlugin",
    "score": "ScorePlugin",
    "pre_bind": "PreBindPlugin",
    "bind": "BindPlugin",
    "post_bind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "pre_enqueue": "PreEnqueuePlugin",
    "queue_sort": "QueueSortPlugin",
    "placement_generate": "PlacementGeneratePlugin",
    "placement_score": "PlacementScorePlugin",
    "pod_group_post_filter": "PodGroupPostFilterPlugin",
}
"""The points in the order in which they are filled, and what their plugins are called in messages."""

_BEST_SCORE: Final = 100
_MAX_TOTAL_SCORE: Final = (1 << 63) - 1


def expand_profiles(
    profiles: Sequence[Profile], points_of: PointsOf, gates: FeatureGates = DEFAULT_GATES
) -> tuple[Expanded, ...]:
    """Expand every profile; all must have the same queue sort plugin and arguments.

    Raises:
        ConfigError: the first profile that cannot be built, and why.
    """
    expanded: list[Expanded] = []
    for profile in profiles:
        try:
            expanded.append(expand_profile(profile, points_of, gates))
        except ConfigError as error:
            where = f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: "
            raise error.within(where) from error
        first, current = expanded[0]["queue_sort"][0].name, expanded[-1]["queue_sort"][0].name
        name = quote(profile.scheduler_name)
        if current != first:
            message = f"different queue sort plugins for profile {name}: {quote(current)}, first: {quote(first)}"
            raise ConfigError.of(f"initializing profiles: {message}")
        if profile.arguments_of(current) != profiles[0].arguments_of(first):
            raise ConfigError.of(f"initializing profiles: different queue sort plugin args for profile {name}")
    return tuple(expanded)


def expand_profile(profile: Profile, points_of: PointsOf, gates: FeatureGates = DEFAULT_GATES) -> Expanded:
    """List the plugins of each point of *profile*.

    Args:
        profile: the profile, its plugin sets merged with the defaults.
        points_of: every plugin there is, with the points that it implements.
        gates: the feature gates, which the arguments of some plugins depend on.

    Raises:
        ConfigError: a plugin is missing, misplaced or listed twice, or a point lacks what it needs.
    """
    _check_deferred_arguments(profile, points_of, gates)
    filled = [point for point in _TYPE_NAMES if point in profile.plugins]
    for point in filled:
        _check_own_list(point, profile.plugins[point], points_of)
    multi_point = profile.plugins[MULTI_POINT].enabled
    names = {point: _expand_point(point, profile.plugins[point], multi_point, points_of) for point in filled}
    name = f"profile with scheduler name {quote(profile.scheduler_name)}"
    if len(names["queue_sort"]) != 1:
        found = names["queue_sort"]
        error = ConfigError.of(f"only one queue sort plugin required for {name}, but got {len(found)}")
        if found:
            error.hint = f"They are {' and '.join(found)}: disable all but one of them at plugins.queueSort."
        else:
            error.hint = "Enable one at plugins.queueSort, PrioritySort for instance."
        raise error
    if not names["bind"]:
        raise ConfigError.of(f"at least one bind plugin is needed for {name}")
    if len(names["placement_generate"]) > 1:
        raise ConfigError.of(f"at most one placement generate plugin is allowed for {name}")
    _preempt_for_groups(names, profile, gates)
    weights = {
        "score": _weights("score", "score plugins", profile, points_of),
        "placement_score": _weights("placement_score", "placement score plugins", profile, points_of),
    }
    return {
        point: tuple(PluginRef(plugin, weights[point][plugin] if point in weights else 0) for plugin in plugins)
        for point, plugins in names.items()
    }


def _preempt_for_groups(names: dict[str, list[str]], profile: Profile, gates: FeatureGates) -> None:
    """DefaultPreemption preempts for pod groups where it does for pods, unless that is disabled."""
    point = "pod_group_post_filter"
    if point not in names or not gates.features.generic_workload or DEFAULT_PREEMPTION not in names["post_filter"]:
        return
    disabled = {ref.name for ref in profile.plugins[point].disabled}
    if DEFAULT_PREEMPTION not in names[point] and not disabled & {DEFAULT_PREEMPTION, "*"}:
        names[point].append(DEFAULT_PREEMPTION)


def overridden_at_points(profile: Profile, points_of: PointsOf) -> Iterator[str]:
    """The plugins of ``multiPoint`` that *profile*, a valid one, enables at a point of its own, once for each point."""
    for point in _TYPE_NAMES:
        own = profile.plugins.get(point, PluginSet())
        enabled, disabled = ({ref.name for ref in refs} for refs in (own.enabled, own.disabled))
        if "*" in disabled:
            continue
        for ref in profile.plugins[MULTI_POINT].enabled:
            if ref.name in enabled - disabled and point in points_of[ref.name]:
                yield ref.name


def overridden_defaults(given: Given, gates: FeatureGates = DEFAULT_GATES) -> Iterator[str]:
    """The default plugins that a profile as the file has it enables at ``multiPoint`` with settings of its own."""
    multi_point = (given.get("plugins") or {}).get("multiPoint") or {}
    enabled, disabled = (
        {entry.get("name", "") for entry in multi_point.get(key) or ()} for key in ("enabled", "disabled")
    )
    if "*" not in disabled:
        yield from (ref.name for ref in default_plugins(gates) if ref.name in enabled - disabled)


def used_profile(profile: Profile, points_of: PointsOf) -> Profile:
    """*profile* as the effective configuration shows it: with the arguments of plugins that run, sorted by name."""
    needed = _needed(profile) & points_of.keys()
    entries = [entry for entry in profile.plugin_config if entry.name in needed and entry.args is not None]
    return evolve(profile, plugin_config=tuple(sorted(entries, key=_entry_name)))


def _entry_name(entry: PluginConfig) -> str:
    return entry.name


def _needed(profile: Profile) -> set[str]:
    return {ref.name for plugin_set in profile.plugins.values() for ref in plugin_set.enabled}


def _check_deferred_arguments(profile: Profile, points_of: PointsOf, gates: FeatureGates) -> None:
    """NodeResourcesFit validates its arguments when it is built; those of one that is not used are not validated."""
    for entry in profile.plugin_config:
        if isinstance(entry.args, NodeResourcesFitArgs) and entry.name in _needed(profile) & points_of.keys():
            problems = list(argument_problems(entry.args, "", gates))
            if problems:
                raise ConfigError(problems, prefix=f"initializing plugin {quote(entry.name)}: ")


def _check_own_list(point: str, plugin_set: PluginSet, points_of: PointsOf) -> None:
    type_name = _TYPE_NAMES[point]
    seen: set[str] = set()
    for ref in plugin_set.enabled:
        if ref.name not in points_of:
            raise _missing(point, ref.name)
        if point not in points_of[ref.name]:
            raise ConfigError.of(f"plugin {quote(ref.name)} does not extend {type_name} plugin")
        if ref.name in seen:
            raise _listed_twice(point, ref.name)
        seen.add(ref.name)


def _missing(point: str, plugin: str) -> ConfigError:
    return ConfigError.of(f"{_TYPE_NAMES[point]} {quote(plugin)} does not exist")


def _listed_twice(point: str, plugin: str) -> ConfigError:
    return ConfigError.of(f"plugin {quote(plugin)} already registered as {quote(_TYPE_NAMES[point])}")


def _expand_point(point: str, own: PluginSet, multi_point: Sequence[PluginRef], points_of: PointsOf) -> list[str]:
    """The names at *point*: its own that override a multi-point one, the multi-point ones, its other own."""
    own_names = [ref.name for ref in own.enabled]
    disabled = {ref.name for ref in own.disabled}
    if "*" in disabled:
        return own_names
    overriding: set[str] = set()
    from_multi_point: list[str] = []
    for ref in multi_point:
        if ref.name not in points_of:
            raise _missing(point, ref.name)
        if point not in points_of[ref.name] or ref.name in disabled:
            continue
        if ref.name in own_names:
            overriding.add(ref.name)
        elif ref.name in from_multi_point:
            raise _listed_twice(point, ref.name)
        else:
            from_multi_point.append(ref.name)
    first = [name for name in own_names if name in overriding]
    return [*first, *from_multi_point, *(name for name in own_names if name not in overriding)]


def _weights(point: str, what: str, profile: Profile, points_of: PointsOf) -> dict[str, int]:
    """The weight of every scorer that is enabled anywhere; the point's own list wins over the multi-point one."""
    weights: dict[str, int] = {}
    total = 0
    for ref in (*profile.plugins[point].enabled, *profile.plugins[MULTI_POINT].enabled):
        # A name that does not exist is not refused before only if every point has disabled "*"; it has no weight.
        if ref.name in weights or point not in points_of.get(ref.name, frozenset()):
            continue
        weights[ref.name] = ref.weight or 1
        if weights[ref.name] * _BEST_SCORE > _wrap_int64(_MAX_TOTAL_SCORE - total):
            raise ConfigError.of(f"{what}: total score of Score plugins could overflow")
        total += weights[ref.name] * _BEST_SCORE
    return weights


def _wrap_int64(number: int) -> int:
    """*number* as a 64-bit integer holds it: kube-scheduler's own check overflows once the sum is negative."""
    return (number + (1 << 63)) % (1 << 64) - (1 << 63)
