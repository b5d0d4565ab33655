"""From ``pluginConfig`` in the file to the attrs class that a plugin calls its ``Args``."""

from __future__ import annotations

import re
from collections.abc import (
    Callable,
    Collection,
    Iterable,
    Mapping,
    MutableMapping,
    MutableSequence,
    MutableSet,
    Sequence,
    Set,
)
from functools import partial
from typing import Any, get_args, get_origin

import attrs
import cattrs
from cattrs import IterableValidationError, IterableValidationNote, transform_error
from cattrs.gen import make_dict_structure_fn, override
from cattrs.v import format_exception

from trio_sched.documents.errors import shortened
from trio_sched.engine.plugin_errors import PluginArgsError

_OF_FRAMEWORK = ("apiVersion", "kind")
_WORDS: dict[type[Any], str] = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
_COLLECTIONS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    Sequence: tuple,
    MutableSequence: list,
    Set: frozenset,
    MutableSet: set,
    Iterable: tuple,
    Collection: tuple,
}
_MAPPINGS = (dict, Mapping, MutableMapping)
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
        structure = make_dict_structure_fn(cls, converter, **renames)  # type: ignore[arg-type]  # cattrs' own signature

        def structure_mapping(value: Any, wanted: type[Any]) -> Any:
            return structure(_required(Mapping, "a mapping", value), wanted)

        return structure_mapping

    converter.register_structure_hook_factory(attrs.has, structure_attrs)
    converter.register_structure_hook_factory(_is_collection, partial(_structure_collection, converter))
    converter.register_structure_hook_factory(_is_mapping, partial(_structure_mapping, converter))
    for scalar in (int, float, str, bool):
        converter.register_structure_hook(scalar, _strict)
    return converter


def _is_collection(wanted: Any) -> bool:
    return (get_origin(wanted) or wanted) in _COLLECTIONS


def _is_mapping(wanted: Any) -> bool:
    return (get_origin(wanted) or wanted) in _MAPPINGS


def _structure_collection(converter: cattrs.Converter, wanted: Any) -> Any:
    """Reads a list; cattrs itself would take any iterable, and split a text into letters."""
    origin, types = get_origin(wanted) or wanted, get_args(wanted) or (Any,)
    length = len(types) if origin is tuple and get_args(wanted) and types[-1] is not Ellipsis else None

    def structure(value: Any, _wanted: Any) -> Any:
        items = _required(list | tuple, "a list", value)
        if length is not None and len(items) != length:
            raise TypeError(f"expected a list of {length} items, got {len(items)}")
        places = [(index, item, types[index] if length is not None else types[0]) for index, item in enumerate(items)]
        return _COLLECTIONS[origin](_structure_each(converter, places, wanted))

    return structure


def _structure_mapping(converter: cattrs.Converter, wanted: Any) -> Any:
    key_type, value_type = get_args(wanted) or (Any, Any)

    def structure(value: Any, _wanted: Any) -> Any:
        pairs = _required(Mapping, "a mapping", value)
        keys = _structure_each(converter, [(key, key, key_type) for key in pairs], wanted)
        values = _structure_each(converter, [(key, item, value_type) for key, item in pairs.items()], wanted)
        return dict(zip(keys, values, strict=True))

    return structure


def _structure_each(converter: cattrs.Converter, places: Iterable[tuple[Any, Any, Any]], wanted: Any) -> list[Any]:
    """Structure each (index or key, value, type).

    Raises:
        IterableValidationError: of all that are wrong, each with its index or key.
    """
    structured, errors = [], []
    for place, value, type_ in places:
        try:
            structured.append(converter.structure(value, type_))
        except Exception as exc:  # cattrs gathers everything
            exc.add_note(IterableValidationNote(f"Structuring {wanted} @ index {place!r}", place, type_))
            errors.append(exc)
    if errors:
        raise IterableValidationError(f"While structuring {wanted}", errors, wanted)
    return structured


def _required(type_: Any, words: str, value: Any) -> Any:
    if not isinstance(value, type_):
        raise TypeError(f"expected {words}, got {shortened(repr(value))}")
    return value


def _strict(value: Any, wanted: type[Any]) -> Any:
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, wanted) or (wanted is not bool and isinstance(value, bool)):
        raise TypeError(f"expected {_WORDS[wanted]}, got {shortened(repr(value))}")
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
