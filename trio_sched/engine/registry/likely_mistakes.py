"""What a plugin class has that is allowed, but is probably not what its author meant."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterator
from typing import Any, Final

from trio_sched.plugin_api.extension_points import HOOK_NAMES, PROJECT

_MARKS: Final = (f"{PROJECT}_impl", f"{PROJECT}_spec")
_ATTRIBUTES: Final = (
    "Args",
    "depends_on",
    "on_failure",
    "pre_bind_timeout_seconds",
    "requires_api",
    "run_on_leader_only",
    "run_once_per_process",
    "watches",
    "writes",
)
_CLOSE: Final = 0.82
"""How similar two names are of which one is meant to be the other, as `difflib` measures it."""


def likely_mistakes(plugin: type[Any]) -> list[str]:
    """Sentences that name each of them and the fix; none for a class without any."""
    unmarked = [
        f"{_definer(plugin, hook)}.{hook} has the name of a hook, but is not marked, so it is never called as one; put "
        f"@hookimpl above it, or call it something else"
        for hook in unmarked_hooks(plugin)
    ]
    misspelt = [
        f"{_definer(plugin, found)}.{found} means nothing; did you mean {wanted!r}?"
        for wanted in _ATTRIBUTES
        if inspect.getattr_static(plugin, wanted, None) is None
        for found in close_attributes(plugin, wanted)
    ]
    return unmarked + misspelt + list(_uncached(plugin))


def _uncached(plugin: type[Any]) -> Iterator[str]:
    if getattr(plugin, "depends_on", None) is not None and not _is_hook(plugin, "sign"):
        yield (
            f"{_definer(plugin, 'depends_on')}.depends_on has no effect without the hook sign, because answers are "
            f"kept for pods with equal signatures; add sign, or take depends_on away"
        )


def _is_hook(plugin: type[Any], name: str) -> bool:
    return hasattr(inspect.getattr_static(plugin, name, None), _MARKS[0])


def unmarked_hooks(plugin: type[Any]) -> list[str]:
    """The methods that have a hook's name and are not marked as hooks, in the order in which they are called."""
    return [hook for hook in HOOK_NAMES if _is_unmarked(inspect.getattr_static(plugin, hook, None))]


def _is_unmarked(value: Any) -> bool:
    is_method = inspect.isroutine(value) or isinstance(value, staticmethod | classmethod)
    return is_method and not any(hasattr(value, mark) for mark in _MARKS)


def close_attributes(plugin: type[Any], wanted: str) -> list[str]:
    """The public class attributes, methods aside, whose names are nearly *wanted*."""
    return [
        name
        for name in dir(plugin)
        if not name.startswith("_")
        and name not in _ATTRIBUTES
        and difflib.SequenceMatcher(None, name.casefold(), wanted.casefold()).ratio() >= _CLOSE
        and _is_value(inspect.getattr_static(plugin, name, None), wanted)
    ]


def _is_value(value: Any, wanted: str) -> bool:
    if wanted == "Args":
        return inspect.isclass(value)
    is_computed = inspect.isroutine(value) or inspect.isclass(value) or inspect.isdatadescriptor(value)
    return not is_computed and not isinstance(value, staticmethod | classmethod)


def _definer(plugin: type[Any], name: str) -> str:
    """The name of the class that has the attribute *name*: *plugin*, or one of its bases."""
    return next((base.__name__ for base in plugin.__mro__ if name in vars(base)), plugin.__name__)
