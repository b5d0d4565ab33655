"""Exports traces in a thread of OpenTelemetry's, from a bounded queue; what does not fit there is dropped."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import trio
from attrs import define, field
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, SERVICE_VERSION, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter, SpanExporter

import trio_sched
from trio_sched.daemon.tracing.attempts import TracedAttempts
from trio_sched.daemon.tracing.environment import TracesWanted, TracingError

log = logging.getLogger(__name__)

FLUSH_SECONDS: Final = 2.0
"""How long the end waits for spans that are not exported yet."""
LOG_INTERVAL_SECONDS: Final = 60.0
_LIBRARY: Final = "opentelemetry"
_HEADERS: Final = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
_USER_IN_URL: Final = re.compile(r"//[^/@\s]+@")
_QUERY: Final = re.compile(r"\?\S+")
_MAX_LOGGED: Final = 500


@asynccontextmanager
async def exporting(
    wanted: TracesWanted, environment: Mapping[str, str], wall_clock: Callable[[], datetime]
) -> AsyncGenerator[TracedAttempts, None]:
    """Trace attempts and export what is *wanted*, as the standard variables say; flush it when the block is left.

    Args:
        wanted: by `trio_sched.daemon.tracing.environment`.
        environment: the process's own, which the library reads too.
        wall_clock: returns the time of day.

    Raises:
        TracingError: a variable has a value that the library refuses.
    """
    handler = SeldomHandler(environment)
    library = logging.getLogger(_LIBRARY)
    library.addHandler(handler)
    library.propagate = False
    provider: TracerProvider | None = None
    try:
        try:
            exporters: list[SpanExporter] = [ConsoleSpanExporter()] if wanted.to_console else []
            if wanted.to_collector:
                exporters.append(OTLPSpanExporter())
            provider = make_provider(exporters)
        except ValueError as error:
            raise TracingError(f"traces cannot be exported: {handler.redacted(str(error))}") from error
        log.info("Tracing attempts with OpenTelemetry")
        yield TracedAttempts(provider.get_tracer("trio_sched", trio_sched.__version__), wall_clock)
    finally:
        if provider is not None:
            await flush(provider)
        library.removeHandler(handler)
        library.propagate = True


def make_provider(exporters: list[SpanExporter]) -> TracerProvider:
    """What makes spans, by the sampler of the environment, and hands them to *exporters* in batches.

    Raises:
        ValueError: a variable has an impossible value.
    """
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: "trio-sched"}))
    resource = Resource({SERVICE_VERSION: trio_sched.__version__}).merge(resource)
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


async def flush(provider: TracerProvider) -> None:
    """Export what is left, for `FLUSH_SECONDS` at most."""
    with trio.move_on_after(FLUSH_SECONDS, shield=True) as limit:
        await trio.to_thread.run_sync(provider.shutdown, abandon_on_cancel=True)
    if limit.cancelled_caught:
        log.warning("traces that were not exported within %.0f s are lost", FLUSH_SECONDS)


@define(eq=False)
class SeldomHandler(logging.Handler):
    """Passes on the lines of the library: few, because there can be one for every span, and without credentials."""

    environment: Mapping[str, str] = field(factory=lambda: os.environ)
    clock: Callable[[], float] = time.monotonic
    _logged_at: float = field(init=False, default=float("-inf"))
    _suppressed: int = field(init=False, default=0)

    def __attrs_pre_init__(self) -> None:
        super().__init__(logging.WARNING)

    def emit(self, record: logging.LogRecord) -> None:
        """Log what *record* says, unless that was done lately; called by any thread."""
        now = self.clock()
        if now - self._logged_at < LOG_INTERVAL_SECONDS:
            self._suppressed += 1
            return
        suppressed, self._suppressed, self._logged_at = self._suppressed, 0, now
        try:
            text = self.redacted(record.getMessage())
        except Exception:  # arguments of the library that do not fit its message
            text = record.name
        log.warning("exporting traces: %s", text, extra={"suppressed": suppressed} if suppressed else {})

    def redacted(self, text: str) -> str:
        """*text* without what may be secret: values of headers, users and queries of URLs."""
        for name in _HEADERS:
            for pair in self.environment.get(name, "").split(","):
                for secret in (pair.strip(), pair.partition("=")[2].strip()):
                    if secret:
                        text = text.replace(secret, "<hidden>")
        return _QUERY.sub("?<hidden>", _USER_IN_URL.sub("//<hidden>@", text))[:_MAX_LOGGED]
