"""``x in [constants]``, which is a lookup."""

from __future__ import annotations

from typing import Any

from trio_sched.cel.planning.calls import Fixed
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.runtime.chains import Step
from trio_sched.cel.values.values import Uint, Value, lossless_int, map_key


def membership(element: Step, among: Step) -> Step | None:
    """What looks for *element*; None if not all of *among* are constant text, numbers or bools."""
    if not isinstance(among, Fixed):
        return None
    if not among.value:
        return Fixed(False)
    keys: set[Any] = set()
    for value in among.value:
        if type(value) not in (str, int, Uint, float, bool):
            return None
        keys.add(map_key(value))
        keys.update(map_key(same) for same in _same_numbers(value))
    found = frozenset(keys)

    def looked_up(activation: Activation) -> Value:
        return map_key(element(activation)) in found

    return looked_up


def _same_numbers(value: Value) -> list[Value]:
    """Numbers of other types that *value* equals."""
    if type(value) is float:
        whole = lossless_int(value)
        same: list[Value] = [] if whole is None else [whole]
        return [*same, Uint(value)] if value.is_integer() and 0 <= value < 2.0**64 else same
    if type(value) is int:
        return [float(value), Uint(value)] if value >= 0 else [float(value)]
    if type(value) is Uint:
        return [float(value), int(value)] if value < 1 << 63 else [float(value)]
    return []
