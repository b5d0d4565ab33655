"""From ``pluginConfig`` in the file to the class that a plugin calls its ``Args``.

What reads such classes is imported where it is used: the arguments of Kubernetes' own plugins are instances already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from trio_sched.engine.hooks.hook_failure import describe_error
from trio_sched.engine.hooks.plugin_errors import PluginArgsError
from trio_sched.interrupts import raise_interrupt
from trio_sched.plugin_api.arguments import PluginArguments

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_OF_FRAMEWORK: Final = ("apiVersion", "kind")


def plugin_args(name: str, plugin: type[Any], given: Any) -> Any:
    """What ``plugin.__init__`` gets as *args*.

    Args:
        name: the plugin's name.
        plugin: its class; ``Args``, if it has one, is a class of attrs, a dataclass or a ``msgspec.Struct``.
        given: the entry of the completed configuration: an instance already (the plugins that Kubernetes knows), a
            mapping as it stands in the file, or None.

    Raises:
        PluginArgsError: every problem at once.
    """
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        if isinstance(given, Mapping) and set(given) - set(_OF_FRAMEWORK):
            raise PluginArgsError(name, ["the plugin takes no arguments; remove the entry"])
        return None
    if isinstance(given, wanted):
        return given
    if given is None:
        given = {}
    if isinstance(given, PluginArguments):  # a plugin in place of one of Kubernetes, whose arguments are read already
        kind = type(given).__name__
        fix = f"set Args = {kind} (of trio_sched.plugin_api), or give the plugin a name of its own"
        raise PluginArgsError(name, [f"args: the arguments of this name are Kubernetes' {kind}; {fix}"])
    if not isinstance(given, Mapping):
        raise PluginArgsError(name, [f"args: expected a mapping, got {type(given).__name__}"])
    from trio_sched.engine.registry.argument_classes import UnreadableArgs, record_of

    problems: list[str] = []
    try:
        made = record_of(wanted).read(
            {key: value for key, value in given.items() if key not in _OF_FRAMEWORK}, "args", problems
        )
    except UnreadableArgs as error:
        raise PluginArgsError(name, [str(error)]) from error
    except BaseException as error:  # validators and converters are the plugin's code, which may raise anything
        raise_interrupt(error)
        raise PluginArgsError(name, [f"args: {describe_error(error)}"]) from error
    if problems:
        raise PluginArgsError(name, problems)
    return made


def written_args(plugin: type[Any], args: Any) -> dict[str, Any]:
    """*args*, an instance of the ``Args`` of *plugin*, as they would stand in the file.

    Raises:
        UnreadableArgs: the class cannot be read from a file.
    """
    from trio_sched.engine.registry.argument_classes import record_of

    written: dict[str, Any] = record_of(plugin.Args).write(args)
    return written


def args_schema(name: str, plugin: type[Any]) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of what ``pluginConfig[].args`` may be for *plugin*.

    Raises:
        UnreadableArgs: its class of arguments cannot be read from a file.
    """
    from trio_sched.engine.registry.argument_classes import record_of

    wanted = getattr(plugin, "Args", None)
    definitions: dict[str, Any] = {}
    body: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    if wanted is not None:
        body = record_of(wanted).object_schema(definitions)
    of_framework = {key: {"type": "string"} for key in _OF_FRAMEWORK}
    return {
        "$schema": SCHEMA_DIALECT,
        "title": f"Arguments of {name}",
        **body,
        "properties": {**of_framework, **body["properties"]},
        **({"$defs": {key: schema for key, (_record, schema) in definitions.items()}} if definitions else {}),
    }
