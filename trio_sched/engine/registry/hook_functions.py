"""The functions of a plugin's hooks, each callable with all arguments of the hook by position."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any
from weakref import WeakKeyDictionary

from trio_sched.engine.hooks.bound_hooks import HookFunction
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api.extension_points import HOOK_NAMES, ExtensionPoints

_OFFERED = {hook: list(inspect.signature(getattr(ExtensionPoints, hook)).parameters)[1:] for hook in HOOK_NAMES}
"""The arguments of every hook."""
_taken: WeakKeyDictionary[Callable[..., Any], tuple[str, ...]] = WeakKeyDictionary()
"""The arguments of functions: to read a signature takes long, and the plugins of a test are made thousands of times."""


def hook_functions(plugin: str, source: str, instance: object, hooks: Iterable[str]) -> dict[str, HookFunction]:
    """Hook → the function of *instance* for it, of those of *hooks*, which its class has.

    Raises:
        BadPlugin: a function takes what its hook does not offer.
    """
    functions = {}
    for hook in hooks:
        function, offered = getattr(instance, hook), _OFFERED[hook]
        taken = _arguments(function)
        if unknown := [argument for argument in taken if argument not in offered]:
            problem = f"hook {hook!r} takes {unknown[0]!r}; what it can take: {', '.join(offered) or 'nothing'}"
            raise BadPlugin(plugin, source, problem)
        functions[hook] = _positional(function, offered, list(taken))
    return functions


def _arguments(function: Any) -> tuple[str, ...]:
    """What a call must pass to *function*, which may be bound to an object."""
    key = getattr(function, "__func__", function)
    if not inspect.isfunction(key):
        return _read_arguments(function)
    if (taken := _taken.get(key)) is None:
        taken = _taken[key] = _read_arguments(function)
    return taken


def _read_arguments(function: Any) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return tuple(one.name for one in parameters if one.kind in kinds and one.default is one.empty)


def _positional(function: HookFunction, offered: list[str], taken: list[str]) -> HookFunction:
    if taken == offered:
        return function
    positions = [offered.index(argument) for argument in taken]
    if positions == list(range(len(taken))):
        count = len(taken)
        return lambda *args: function(*args[:count])
    return lambda *args: function(*[args[i] for i in positions])
