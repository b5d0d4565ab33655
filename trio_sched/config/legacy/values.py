"""Moves values between a document's tree and the plain mappings and lists that conversions build."""

from collections.abc import Iterable, Mapping
from typing import Any

from trio_sched.config.decode import Struct, decode_strictly
from trio_sched.config.document import StrictError
from trio_sched.config.errors import ConfigError
from trio_sched.documents.tree import Array, Object, Tree


def values_of(tree: Tree) -> Any:
    """*tree* as mappings and lists, numbers still as they were written; fields that are ``null`` are left out."""
    if isinstance(tree, Object):
        return {key: values_of(value) for key, value in tree.pairs if value is not None}
    return [values_of(item) for item in tree.items] if isinstance(tree, Array) else tree


def decode_whole(tree: Tree, shape: Struct, *, duplicates: Iterable[str] = (), where: str = "") -> dict[str, Any]:
    """The fields of *tree*, which must have *shape* and nothing else.

    Args:
        tree: the document or a part of it.
        shape: what it must look like.
        duplicates: errors about duplicate keys that are known already.
        where: the prefix of an error, which names the part.

    Raises:
        ConfigError: something has the wrong type, is unknown, or is there twice.
    """
    try:
        given, errors = decode_strictly(tree, shape)
    except ConfigError as error:
        raise error.within(where) from error
    if errors := [*duplicates, *errors]:
        if where:
            raise ConfigError.of(where + str(StrictError.listing(errors)))
        raise StrictError.listing(errors)
    return given


def with_shape_case(tree: Tree, names: Mapping[str, str]) -> Tree:
    """*tree* with the keys of its mappings, at any depth, spelt as *names* has them for their lower case.

    The oldest documents were read without regard to case, so ``BindVerb`` and ``Weight`` are found in them.
    """
    if isinstance(tree, Object):
        pairs = ((names.get(key.lower(), key), with_shape_case(value, names)) for key, value in tree.pairs)
        return Object(tuple(pairs))
    return Array(tuple(with_shape_case(item, names) for item in tree.items)) if isinstance(tree, Array) else tree


def by_lower_case(*names: str) -> dict[str, str]:
    """*names* by their lower case, for `with_shape_case`."""
    return {name.lower(): name for name in names}


def without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    """*fields* without None, empty mappings and empty lists."""
    return {key: value for key, value in fields.items() if value is not None and value not in ({}, [])}
