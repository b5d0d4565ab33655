"""The three pages with metrics; which replicas serve them is in ``serving/pages/endpoints.py``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Final, Protocol

from attrs import define, frozen

from trio_sched.daemon.metrics.families.component_families import COMPONENT_FAMILIES, RESOURCE_FAMILIES, SLI_FAMILIES
from trio_sched.daemon.metrics.families.exposed import Exposed, Series
from trio_sched.daemon.metrics.families.families import by_name
from trio_sched.daemon.metrics.formats import open_metrics, protobuf_format, text_format
from trio_sched.daemon.metrics.formats.accepted_format import Format, accepted_format
from trio_sched.daemon.metrics.series import process
from trio_sched.daemon.metrics.series.resources import series_of, sort_key
from trio_sched.daemon.metrics.series.serving import HealthChecks
from trio_sched.daemon.slices import Slices, no_collections
from trio_sched.objects.amounts.quantity import QuantityError
from trio_sched.objects.pod import Pod

LIMIT: Final = "kube_pod_resource_limit"
_RESOURCES: Final = by_name(RESOURCE_FAMILIES)
_SLIS: Final = by_name(
    SLI_FAMILIES, tuple(family for family in COMPONENT_FAMILIES if family.name == "process_start_time_seconds")
)


class Page(Protocol):
    """One page."""

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        """The content type and the body, in the format that the header ``Accept`` asks for.

        Other tasks run every few milliseconds, so that scheduling goes on. The body is in pieces, each made between two
        of these pauses, because joining megabytes of them takes longer than that.
        """
        ...

    def reset(self) -> None:
        """What DELETE does."""
        ...


@frozen(eq=False)
class MetricsPages:
    """``/metrics``, ``/metrics/resources`` and ``/metrics/slis``."""

    metrics: Page
    resources: Page
    slis: Page
    record_check: Callable[[str, str, str], None]
    """Takes the type (healthz, livez, readyz), name and status (success, error, pending) of every health check."""


@define(eq=False)
class AllMetricsPage:
    """``/metrics``."""

    collect: Callable[[], Iterable[Exposed]]
    forget: Callable[[], None]

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        """See `Page`."""
        return await _render(self.collect(), accept, Slices())

    def reset(self) -> None:
        """See `Page`."""
        self.forget()


@define(eq=False)
class SliPage:
    """``/metrics/slis``."""

    checks: HealthChecks
    disabled: frozenset[str]

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        """See `Page`."""
        values = dict(self.checks.collect())
        values["process_start_time_seconds"] = [((), process.start_time())]
        exposed = (Exposed(family, sorted(values[name], key=_by_labels)) for name, family in _SLIS.items())
        return await _render((one for one in exposed if one.family.name not in self.disabled), accept, Slices())

    def reset(self) -> None:
        """See `Page`."""
        self.checks.reset()


@define(eq=False)
class ResourcesPage:
    """``/metrics/resources``: what all pods request."""

    pods: Callable[[], Iterable[Pod]]
    """Returns every pod."""
    disabled: frozenset[str]

    async def render(self, accept: str) -> tuple[str, list[bytes]]:
        """See `Page`."""
        with no_collections():  # ends after the series are gone, which would take it ten milliseconds to look at
            return await self._render(accept)

    async def _render(self, accept: str) -> tuple[str, list[bytes]]:
        slices = Slices()
        pods = await slices.sorted(self.pods(), sort_key)
        exposed: list[Exposed] = []
        for name, family in _RESOURCES.items():
            if name not in self.disabled:
                series: list[Series] = []
                for pod in pods:
                    series += _series_of(pod, limits=name == LIMIT)
                    await slices.pause_if_due()
                exposed.append(Exposed(family, series))
        return await _render(exposed, accept, slices)

    def reset(self) -> None:
        """See `Page`; there is nothing to forget."""


def _by_labels(series: Series) -> tuple[str, ...]:
    return series[0]


def _series_of(pod: Pod, *, limits: bool) -> list[Series]:
    try:
        return list(series_of(pod, limits=limits))
    except QuantityError:  # no API server stores such a pod; if one does, the others are shown
        return []


async def _render(exposed: Iterable[Exposed], accept: str, slices: Slices) -> tuple[str, list[bytes]]:
    format_, content_type = accepted_format(accept)
    joined: list[bytes] = []
    parts: list[bytes] = []
    for piece in _pieces(exposed, format_):
        parts.append(piece)
        if slices.is_due():
            joined.append(b"".join(parts))
            parts.clear()
            await slices.pause()
    joined.append(b"".join(parts))
    return content_type, joined


def _pieces(exposed: Iterable[Exposed], format_: Format) -> Iterator[bytes]:
    if format_ is Format.PROTOBUF:
        return chain.from_iterable(map(protobuf_format.messages, exposed))
    if format_ is Format.OPEN_METRICS:
        return chain(chain.from_iterable(map(open_metrics.pieces, exposed)), [open_metrics.END])
    return _lines(exposed)


def _lines(exposed: Iterable[Exposed]) -> Iterator[bytes]:
    for one in exposed:
        yield b""  # a place to pause, also where there is nothing to show
        for line in text_format.lines(one):
            yield line.encode("utf-8", "replace")
