"""OpenMetrics, by prometheus-client, which takes a tenth of a second to import: so it is imported when it is needed.

Counters have to end in ``_total`` there, so that a few have another name than in the text format.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from trio_sched.daemon.metrics.families.exposed import Exposed, Series
from trio_sched.daemon.metrics.families.families import Family, Type
from trio_sched.daemon.metrics.formats.text_format import number
from trio_sched.engine.hooks.histogram import Histogram

if TYPE_CHECKING:
    from prometheus_client import Metric

END: Final = b"# EOF\n"
_SERIES_TOGETHER: Final = 20
"""As many as are written without a pause: prometheus-client writes a family at once."""
_TYPES: Final = {Type.UNTYPED: "unknown"}


class _Registry:
    """What prometheus-client writes: one family."""

    def __init__(self, metric: Metric) -> None:
        self.metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self.metric


def pieces(exposed: Exposed) -> Iterator[bytes]:
    """One family in pieces, without `END`; an empty one if it has no series."""
    yield b"" if not exposed.series else _text(exposed.family, exposed.series[:_SERIES_TOGETHER])
    for begin in range(_SERIES_TOGETHER, len(exposed.series), _SERIES_TOGETHER):
        text = _text(exposed.family, exposed.series[begin : begin + _SERIES_TOGETHER])
        while text.startswith(b"# "):  # the lines about the family, which the first piece has
            text = text.partition(b"\n")[2]
        yield text


def _text(family: Family, series: list[Series]) -> bytes:
    from prometheus_client import Metric
    from prometheus_client.openmetrics.exposition import generate_latest

    name = family.name.removesuffix("_total") if family.type is Type.COUNTER else family.name
    metric = Metric(name, family.help, _TYPES.get(family.type, family.type.value))
    for values, value in series:
        labels = dict(zip(family.labels, values, strict=True))
        if isinstance(value, Histogram):
            counts = list(accumulate(value.counts))
            for bound, count in zip((*value.bounds, float("inf")), counts, strict=True):
                metric.add_sample(f"{name}_bucket", {**labels, "le": number(bound)}, count)
            metric.add_sample(f"{name}_count", labels, counts[-1])
            metric.add_sample(f"{name}_sum", labels, value.sum)
        else:
            metric.add_sample(f"{name}_total" if family.type is Type.COUNTER else name, labels, value)
    written: bytes = generate_latest(_Registry(metric))  # type: ignore[no-untyped-call]  # it has no annotations
    return written.removesuffix(END)
