"""Durations as Kubernetes writes them."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_is_duration = re.compile(r"([0-9]{1,6}(\.[0-9]{1,6})?[smhd])+").fullmatch
_parts = re.compile(r"([0-9.]+)([smhd])").findall


def read_duration(text: str) -> float | None:
    """Seconds of ``90s``, ``2h30m`` or ``1d``; None if *text* is no duration."""
    if len(text) > 100 or _is_duration(text) is None:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _parts(text))
