"""The plugins that a test names: installed ones by their names, classes, and instances that it has made itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.registry.plugin_registry import PluginRegistry, hooks_of
from trio_sched.plugin_api.extension_points import PROJECT

Plugin = str | type[Any] | Any
"""The name of an installed plugin, a class, or an instance, which keeps the args and handle that it was made with."""


def name_of(plugin: Plugin) -> str:
    """The name of a plugin, as in the configuration."""
    if isinstance(plugin, str):
        return plugin
    missing = plugin.__name__ if inspect.isclass(plugin) else type(plugin).__name__
    return str(getattr(plugin, "name", missing))


def is_instance(plugin: Plugin) -> bool:
    """Whether it is neither a name nor a class."""
    return not isinstance(plugin, str) and not inspect.isclass(plugin)


def class_of(plugin: Any) -> type[Any]:
    """A class or, for an instance, a class whose only instance that is.

    Raises:
        BadPlugin: its type has no hooks, so it is no plugin.
    """
    if inspect.isclass(plugin):
        return plugin
    kind = type(plugin)
    if not hooks_of(kind):
        what = (
            "plugins are classes, instances of classes with methods marked with @hookimpl, or names of installed ones"
        )
        raise BadPlugin(name_of(plugin), f"an object of type {kind.__name__}", what)

    def give(cls: type[Any], args: Any = None, handle: Any = None) -> Any:
        return plugin

    # type.__call__ does not initialise what __new__ returns, as it is no instance of the subclass.
    members = {"__new__": give, "name": name_of(plugin), "Args": None, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), members)


def registry_of(plugins: Sequence[Plugin]) -> PluginRegistry:
    """*plugins*, and all installed ones if there is a name among them: looking these up takes milliseconds.

    Raises:
        PluginError: one does not keep the contract, or two have one name.
    """
    return registry_with(plugins, installed=any(isinstance(plugin, str) for plugin in plugins))


@lru_cache(maxsize=1)  # each profile of a test asks again
def _installed(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The plugins that are installed in the folders of *path*, which is ``sys.path``."""
    return tuple(entry_points(group=PROJECT))


def registry_with(plugins: Iterable[Plugin], *, installed: bool = True) -> PluginRegistry:
    """All installed plugins; classes and instances among *plugins* replace installed ones of the same name.

    Args:
        plugins: the plugins.
        installed: whether the installed ones are needed at all.

    Raises:
        PluginError: one does not keep the contract, or two have one name.
    """
    classes = [class_of(plugin) for plugin in plugins if not isinstance(plugin, str)]
    taken = {getattr(plugin, "name", None) for plugin in classes}
    others = _installed(tuple(sys.path)) if installed else ()
    registry = PluginRegistry.of(found for found in others if found.name not in taken)
    for plugin in classes:
        registry.add(plugin)
    return registry
