"""The parts of timestamps and durations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.times import SECOND, Timestamp, civil, local_seconds
from trio_sched.cel.values.values import Value

_Civil = tuple[int, int, int, int, int, int]
_OF_TIMESTAMPS: Final[dict[str, Callable[[_Civil], int]]] = {
    "getFullYear": lambda parts: parts[0],
    "getMonth": lambda parts: parts[1] - 1,
    "getDate": lambda parts: parts[2],
    "getDayOfMonth": lambda parts: parts[2] - 1,
    "getDayOfYear": lambda parts: parts[3] - 1,
    "getDayOfWeek": lambda parts: parts[4],
    "getHours": lambda parts: parts[5] // 3600,
    "getMinutes": lambda parts: parts[5] // 60 % 60,
    "getSeconds": lambda parts: parts[5] % 60,
}
_OF_DURATIONS: Final = {
    "getHours": 3600 * SECOND,
    "getMinutes": 60 * SECOND,
    "getSeconds": SECOND,
    "getMilliseconds": SECOND // 1000,
}


def _in_zone(part: Callable[[_Civil], int]) -> Callable[..., Value]:
    def get(_activation: Activation, timestamp: Timestamp, zone: str = "UTC") -> Value:
        return part(civil(local_seconds(timestamp, zone)))

    return get


def _milliseconds(_activation: Activation, timestamp: Timestamp, zone: str = "UTC") -> Value:
    local_seconds(timestamp, zone)  # the zone must be one
    return timestamp.nanoseconds // 1_000_000


def _whole(unit: int) -> Callable[..., Value]:
    def get(_activation: Activation, duration: Value) -> Value:
        whole = abs(duration.nanoseconds) // unit
        return -whole if duration.nanoseconds < 0 else whole

    return get


_GETTERS: Final = {name: _in_zone(part) for name, part in _OF_TIMESTAMPS.items()} | {"getMilliseconds": _milliseconds}
FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    **{f"{name}(timestamp)": getter for name, getter in _GETTERS.items()},
    **{f"{name}(timestamp, string)": getter for name, getter in _GETTERS.items()},
    **{f"{name}(duration)": _whole(unit) for name, unit in _OF_DURATIONS.items()},
}
