"""The part of the conformance checks that is about arguments: can they be written to a file, and read again?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import attrs

from trio_sched.engine.plugin_args import plugin_args
from trio_sched.engine.plugin_errors import PluginArgsError


def args_problems(name: str, plugin: type[Any], given: Any) -> Iterator[str]:
    """What is wrong with the ``Args`` of *plugin*, read from *given*."""
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        return
    made = plugin_args(name, plugin, given)
    try:
        if _written(plugin_args(name, plugin, _written(made))) != _written(made):
            yield f"Args {made!r} come back as something else when they are written to a file and read again"
    except PluginArgsError as error:
        yield f"Args that were written to a file cannot be read again: {error}"
    try:
        plugin_args(name, plugin, {"noSuchArgument": 1})
    except PluginArgsError:
        return
    yield "Args take a key that they do not have"


def _written(value: Any) -> Any:
    """*value* as in a configuration file; left out are what is None anyway, and what ``__init__`` does not take."""
    if attrs.has(type(value)):
        fields = [(a, getattr(value, a.name)) for a in attrs.fields(type(value)) if a.init]
        return {_camel(a.name): _written(part) for a, part in fields if part is not None or a.default is not None}
    if isinstance(value, Mapping):
        return {_written(key): _written(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_written(part) for part in value), key=repr)
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [_written(part) for part in value]
    return value


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
