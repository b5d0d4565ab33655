"""Objects as JSON has them: their type, their parts, and how they are written."""

from typing import Any

import msgspec

Json = dict[str, Any]
encode = msgspec.json.Encoder().encode
"""Any value as JSON, in bytes."""


def dicts(value: Any) -> list[Json]:
    """The mappings in *value*, if it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
