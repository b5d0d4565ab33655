"""What annotations say that are numbers."""

import re
from typing import Any, Final

_INTEGER: Final = re.compile(r"[+-]?[0-9]+")


def number_in(text: Any) -> int | None:
    """The whole number of 64 bits in an annotation; None if it has none, or is not there."""
    if not isinstance(text, str) or _INTEGER.fullmatch(text) is None:
        return None
    try:
        number = int(text)
    except ValueError:  # thousands of digits
        return None
    return number if -(1 << 63) <= number < 1 << 63 else None
