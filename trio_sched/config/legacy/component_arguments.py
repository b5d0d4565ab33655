"""Reads the ``pluginConfig`` of a legacy profile: the arguments of today's plugins and of retired ones."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from trio_sched.config.decode import GoType, ListOf, String, Struct
from trio_sched.config.document import interpret
from trio_sched.config.errors import ConfigError
from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.retired_plugins import (
    NODE_LABEL,
    SERVICE_AFFINITY,
    VERSIONS,
    is_retired,
    removed_before,
)
from trio_sched.config.legacy.values import by_lower_case, decode_whole, values_of, with_shape_case
from trio_sched.config.plugin_arguments.resource_spec import RESOURCES
from trio_sched.config.plugin_arguments.table import ARGUMENT_STRUCTS
from trio_sched.config.plugin_arguments.utilization_shape import SHAPE
from trio_sched.config.wire_types import GROUP, TYPE_META
from trio_sched.documents.tree import Object, Tree

_STRINGS: Final = ListOf(String())


def _struct(plugin: str, fields: Mapping[str, GoType]) -> Struct:
    return Struct(f"{plugin}Args", fields, embedded=TYPE_META)


_RETIRED: Final = {
    "NodeResourcesLeastAllocated": _struct("NodeResourcesLeastAllocated", {"resources": RESOURCES}),
    "NodeResourcesMostAllocated": _struct("NodeResourcesMostAllocated", {"resources": RESOURCES}),
    "RequestedToCapacityRatio": _struct("RequestedToCapacityRatio", {"shape": SHAPE, "resources": RESOURCES}),
    NODE_LABEL: _struct(
        NODE_LABEL,
        {
            "presentLabels": _STRINGS,
            "absentLabels": _STRINGS,
            "presentLabelsPreference": _STRINGS,
            "absentLabelsPreference": _STRINGS,
        },
    ),
    SERVICE_AFFINITY: _struct(SERVICE_AFFINITY, {"affinityLabels": _STRINGS, "antiAffinityLabelsPreference": _STRINGS}),
}
_OLD_FIT: Final = _struct("NodeResourcesFit", {"ignoredResources": _STRINGS, "ignoredResourceGroups": _STRINGS})
_KINDS_OF: Final = frozenset({*VERSIONS, "v1"})
_CASELESS: Final = by_lower_case(
    *(name for struct in (*_RETIRED.values(), *ARGUMENT_STRUCTS.values(), _OLD_FIT) for name in struct.fields),
    *("name", "weight", "utilization", "score"),
)


@frozen
class OldArguments:
    """The arguments of the plugins of a profile."""

    todays: Mapping[str, dict[str, Any]]
    """In-tree plugins of today, as v1 has it."""
    retired: Mapping[str, Mapping[str, Any]]
    """Retired plugins, decoded."""
    foreign: Mapping[str, Any]
    """Out-of-tree plugins, as they were written."""


def old_arguments(entries: Sequence[Mapping[str, Any]], version: str, changes: Changes, path: str) -> OldArguments:
    """Read the entries of a ``pluginConfig``.

    Raises:
        ConfigError: the arguments of a plugin are not what it takes.
    """
    todays: dict[str, dict[str, Any]] = {}
    retired: dict[str, Mapping[str, Any]] = {}
    foreign: dict[str, Any] = {}
    for index, entry in enumerate(entries):
        name, tree, place = entry.get("name", ""), entry.get("args"), f"{path}[{index}]"
        if name in todays or name in retired or name in foreign:
            changes.refuse(place, f"plugin {name!r} is told something here already; leave one of the two out")
        elif removed_before(name, version):
            changes.refuse(place, f"plugin {name!r} was no part of {version} any more; leave it out")
        elif name in _RETIRED:
            retired[name] = decode_whole(_without_kind(name, tree, version), _RETIRED[name], where=f"{place}.args: ")
        elif is_retired(name):
            changes.note(place, f"plugin {name!r} is gone, and with it what it is told")
        elif name in ARGUMENT_STRUCTS:
            todays[name] = _todays_arguments(name, tree, version, f"{place}.args: ")
        else:
            foreign[name] = values_of(tree)
    return OldArguments(todays, retired, foreign)


def _todays_arguments(plugin: str, tree: Tree, version: str, where: str) -> dict[str, Any]:
    tree = _without_kind(plugin, tree, version)
    # The scoring strategy came in the version that removed the plugins which it replaces.
    old = plugin == "NodeResourcesFit" and VERSIONS.index(version) <= VERSIONS.index("v1beta1")
    given = decode_whole(tree, _OLD_FIT if old else ARGUMENT_STRUCTS[plugin], where=where)
    values: dict[str, Any] = values_of(tree) or {}
    if plugin == "PodTopologySpread" and VERSIONS.index(version) <= VERSIONS.index("v1beta1"):
        constraints = given.get("defaultConstraints")
        if constraints and not given.get("defaultingType"):
            values["defaultingType"] = "List"
    return values


def _without_kind(plugin: str, tree: Tree, version: str) -> Tree:
    """The arguments without version and kind, which must be those of this plugin in some version.

    Raises:
        ConfigError: they are of another version or kind.
    """
    kind = interpret(tree)
    group, _, told = kind.api_version.rpartition("/")
    kind = evolve(kind, kind=kind.kind or f"{plugin}Args")
    if kind.kind != f"{plugin}Args" or (kind.api_version and (group != GROUP or told not in _KINDS_OF)):
        got = f"{kind.kind} of {kind.api_version or version}"
        raise ConfigError.of(f"args for plugin {plugin} must be {plugin}Args of {GROUP}/{version}, got {got}")
    if VERSIONS.index(version) < VERSIONS.index("v1beta1"):
        tree = with_shape_case(tree, _CASELESS)
    if isinstance(tree, Object):
        return Object(tuple(pair for pair in tree.pairs if pair[0].lower() not in ("apiversion", "kind")))
    return tree
