"""Metrics of plugins: what ``handle.metrics`` offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Counter(Protocol):
    """Only grows."""

    def inc(self, amount: float = 1.0, /, **labels: object) -> None:
        """Count *amount*; *labels* are the values of its labels: ``pods.inc(tenant="gold")``.

        Raises:
            ValueError: the amount is negative or no number, or the labels are not those of the metric.
        """
        ...


class Gauge(Protocol):
    """A value that goes up and down."""

    def set(self, value: float, /, **labels: object) -> None:
        """Set it; *labels* as for a `Counter`.

        Raises:
            ValueError: the value is no number, or the labels are not those of the metric.
        """
        ...

    def inc(self, amount: float = 1.0, /, **labels: object) -> None:
        """Add *amount*, which may be negative; raises as `set`."""
        ...

    def clear(self) -> None:
        """Forget all values: of tenants that are gone, for instance, before the others are set again."""
        ...


class Histogram(Protocol):
    """How often values were how large."""

    def observe(self, value: float, /, **labels: object) -> None:
        """Count *value*; *labels* as for a `Counter`.

        Raises:
            ValueError: the value is no number, or the labels are not those of the metric.
        """
        ...


class Metrics(Protocol):
    """Metrics of one plugin, shown on ``/metrics`` as ``trio_sched_plugin_<plugin>_<name>``.

    *plugin* is its name in snake case. All instances of the plugin share them, and they stay when the configuration is
    reloaded. A metric has at most 1,000 sets of label values: further ones are counted under ``other``, or in case of a
    gauge dropped, and the log says so once.
    """

    def counter(self, name: str, help: str, labels: Sequence[str] = ()) -> Counter:
        """A counter; the same one for the same name.

        Args:
            name: of letters, digits and ``_``; by convention it ends in ``_total``.
            help: what it counts, in a sentence.
            labels: the names of its labels.

        Raises:
            ValueError: a name is not usable, or is used with another type, other labels or buckets.
        """
        ...

    def gauge(self, name: str, help: str, labels: Sequence[str] = ()) -> Gauge:
        """A gauge; as `counter`."""
        ...

    def histogram(
        self, name: str, help: str, labels: Sequence[str] = (), buckets: Sequence[float] | None = None
    ) -> Histogram:
        """A histogram; as `counter`.

        Args:
            name: see `counter`; by convention it ends in the unit, ``_seconds`` for instance.
            help: likewise.
            labels: likewise.
            buckets: the upper bounds, rising, without infinity; by default from 1 ms to 16 s, in seconds.
        """
        ...
