"""What runs at each point under a component configuration before v1beta3: its plugin sets merged with its defaults.

Before v1beta3 every point had a default list of its own, without ``multiPoint``, and all scorers but two had the
weight 1.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS, default_plugins
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.profile_draft import NEWER_PLUGINS, gained_points
from trio_sched.config.legacy.retired_plugins import (
    AVOID_PODS,
    SELECTOR_SPREAD,
    VERSIONS,
    VOLUME_LIMITS,
    removed_before,
)
from trio_sched.config.wire_types import POINTS

Given = Mapping[str, Any]
"""The fields that a part of the document gives, by their names there."""

_WEIGHTS: Final = {"PodTopologySpread": 2, AVOID_PODS: 10_000}
_ALL: Final = "*"


@frozen
class Listed:
    """A plugin, under its old name, at a point; *path* is where the document names it, empty if it doesn't."""

    plugin: str
    weight: int
    path: str = ""


@frozen
class OldLists:
    """What ran at each point, and what the document switched off by name (pairs of plugin and point)."""

    points: Mapping[str, tuple[Listed, ...]]
    named_off: frozenset[tuple[str, str]]


def old_lists(plugins: Given, version: str, changes: Changes, path: str) -> OldLists:
    """Merge the sets of *plugins* with the defaults of *version*.

    Args:
        plugins: the decoded ``plugins`` of a profile.
        version: which legacy version it is written in.
        changes: where what has no meaning any more is noted.
        path: of *plugins* in the document.
    """
    points: dict[str, tuple[Listed, ...]] = {}
    named_off: set[tuple[str, str]] = set()
    sets = _todays_points(plugins, version, changes, path)
    for point in dict.fromkeys([*_default_points(), *sets]):
        given, place = sets.get(point, ({}, ""))
        off = {ref.get("name", "") for ref in given.get("disabled") or ()}
        for index, name in enumerate(ref.get("name", "") for ref in given.get("disabled") or ()):
            _check_name(name, version, changes, f"{place}.disabled[{index}]")
            named_off.add((name, point))
            if name in VOLUME_LIMITS:
                changes.note(f"{place}.disabled[{index}]", f"{name} is gone; NodeVolumeLimits counts these volumes now")
        enabled = _enabled(given.get("enabled") or (), version, changes, place)
        defaults = [] if _ALL in off else [ref for ref in _defaults(point, version) if ref.plugin not in off]
        points[point] = tuple(_merge(defaults, enabled))
    return OldLists(points, frozenset(named_off))


def _enabled(refs: Sequence[Given], version: str, changes: Changes, place: str) -> list[Listed]:
    enabled: list[Listed] = []
    for index, ref in enumerate(refs):
        name, path = ref.get("name", ""), f"{place}.enabled[{index}]"
        _check_name(name, version, changes, path)
        if any(name == other.plugin for other in enabled):
            changes.refuse(path, f"plugin {name!r} is enabled here already; leave one of the two out")
        enabled.append(Listed(name, ref.get("weight", 0), path))
    return enabled


def _merge(defaults: Sequence[Listed], enabled: Sequence[Listed]) -> list[Listed]:
    """A default that is enabled again keeps its place and takes the weight given."""
    again = {ref.plugin: ref for ref in enabled}
    known = {ref.plugin for ref in defaults}
    return [*(again.get(ref.plugin, ref) for ref in defaults), *(ref for ref in enabled if ref.plugin not in known)]


def _check_name(name: str, version: str, changes: Changes, path: str) -> None:
    if removed_before(name, version):
        changes.refuse(path, f"plugin {name!r} was no part of {version} any more; leave it out")


def _todays_points(plugins: Given, version: str, changes: Changes, path: str) -> dict[str, tuple[Given, str]]:
    """The sets of *plugins* by the points as they are called today, each with its path."""
    sets: dict[str, tuple[Given, str]] = {}
    for point, given in plugins.items():
        place = f"{path}.{point}"
        if point == "postFilter" and version == "v1alpha1":
            # In that version the point after filtering was the one that prepared scoring.
            changes.note(place, "now preScore")
            sets["preScore"] = (given, place)
        elif point == "unreserve":
            changes.note(place, "now part of reserve: a plugin there is asked to unreserve, too")
        else:
            sets[point] = (given, place)
    undone = plugins.get("unreserve", {}).get("enabled") or ()
    if undone:
        reserve, place = sets.get("reserve", ({}, f"{path}.unreserve"))
        named = {ref.get("name") for ref in reserve.get("enabled") or ()} | {"VolumeBinding"}
        more = [ref for ref in undone if ref.get("name") not in named]
        sets["reserve"] = ({**reserve, "enabled": (*(reserve.get("enabled") or ()), *more)}, place)
    return sets


def _default_points() -> list[str]:
    return [point for point in POINTS if _todays_defaults(point)]


def _todays_defaults(point: str) -> list[str]:
    """The default plugins at *point* that every legacy version had there."""
    gained = gained_points()
    return [
        ref.name
        for ref in default_plugins(DEFAULT_GATES)
        if POINTS[point] in KNOWN_PLUGINS[ref.name]
        and ref.name not in NEWER_PLUGINS
        and (ref.name, point) not in gained
    ]


def _defaults(point: str, version: str) -> list[Listed]:
    """The default list of *point* in *version*; in today's order, which changes no decision and is short to write."""
    age = VERSIONS.index(version)
    names = _todays_defaults(point)
    if point == "score" and age <= VERSIONS.index("v1beta1"):
        names = ["NodeResourcesLeastAllocated" if name == "NodeResourcesFit" else name for name in names]
        names.append(AVOID_PODS)
    if point in ("preScore", "score") and age < VERSIONS.index("v1beta1"):
        names.append(SELECTOR_SPREAD)
    return [Listed(name, _WEIGHTS.get(name, 1) if point == "score" else 0) for name in names]
