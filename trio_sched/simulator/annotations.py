"""What annotations say that are numbers."""

from typing import Any


def number_in(text: Any) -> int | None:
    """The whole number in an annotation; None if it has none, or is not there."""
    try:
        return int(text)
    except (TypeError, ValueError):
        return None
