"""Fields that a request's body has twice; of equal ones the last counts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.files import decode_text
from trio_sched.documents.json_reader import read_json
from trio_sched.documents.tree import Array, Object, Tree
from trio_sched.documents.yaml_reader import read_plain_documents
from trio_sched.go.text import quote, shortened
from trio_sched.simulator.endpoints.negotiation import YAML_TYPE, media_type
from trio_sched.simulator.errors.status_errors import bad_request

_SHOWN: Final = 20


def duplicate_fields(body: bytes, content_type: str) -> tuple[list[str], str]:
    """What the API server says of fields that are there twice, one by one and as the text of an error.

    Raises:
        ApiError: 400, the body is no JSON or YAML.
    """
    try:
        text = decode_text(body)
        if media_type(content_type) == YAML_TYPE:
            found = [*map(str, next(read_plain_documents(text)).duplicates)]
            return found, "\n  ".join(["yaml: unmarshal errors:", *found[:_SHOWN]])
        found = [f"duplicate field {quote(shortened(path))}" for path in _twice(read_json(text), "")]
    except DocumentError as error:
        raise bad_request(f"error decoding request body: {error}") from error
    return found, ", ".join(found[:_SHOWN])


def _twice(tree: Tree, path: str) -> Iterator[str]:
    """The paths of fields that are there twice in *tree*, in the order of the document."""
    if isinstance(tree, Array):
        for index, item in enumerate(tree.items):
            yield from _twice(item, f"{path}[{index}]")
    elif isinstance(tree, Object):
        seen: set[str] = set()
        for name, value in tree.pairs:
            here = f"{path}.{name}" if path else name
            if name in seen:
                yield here
            seen.add(name)
            yield from _twice(value, here)
