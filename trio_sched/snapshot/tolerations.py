"""Whether a pod tolerates a taint, ``Lt`` and ``Gt`` included: its tolerations are indexed, as they can be many."""

from __future__ import annotations

from collections.abc import Iterable

from trio_sched.objects.taint import Taint, Toleration, canonical_int64


class Tolerations:
    """Tolerates what one of *tolerations* does.

    Each has key, effect and value of the taint; an empty key or effect stands for all of them. ``Exists`` needs no
    value, ``Lt`` and ``Gt`` compare integers in canonical form, and operators that are not known tolerate nothing.

    Args:
        tolerations: those of a pod.
        numeric: whether ``Lt`` and ``Gt`` mean anything (feature gate TaintTolerationComparisonOperators).
    """

    __slots__ = ("_above", "_any", "_below", "_equal")

    def __init__(self, tolerations: Iterable[Toleration], *, numeric: bool = False) -> None:
        self._equal: set[tuple[str, str, str]] = set()
        """(key, effect, value); here and below an empty key or effect stands for all of them."""
        self._any: set[tuple[str, str]] = set()
        self._below: dict[tuple[str, str], int] = {}
        """(key, effect) → the highest value of ``Lt``."""
        self._above: dict[tuple[str, str], int] = {}
        """(key, effect) → the lowest value of ``Gt``."""
        for one in tolerations:
            match one.operator:
                case "" | "Equal":
                    self._equal.add((one.key, one.effect, one.value))
                case "Exists":
                    self._any.add((one.key, one.effect))
                case "Lt" | "Gt" if numeric and (bound := canonical_int64(one.value)) is not None:
                    where = one.key, one.effect
                    if one.operator == "Lt":
                        self._below[where] = max(bound, self._below.get(where, bound))
                    else:
                        self._above[where] = min(bound, self._above.get(where, bound))

    def tolerate(self, taint: Taint) -> bool:
        """Whether a pod with these tolerations accepts *taint*."""
        places = (taint.key, taint.effect), (taint.key, ""), ("", taint.effect), ("", "")
        for where in places:
            if where in self._any or (*where, taint.value) in self._equal:
                return True
        if not self._below and not self._above:
            return False
        found = canonical_int64(taint.value)
        return found is not None and any(
            (where in self._below and found < self._below[where])
            or (where in self._above and found > self._above[where])
            for where in places
        )
