"""What plugins store between the extension points of one scheduling cycle."""

from __future__ import annotations

from collections.abc import Collection, Hashable
from copy import copy
from typing import Any

from trio_sched.objects.pod import NodeAllocatableResourceClaimStatus, Pod


class ValueNotCloned(Exception):
    """The ``clone()`` of a stored value failed; ``__cause__`` is what it raised."""

    def __init__(self, key: Hashable) -> None:
        super().__init__(key)
        self.key = key


class CycleState:
    """A key-value store for one pod and one cycle.

    Use keys that no other plugin uses, ``(NAME, "what")`` for instance. For assumptions (nominated pods, preemption)
    the framework clones the state: a value with a ``clone()`` method is cloned by that, a dict, list or set is copied
    (shallowly), any other value is shared.
    """

    __slots__ = (
        "_values",
        "is_trial",
        "node_allocatable_claims",
        "pods_to_activate",
        "record_plugin_metrics",
        "skip_filter",
        "skip_score",
        "zero_scores",
    )

    def __init__(self, *, is_trial: bool = False) -> None:
        self._values: dict[Hashable, Any] = {}
        self.skip_filter: frozenset[str] = frozenset()
        """Plugins whose pre_filter returned Skip."""
        self.skip_score: frozenset[str] = frozenset()
        """Plugins whose pre_score returned Skip."""
        self.zero_scores: frozenset[str] = frozenset()
        """Plugins that score every node 0 for this pod: their pre_filter adds their name.

        Their score and normalize_score need not be called then."""
        self.pods_to_activate: dict[str, Pod] = {}
        """Pods (by namespace/name) to move to the active queue once this pod's scheduling or binding cycle succeeds."""
        self.is_trial = is_trial
        """Whether a pod group is being tried: the pod is reserved and permitted, and unreserved again after that."""
        self.node_allocatable_claims: dict[str, tuple[NodeAllocatableResourceClaimStatus, ...]] | None = None
        """Node → what the devices for the pod take of the node itself; an assumed pod counts with that."""
        self.record_plugin_metrics = False
        """Whether this cycle is one of the sample whose plugins are timed."""

    def write(self, key: Hashable, value: Any) -> None:
        """Store *value* under *key* for the rest of the cycle."""
        self._values[key] = value

    def read(self, key: Hashable) -> Any:
        """The value under *key*.

        Raises:
            KeyError: there is none in this cycle.
        """
        return self._values[key]

    def get(self, key: Hashable, default: Any = None) -> Any:
        """The value under *key*, or *default*."""
        return self._values.get(key, default)

    def keys(self) -> list[Hashable]:
        """The keys of all values, in the order in which they were first written."""
        return list(self._values)

    def fork(self, without: Collection[Hashable] = ()) -> CycleState:
        """A state for another pod with the same values, not cloned, except for those under the keys *without*."""
        other = CycleState()
        other._values = self._values.copy()
        for key in without:
            other._values.pop(key, None)
        other.skip_filter = self.skip_filter
        other.skip_score = self.skip_score
        other.zero_scores = self.zero_scores
        return other

    def clone(self) -> CycleState:
        """A copy with cloned values, which can be changed without effect on the original.

        Raises:
            ValueNotCloned: a value has a ``clone()`` that failed.
        """
        other = CycleState()
        for key, value in self._values.items():
            try:
                other._values[key] = _clone_value(value)
            except BaseException as error:
                raise ValueNotCloned(key) from error
        other.skip_filter = self.skip_filter
        other.skip_score = self.skip_score
        other.zero_scores = self.zero_scores
        other.is_trial = self.is_trial
        other.pods_to_activate = self.pods_to_activate
        other.node_allocatable_claims = self.node_allocatable_claims
        return other


def _clone_value(value: Any) -> Any:
    clone = getattr(value, "clone", None)
    if clone is not None:
        return clone()
    return copy(value) if isinstance(value, dict | list | set) else value
