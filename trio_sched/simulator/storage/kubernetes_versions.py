"""The minor versions of Kubernetes whose API a server can have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_PATCHES: Final[Mapping[int, int]] = {31: 14, 32: 13, 33: 13, 34: 9, 35: 6, 36: 2, 37: 0}
"""Minor version → the patch version that a server says it is."""
DEFAULT_MINOR: Final = 36
DEFAULT_VERSION: Final = f"1.{DEFAULT_MINOR}"
OLDEST_MINOR: Final = min(_PATCHES)
NEWEST_MINOR: Final = max(_PATCHES)
_is_version = re.compile(r"v?1\.(3[0-9])(\.[0-9]{1,3})?", re.ASCII).fullmatch


class UnknownKubernetesVersion(ValueError):
    """A version that no server here can have; the text says which there are."""


def minor_version(text: str) -> int:
    """The minor version that *text* names: 33 for ``1.33``, ``v1.33`` and ``1.33.4``.

    Raises:
        UnknownKubernetesVersion: it names none, or one that is not served.
    """
    found = _is_version(text)
    if found is None or int(found[1]) not in _PATCHES:
        raise UnknownKubernetesVersion(
            f"{text!r} is no version of Kubernetes that is simulated; it is one of 1.{OLDEST_MINOR} to 1.{NEWEST_MINOR}"
        )
    return int(found[1])


def git_version(minor: int) -> str:
    """What a server of the version says it is: ``v1.36.2``."""
    return f"v1.{minor}.{_PATCHES[minor]}"
