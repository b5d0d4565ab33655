"""The functions of a plugin's hooks, each callable with all arguments of the hook by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

import pluggy

from trio_sched.engine.hooks.bound_hooks import HookFunction
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api.extension_points import HOOK_NAMES, PROJECT, ExtensionPoints

_OFFERED = {hook: list(inspect.signature(getattr(ExtensionPoints, hook)).parameters)[1:] for hook in HOOK_NAMES}
"""The arguments of every hook."""
_HOOK_NAMES = frozenset(HOOK_NAMES)
_SPECIFICATIONS = {
    hook: pluggy.PluginManager(PROJECT).parse_hookspec_opts(ExtensionPoints, hook) for hook in HOOK_NAMES
}
_taken: WeakKeyDictionary[Callable[..., Any], tuple[str, ...]] = WeakKeyDictionary()
"""What pluggy says that functions take: a test of a plugin makes thousands of instances of one class."""


class _PluginManager(pluggy.PluginManager):
    """Looks for hooks only where their names are, instead of at every attribute of every plugin."""

    def parse_hookspec_opts(self, _module_or_class: object, name: str) -> pluggy.HookspecOpts | None:
        return _SPECIFICATIONS.get(name)

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        return super().parse_hookimpl_opts(plugin, name) if name in _HOOK_NAMES else None


def hook_functions(plugin: str, source: str, instance: object, hooks: Iterable[str]) -> dict[str, HookFunction]:
    """Hook → the function of *instance* for it, of those of *hooks*, which its class has.

    Raises:
        BadPlugin: a function is marked no more, or takes what its hook does not offer.
    """
    functions: dict[str, HookFunction] = {hook: getattr(instance, hook) for hook in hooks}
    arguments = {hook: taken for hook, one in functions.items() if (taken := _known(one)) is not None}
    if len(arguments) < len(functions):
        arguments = _read(plugin, source, instance)
    for hook, function in functions.items():
        if hook not in arguments:
            raise BadPlugin(plugin, source, f"hook {hook!r} is not marked with hookimpl where the instance has it")
        functions[hook] = _positional(function, _OFFERED[hook], list(arguments[hook]))
    return functions


def _known(function: HookFunction) -> tuple[str, ...] | None:
    plain = getattr(function, "__func__", function)
    return _taken.get(plain) if inspect.isfunction(plain) else None


def _read(plugin: str, source: str, instance: object) -> dict[str, tuple[str, ...]]:
    """Hook → the arguments that pluggy passes to the function of *instance*."""
    manager = _PluginManager(PROJECT)
    manager.add_hookspecs(ExtensionPoints)
    try:
        manager.register(instance)
    except pluggy.PluginValidationError as problem:
        raise BadPlugin(plugin, source, "; ".join(str(problem).splitlines()[1:])) from problem
    found: dict[str, tuple[str, ...]] = {}
    for hook in HOOK_NAMES:
        for one in getattr(manager.hook, hook).get_hookimpls():
            found[hook] = tuple(one.argnames)
            plain = getattr(one.function, "__func__", one.function)
            if inspect.isfunction(plain):
                _taken[plain] = found[hook]
    return found


def _positional(function: HookFunction, offered: list[str], taken: list[str]) -> HookFunction:
    if taken == offered:
        return function
    positions = [offered.index(argument) for argument in taken]
    if positions == list(range(len(taken))):
        count = len(taken)
        return lambda *args: function(*args[:count])
    return lambda *args: function(*[args[i] for i in positions])
