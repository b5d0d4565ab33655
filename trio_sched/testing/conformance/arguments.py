"""The part of the conformance checks that is about arguments: can they be written to a file, and read again?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trio_sched.engine.hooks.plugin_errors import PluginArgsError
from trio_sched.engine.registry.plugin_args import plugin_args, written_args


def args_problems(name: str, plugin: type[Any], given: Any) -> Iterator[str]:
    """What is wrong with the ``Args`` of *plugin*, read from *given*."""
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        return
    made = plugin_args(name, plugin, given)
    written = written_args(plugin, made)
    try:
        if written_args(plugin, plugin_args(name, plugin, written)) != written:
            yield f"Args {made!r} come back as something else when they are written to a file and read again"
    except PluginArgsError as error:
        yield f"Args that were written to a file cannot be read again: {error}"
    try:
        plugin_args(name, plugin, {"noSuchArgument": 1})
    except PluginArgsError:
        return
    yield "Args take a key that they do not have"
