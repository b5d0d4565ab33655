"""Whether the environment asks for traces, by the standard variables of OpenTelemetry."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from attrs import frozen

from trio_sched.errors import TrioSchedError

EXPORTERS: Final = "OTEL_TRACES_EXPORTER"
ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PROTOCOLS: Final = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
DISABLED: Final = "OTEL_SDK_DISABLED"
_HTTP: Final = "http/protobuf"
_PACKAGES: Final = ("opentelemetry.sdk.trace", "opentelemetry.exporter.otlp.proto.http.trace_exporter")


class TracingError(TrioSchedError):
    """The environment asks for traces that cannot be exported."""


@frozen
class TracesWanted:
    """What the environment asks for."""

    to_collector: bool = False
    """By OTLP over HTTP."""
    to_console: bool = False
    """To the standard output."""


def traces_wanted(environment: Mapping[str, str]) -> TracesWanted | None:
    """What *environment* asks for; None for no traces.

    Raises:
        TracingError: the extra is not installed, or this is not supported.
    """
    if _value(environment, DISABLED).lower() == "true":
        return None
    exporters = _value(environment, EXPORTERS)
    endpoint = next((name for name in ENDPOINTS if _value(environment, name)), "")
    if exporters:
        cause, names = f"{EXPORTERS}={exporters}", [name.strip() for name in exporters.split(",") if name.strip()]
    elif endpoint:
        cause, names = endpoint, ["otlp"]
    else:
        return None
    for name in names:
        if name not in ("otlp", "console", "none"):
            raise TracingError(f"{EXPORTERS}: the exporter {name!r} is not supported; use otlp, console or none")
    wanted = TracesWanted("otlp" in names, "console" in names)
    if wanted == TracesWanted():
        return None
    if not all(map(_is_installed, _PACKAGES)):
        raise TracingError(
            f"{cause} asks for traces, but OpenTelemetry is not installed: pip install 'trio-sched[otel]', "
            f"or set {EXPORTERS}=none"
        )
    protocol = next(((name, _value(environment, name)) for name in PROTOCOLS if _value(environment, name)), None)
    if wanted.to_collector and protocol is not None and protocol[1] != _HTTP:
        raise TracingError(f"{protocol[0]}: the protocol {protocol[1]!r} is not supported; use {_HTTP}")
    return wanted


def _value(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ImportError:  # a package that contains it is missing
        return False
