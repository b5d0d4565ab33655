"""Objects as JSON has them."""

from typing import Any

Json = dict[str, Any]


def dicts(value: Any) -> list[Json]:
    """The mappings in *value*, if it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
