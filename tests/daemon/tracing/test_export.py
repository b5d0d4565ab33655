"""Spans reach a collector; one that is bad costs a line in the log."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import trio
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from trio_sched.daemon.tracing import export
from trio_sched.daemon.tracing.attempts import SCHEDULING_CYCLE
from trio_sched.daemon.tracing.environment import TracesWanted
from trio_sched.daemon.tracing.export import SeldomHandler, exporting, flush, make_provider
from trio_sched.plugin_api.status import unschedulable
from trio_sched.testing import pod


def now() -> datetime:
    return datetime.now(UTC)


@contextmanager
def collector(status: int = 200) -> Iterator[tuple[str, list[bytes]]]:
    """The URL of a collector that answers with *status*, and what it gets."""
    bodies: list[bytes] = []

    class Collect(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Collect) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}", bodies
        finally:
            server.shutdown()
            thread.join()


async def trace_some(count: int = 3) -> None:
    async with exporting(TracesWanted(to_collector=True), {}, now) as tracer:
        for number in range(count):
            traced = tracer.begin(pod(f"p{number}"), 1, None)
            assert traced is not None
            traced.failed(unschedulable("no"))


async def test_what_is_left_is_exported_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as (url, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "k8s.cluster.name=c")
        await trace_some()
    exported = [ExportTraceServiceRequest.FromString(body).resource_spans[0] for body in bodies]
    spans = [span for one in exported for span in one.scope_spans[0].spans]
    assert [span.name for span in spans] == [SCHEDULING_CYCLE] * 3
    resource = {one.key: one.value.string_value for one in exported[0].resource.attributes}
    assert (resource["service.name"], resource["k8s.cluster.name"]) == ("trio-sched", "c")


async def test_the_sampler_and_the_name_are_those_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "always_off")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "mine")
    provider = make_provider([])
    assert provider.resource.attributes["service.name"] == "mine"
    assert not provider.get_tracer("x").start_span("y").is_recording()


async def test_a_collector_that_refuses_costs_one_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with collector(status=400) as (url, bodies):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        await trace_some()
    assert bodies
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1
    assert lines[0].startswith("exporting traces: ")


class Hanging(SpanExporter):
    def __init__(self) -> None:
        self.go_on = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.go_on.wait(30)
        return SpanExportResult.SUCCESS


async def test_an_exporter_that_hangs_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(export, "FLUSH_SECONDS", 0.1)
    exporter = Hanging()
    provider = make_provider([exporter])
    for _ in range(5000):  # more than the queue holds
        provider.get_tracer("x").start_span("y").end()
    began = trio.current_time()
    await flush(provider)
    assert trio.current_time() - began < 5
    assert "are lost" in caplog.text
    exporter.go_on.set()


def test_lines_of_the_library_are_few_and_show_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    clock = [0.0]
    secrets = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x-key=k123"}
    handler = SeldomHandler(secrets, lambda: clock[0])
    for number in range(100):
        text = (
            f"{number}: http://me:pass@c:4318/v1?t=s3cret refused, headers x-key=k123 k123 authorization=Bearer%20abc"
        )
        handler.handle(logging.LogRecord("opentelemetry.x", logging.ERROR, "", 0, text, (), None))
        clock[0] += 1
    assert [record.getMessage()[:21] for record in caplog.records] == ["exporting traces: 0: ", "exporting traces: 60:"]
    assert vars(caplog.records[1])["suppressed"] == 59
    for secret in ("abc", "k123", "pass", "s3cret"):
        assert secret not in caplog.text
    handler.handle(logging.LogRecord("opentelemetry.x", logging.ERROR, "", 0, "%d", ("no number",), None))
