"""The in-tree plugins that take arguments, and what the rest of `trio_sched.config` asks about them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from trio_sched.config.decode import Given, GoType, Struct
from trio_sched.config.errors import Problem
from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.plugin_arguments import (
    default_preemption,
    dynamic_resources,
    inter_pod_affinity,
    node_affinity,
    node_resources_balanced_allocation,
    node_resources_fit,
    pod_topology_spread,
    volume_binding,
)
from trio_sched.config.wire_types import API_VERSION, TYPE_META
from trio_sched.go.text import json_text
from trio_sched.plugin_api.arguments import PluginArguments

_Args = TypeVar("_Args")


class ArgumentsOf(Protocol[_Args]):
    """What the file of one plugin defines; *_Args* is the plugin's class in `trio_sched.plugin_api.arguments`."""

    @property
    def FIELDS(self) -> Mapping[str, GoType]:
        """The fields on the wire."""

    def defaults(self, gates: FeatureGates, /) -> _Args:
        """The arguments where the configuration gives none."""

    def convert(self, given: Given, default: _Args, /) -> _Args:
        """The arguments from the fields that are *given*, the others from *default*."""

    def validate(self, args: _Args, at: str, gates: FeatureGates, /) -> Iterator[Problem]:
        """What is wrong with *args*; *at*, empty or with a dot at its end, stands before every path."""

    def dump(self, args: _Args, /) -> dict[str, Any]:
        """The fields as a completed file shows them."""


def _row(file: ArgumentsOf[_Args]) -> ArgumentsOf[Any]:
    """*file*, of which the type checker has seen that its functions agree on one class."""
    return file


PLUGIN_ARGUMENTS: Final[Mapping[str, ArgumentsOf[Any]]] = {
    "DefaultPreemption": _row(default_preemption),
    "DynamicResources": _row(dynamic_resources),
    "InterPodAffinity": _row(inter_pod_affinity),
    "NodeAffinity": _row(node_affinity),
    "NodeResourcesBalancedAllocation": _row(node_resources_balanced_allocation),
    "NodeResourcesFit": _row(node_resources_fit),
    "PodTopologySpread": _row(pod_topology_spread),
    "VolumeBinding": _row(volume_binding),
}
"""Every in-tree plugin that takes arguments, by its name."""

ARGUMENT_STRUCTS: Final[Mapping[str, Struct]] = {
    plugin: Struct(f"v1.{plugin}Args", file.FIELDS, embedded=TYPE_META) for plugin, file in PLUGIN_ARGUMENTS.items()
}
"""The arguments on the wire, by the plugin's name; their kind is that name and ``Args``."""


def complete_arguments(plugin: str, given: Given, gates: FeatureGates) -> PluginArguments:
    """The arguments of the in-tree *plugin*: what is *given*, else its default under *gates*.

    Raises:
        KeyError: *plugin* takes no arguments.
    """
    file = PLUGIN_ARGUMENTS[plugin]
    args: PluginArguments = file.convert(given, file.defaults(gates))
    return args


def argument_problems(args: PluginArguments, path: str, gates: FeatureGates) -> Iterator[Problem]:
    """What is wrong with *args*, which stand at *path* (empty: paths begin with the field)."""
    return _file_of(args).validate(args, f"{path}." if path else "", gates)


def dump_arguments(args: PluginArguments) -> dict[str, Any]:
    """*args* as they stand in a completed configuration file."""
    return {"apiVersion": API_VERSION, "kind": _kind(args), **_file_of(args).dump(args)}


def internal_arguments(args: PluginArguments) -> str:
    """*args* as JSON with the names of kube-scheduler's internal types, as its errors show them."""
    return json_text({key[:1].upper() + key[1:]: value for key, value in _file_of(args).dump(args).items()})


def _kind(args: PluginArguments) -> str:
    # The public classes are named after the kinds.
    return type(args).__name__


def _file_of(args: PluginArguments) -> ArgumentsOf[Any]:
    return PLUGIN_ARGUMENTS[_kind(args).removesuffix("Args")]
