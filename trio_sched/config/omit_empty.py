"""What Go's ``omitempty`` does to the fields of a struct."""

from typing import Any


def omit_empty(**fields: Any) -> dict[str, Any]:
    """The *fields* that are not empty (None, false, 0, no text, no items)."""
    return {key: value for key, value in fields.items() if value}
