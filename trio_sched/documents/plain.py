"""Reads YAML or JSON into plain values: dictionaries, lists, texts, numbers, truth values and None."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trio_sched.documents.errors import MAX_DEPTH, DocumentError, shortened
from trio_sched.documents.json_runs import places_of_objects
from trio_sched.documents.yaml_lists import read_list
from trio_sched.documents.yaml_reader import PlainDocument, read_plain_documents

_64_BITS: Final = range(-(1 << 63), 1 << 64)


def read_plain(text: str) -> Iterator[PlainDocument]:
    """Every document of *text*; objects of JSON, one or one after the other, are read as such, which is much faster.

    Raises:
        DocumentError: the text is neither YAML nor JSON, nested too deep, or explodes through aliases.
    """
    if text.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(text)
        except RecursionError:
            raise _too_deep() from None
        except msgspec.DecodeError:
            places = places_of_objects(text)  # YAML's own maps begin with a brace as well
        else:
            yield PlainDocument(_checked(value), 1, ())
            return
        line, counted = 1, 0
        for start, end in places:
            line, counted = line + text.count("\n", counted, start), start
            yield PlainDocument(_checked(msgspec.json.decode(text[start:end])), line, ())
        if places:
            return
    large = read_list(text)
    if large is None:
        yield from read_plain_documents(text)
    else:
        yield large


def _checked(value: Any) -> Any:
    """*value*, an object, if it is flat enough and its whole numbers have 64 bits, as an API server's have.

    Raises:
        DocumentError: it is not.
    """
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for whole in level:
            for part in whole.values() if isinstance(whole, dict) else whole:
                if isinstance(part, dict | list):
                    below.append(part)
                elif isinstance(part, int) and part not in _64_BITS:
                    raise DocumentError(f"json: the number {shortened(str(part), 40)} does not fit into 64 bits")
        if not below:
            return value
        level = below
    raise _too_deep()


def _too_deep() -> DocumentError:
    return DocumentError(f"json: exceeded max depth of {MAX_DEPTH}")
