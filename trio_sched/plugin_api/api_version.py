"""The version of the contract between trio-sched and plugins."""

import re
from typing import Final

API_VERSION: Final = "1.2"
"""The version of `trio_sched.plugin_api`, as major.minor.

The minor grows when something is added, the major when something that plugins use changes or goes away. A plugin class
may say which it needs, ``requires_api = "1.0"``: that minor or a newer one, of the same major. Without it any will do.
"""

_VERSION: Final = re.compile(r"([0-9]{1,6})\.([0-9]{1,6})", re.ASCII)


def read_api_version(text: object) -> tuple[int, int] | None:
    """Major and minor of *text*; None if it is no version."""
    match = _VERSION.fullmatch(text) if isinstance(text, str) else None
    return None if match is None else (int(match[1]), int(match[2]))


def offers_api(required: tuple[int, int], offered: str = API_VERSION) -> bool:
    """Whether the version *offered* is enough for a plugin that needs *required*."""
    version = read_api_version(offered)
    assert version is not None
    return version[0] == required[0] and version[1] >= required[1]
