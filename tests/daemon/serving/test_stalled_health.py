"""Health checks while the event loop is stopped: a thread answers on the real listening socket."""

import http.client
import os
import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trio_sched.daemon.serving.authentication.authorization import AlwaysAllowed
from trio_sched.daemon.serving.stalled_health import StalledHealth
from trio_sched.daemon.serving.tls.certificates import ServingCertificates
from trio_sched.daemon.serving_settings import ServingSettings

ALLOWED = AlwaysAllowed.of(["/healthz", "/livez", "/readyz"])


@contextmanager
def answering(stuck_seconds: float, *, culprit: tuple[str, str] | None = ("Hanging", "filter")) -> Iterator[int]:
    """The port at which is answered inside the block."""
    certificates = ServingCertificates(ServingSettings())
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        stalled = StalledHealth(
            listener=listener,
            make_context=certificates.context_for_http1,
            allowed=ALLOWED,
            culprit=lambda: culprit,
        )
        is_over = threading.Event()

        def run() -> None:
            while not is_over.is_set():
                stalled.answer(stuck_seconds, 0.05)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            is_over.set()
            thread.join()


def get(port: int, path: str) -> tuple[int, str]:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2", "http/1.1"])
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=5.0)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz?verbose"])
def test_the_hook_that_does_not_return_is_named(path: str) -> None:
    with answering(31.0) as port:
        name = path[1:].partition("?")[0]
        assert get(port, path) == (
            500,
            "[-]event-loop failed: filter of plugin Hanging has not returned for 31 s; the log has its place\n"
            f"{name} check failed\n",
        )


def test_a_restart_is_asked_for_after_a_while_only() -> None:
    with answering(6.0) as port:
        assert get(port, "/livez") == (200, "ok")
        assert get(port, "/readyz")[0] == 500


def test_what_needs_credentials_is_not_answered() -> None:
    with answering(31.0, culprit=None) as port:
        for path in ("/metrics", "/debug/scheduler/queue", "/livez/event-loop", "/"):
            assert get(port, path)[0] == 503
        assert "nothing has run for 31 s" in get(port, "/livez")[1]


@contextmanager
def many_open_files() -> Iterator[None]:
    """Inside the block new descriptors are above 1023, which ``select`` does not take."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        yield
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_clients_that_say_nothing_or_nonsense_keep_nobody_waiting_for_long() -> None:
    def connected(port: int) -> socket.socket:
        return socket.create_connection(("127.0.0.1", port))

    with answering(31.0) as port, many_open_files(), connected(port), connected(port) as rude:
        rude.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert get(port, "/livez")[0] == 500
