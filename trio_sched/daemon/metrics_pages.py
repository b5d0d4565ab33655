"""Who renders ``/metrics`` and its neighbours: what the HTTPS endpoints ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from attrs import frozen

RecordCheck = Callable[[str, str, str], None]
"""Takes ``healthz``, ``livez`` or ``readyz``, the name of a check, and ``success`` or ``error``."""


class MetricsPage(Protocol):
    """Metrics that can be read, and reset."""

    async def render(self, accept: str) -> tuple[str, bytes]:
        """The content type and the body, in the form that the ``Accept`` header *accept* prefers.

        An empty content type means none.
        """

    def reset(self) -> None:
        """Begin to count anew."""


def record_nothing(_type: str, _name: str, _status: str) -> None:
    """Forget the outcome of a check."""


@frozen(kw_only=True)
class MetricsPages:
    """The pages at ``/metrics``, ``/metrics/resources`` and ``/metrics/slis``."""

    metrics: MetricsPage
    resources: MetricsPage
    slis: MetricsPage
    record_check: RecordCheck = record_nothing
    """Is told the outcome of every health check."""
