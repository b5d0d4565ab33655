"""Reads one large list of objects in YAML item by item, as ``kubectl get -o yaml`` writes it.

As a whole, the nodes of a dump of 20,000 pods take gigabytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from attrs import frozen

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.yaml_reader import PlainDocument, read_plain_documents

_LIST: Final = re.compile(r"^items:[ \t]*\r?\n(?=- )", re.MULTILINE)
_END: Final = re.compile(r"^[^\s#-]", re.MULTILINE)
_ITEM: Final = re.compile(r"^- ", re.MULTILINE)
_MARKER: Final = re.compile(r"^(---|\.\.\.|%)", re.MULTILINE)
_SMALL: Final = 100_000
"""Characters: what has fewer is read as a whole."""


@frozen
class ListParts:
    """Where the parts of a list are."""

    whole: str
    """All but the items and their key."""
    items: Sequence[tuple[int, int]]
    """Where each item begins and ends."""


def parts_of_list(text: str) -> ListParts | None:
    """Take *text* apart if it is one document, a mapping with a long list of ``items`` at the margin; else None."""
    opening = _LIST.search(text) if len(text) >= _SMALL else None
    start = 4 if text.startswith("---\n") else 0
    if opening is None or _MARKER.search(text, start) is not None:
        return None
    closing = _END.search(text, opening.end())
    end = closing.start() if closing else len(text)
    places = [match.start() for match in _ITEM.finditer(text, opening.end(), end)]
    return ListParts(text[start : opening.start()] + text[end:], [*pairwise([*places, end])])


def read_list(text: str) -> PlainDocument | None:
    """The document that *text* is, if `parts_of_list` can take it apart and each part makes sense; else None.

    Aliases, for one, make sense only in the whole.
    """
    parts = parts_of_list(text)
    if parts is None:
        return None
    try:
        # What a quote or a bracket holds together fails when it is taken apart.
        whole = _only(parts.whole)
        items = [item for start, end in parts.items for item in _one_item(text[start:end])]
    except (DocumentError, _NotPlain):
        return None
    return PlainDocument({**whole, "items": items}, 1, ()) if isinstance(whole, dict) and "items" not in whole else None


class _NotPlain(Exception):
    """A part is no single document without mistakes."""


def _only(text: str) -> Any:
    documents = list(read_plain_documents(text))
    if len(documents) != 1 or documents[0].duplicates:
        raise _NotPlain
    return documents[0].value


def _one_item(text: str) -> list[Any]:
    value = _only(text)
    if not isinstance(value, list) or len(value) != 1:
        raise _NotPlain
    return value
