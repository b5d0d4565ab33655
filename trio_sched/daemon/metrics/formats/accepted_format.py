"""Which format a scrape gets, by its header ``Accept``.

As in kube-scheduler: text, or delimited protobuf. OpenMetrics renames counters, which would break dashboards, and
Prometheus prefers it to text in every scrape. So only a client gets it that asks for a version of it and takes no text.

Source: ``expfmt.Negotiate`` of the Prometheus common library, without OpenMetrics.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen


class Format(Enum):
    """A format, by its media type."""

    TEXT = "text/plain; version=0.0.4; charset=utf-8"
    PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
    OPEN_METRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


_MESSAGE: Final = "io.prometheus.client.MetricFamily"
_ESCAPINGS: Final = frozenset({"allow-utf-8", "underscores", "dots", "values"})
_TAKES_TEXT: Final = frozenset({"text/plain", "text/*", "*/*"})
_MAX_RANGES: Final = 64
"""Media ranges that are looked at."""


@frozen
class _Range:
    type: str
    parameters: dict[str, str]
    quality: float


def accepted_format(accept: str) -> tuple[Format, str]:
    """The format, and the whole content type."""
    ranges = sorted(map(_parse, accept.split(",")[:_MAX_RANGES]), key=lambda one: -one.quality)
    escaping = "underscores"
    for one in ranges:
        asked = one.parameters.get("escaping", "")
        escaping = asked if asked in _ESCAPINGS else escaping
        if (
            one.type == "application/vnd.google.protobuf"
            and one.parameters.get("proto") == _MESSAGE
            and one.parameters.get("encoding") == "delimited"
        ):
            return Format.PROTOBUF, f"{Format.PROTOBUF.value}; escaping={escaping}"
        if one.type == "text/plain" and one.parameters.get("version", "") in ("", "0.0.4"):
            break
    is_open_metrics = any(one.type == "application/openmetrics-text" and "version" in one.parameters for one in ranges)
    if is_open_metrics and not any(one.type in _TAKES_TEXT for one in ranges):
        return Format.OPEN_METRICS, Format.OPEN_METRICS.value
    return Format.TEXT, f"{Format.TEXT.value}; escaping={escaping}"


def _parse(text: str) -> _Range:
    type_, *rest = text.split(";")
    parameters = {
        name.strip().lower(): value.strip().strip('"') for name, _, value in (one.partition("=") for one in rest)
    }
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 1.0
    return _Range(type_.strip().lower(), parameters, quality)
