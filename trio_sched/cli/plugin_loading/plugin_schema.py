"""JSON Schemas of plugin arguments, for editors: of every plugin that is installed, those of Kubernetes included."""

from __future__ import annotations

from typing import Any

from trio_sched.config.decode import Bool, Duration, Float32, GoType, Integer, ListOf, MapOf, String, Struct
from trio_sched.config.feature_gates import DEFAULT_GATES
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.plugin_arguments.table import ARGUMENT_STRUCTS, complete_arguments, dump_arguments
from trio_sched.engine.hooks.plugin_errors import BadPlugin, UnknownPlugin
from trio_sched.engine.registry.argument_classes import UnreadableArgs
from trio_sched.engine.registry.plugin_args import SCHEMA_DIALECT, args_schema
from trio_sched.engine.registry.plugin_registry import PluginRegistry, is_built_in
from trio_sched.errors import nearest_name
from trio_sched.plugin_api.argument_types import DURATION_PATTERN


def plugin_schema(name: str, registry: PluginRegistry) -> dict[str, Any]:
    """The schema of ``pluginConfig[].args`` for the plugin *name*.

    Raises:
        UnknownPlugin: there is none of that name; the error suggests another.
        PluginError: it cannot be loaded.
    """
    if name not in registry and name not in KNOWN_PLUGINS:
        raise UnknownPlugin(name, nearest_name(name, {*registry.names, *KNOWN_PLUGINS}))
    plugin = registry.load(name) if name in registry else None
    if name in ARGUMENT_STRUCTS and (plugin is None or is_built_in(plugin)):
        return _schema_of_kubernetes(name)
    try:
        return args_schema(name, plugin if plugin is not None else type(name, (), {}))
    except UnreadableArgs as error:
        raise BadPlugin(name, registry.source(name), str(error)) from error


def _schema_of_kubernetes(name: str) -> dict[str, Any]:
    defaults = dump_arguments(complete_arguments(name, {}, DEFAULT_GATES))
    schema = _struct(ARGUMENT_STRUCTS[name])
    for key, default in defaults.items():
        if key in schema["properties"] and key not in ("apiVersion", "kind"):
            schema["properties"][key]["default"] = default
    return {"$schema": SCHEMA_DIALECT, "title": f"Arguments of {name}", **schema}


def _struct(struct: Struct) -> dict[str, Any]:
    fields = dict(struct.fields)
    for embedded in struct.embedded.values():
        fields |= embedded
    properties = {key: _schema(type_) for key, type_ in fields.items()}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _schema(type_: GoType) -> dict[str, Any]:
    match type_:
        case Bool():
            return {"type": "boolean"}
        case String():
            return {"type": "string"}
        case Integer(bits=bits):
            return {"type": "integer", "minimum": -(1 << (bits - 1)), "maximum": (1 << (bits - 1)) - 1}
        case Float32():
            return {"type": "number"}
        case Duration():
            return {"type": ["string", "null"] if type_.optional else "string", "pattern": DURATION_PATTERN}
        case ListOf(item=item):
            return {"type": "array", "items": _schema(item)}
        case MapOf(value=value):
            return {"type": "object", "additionalProperties": _schema(value)}
        case Struct():
            return _struct(type_)
    return {}
