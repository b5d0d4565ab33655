"""From ``pluginConfig`` in the file to the attrs class that a plugin calls its ``Args``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from typing import Any, get_origin

import attrs
import cattrs
from cattrs import transform_error
from cattrs.gen import make_dict_structure_fn, override
from cattrs.v import format_exception

from trio_sched.engine.plugin_errors import PluginArgsError

_OF_FRAMEWORK = ("apiVersion", "kind")
_WORDS: dict[type[Any], str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_KEY_OR_INDEX = re.compile(r"\[[^\]]*\]|_([a-z0-9])")


def plugin_args(name: str, plugin: type[Any], given: Any) -> Any:
    """What ``plugin.__init__`` gets as *args*.

    Args:
        name: the plugin's name.
        plugin: its class; ``Args``, if it has one, is an attrs class.
        given: the entry of the completed configuration: an instance already (the plugins that Kubernetes knows), a
            mapping as it stands in the file, or None.

    Raises:
        PluginArgsError: every problem at once.
    """
    wanted = getattr(plugin, "Args", None)
    if wanted is None:
        if given and set(given) - set(_OF_FRAMEWORK):
            raise PluginArgsError(name, ["the plugin takes no arguments; remove the entry"])
        return None
    if isinstance(given, wanted):
        return given
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise PluginArgsError(name, [f"args: expected a mapping, got {type(given).__name__}"])
    raw = {key: value for key, value in given.items() if key not in _OF_FRAMEWORK}
    try:
        return _converter().structure(raw, wanted)
    except Exception as exc:  # cattrs gathers everything, the validators' own exceptions included
        raise PluginArgsError(name, map(_as_in_the_file, transform_error(exc, "args", _describe))) from exc


def _converter() -> cattrs.Converter:
    """Reads camelCase keys into snake_case attributes, refuses unknown keys, does not coerce."""
    converter = cattrs.Converter(forbid_extra_keys=True)

    def structure_attrs(cls: type[Any]) -> Any:
        renames = {a.name: override(rename=_camel(a.name)) for a in attrs.fields(cls)}
        return make_dict_structure_fn(cls, converter, **renames)  # type: ignore[arg-type]  # cattrs' own signature

    _read_only_from(converter, Mapping, "a mapping", _is_mapping)
    _read_only_from(converter, list | tuple | set | frozenset, "a list", _is_collection)
    converter.register_structure_hook_factory(attrs.has, structure_attrs)
    _read_only_from(converter, Mapping, "a mapping", attrs.has)
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, _strict)
    return converter


def _is_mapping(wanted: Any) -> bool:
    origin = get_origin(wanted) or wanted
    return inspect.isclass(origin) and issubclass(origin, Mapping)


def _is_collection(wanted: Any) -> bool:
    origin = get_origin(wanted) or wanted
    if not inspect.isclass(origin) or issubclass(origin, str | bytes):
        return False
    return origin in (Iterable, Collection) or issubclass(origin, Sequence | Set)


def _read_only_from(converter: cattrs.Converter, given: Any, words: str, covers: Callable[[Any], bool]) -> None:
    """Have *converter* refuse values of other types than *given* where a type that *covers* accepts is wanted.

    cattrs takes whatever can be iterated for a list: of a text its letters, of a mapping its keys.
    """
    being_made: set[Any] = set()

    def make(wanted: Any) -> Callable[[Any, Any], Any]:
        being_made.add(wanted)  # the hook of cattrs itself is found by leaving this one out
        try:
            structure = converter.get_structure_hook(wanted, cache_result=False)
        finally:
            being_made.discard(wanted)

        def checked(value: Any, wanted: Any) -> Any:
            if isinstance(value, given):
                return structure(value, wanted)
            raise TypeError(f"expected {words}, got {value!r}")

        return checked

    converter.register_structure_hook_factory(lambda wanted: covers(wanted) and wanted not in being_made, make)


def _strict(value: Any, wanted: type[Any]) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise TypeError(f"expected {_WORDS[wanted]}, got {value!r}")
    return value


def _describe(exc: BaseException, wanted: type[Any] | None) -> str:
    """What is wrong, from the decoder or from a validator of the plugin."""
    if isinstance(exc, TypeError | ValueError) and exc.args and isinstance(exc.args[0], str):
        return exc.args[0]  # attrs' validators put the attribute and the value behind their text
    return format_exception(exc, wanted)


def _as_in_the_file(problem: str) -> str:
    """The place first, and its keys in camelCase."""
    text, _at, path = problem.rpartition(" @ ")
    keys = _KEY_OR_INDEX.sub(lambda match: match[0] if match[1] is None else match[1].upper(), path)
    return f"{keys}: {text}"


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
