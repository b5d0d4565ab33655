"""Counts the requests to the API server, as an observer of the clients."""

from __future__ import annotations

from collections import Counter
from typing import Final

from attrs import define, field

from trio_sched.engine.hooks.histogram import Histogram

LATENCY_BUCKETS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
SIZE_BUCKETS: Final = (64, 256, 512, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216)
MAX_METHODS: Final = 16
"""Further ones are counted as OTHER: plugins can send requests too."""


@define(eq=False)
class RequestsOfMethod:
    """The requests of one method to one host."""

    statuses: Counter[int] = field(factory=Counter)
    """Status of the response, 0 if there was none → requests."""
    retried: Counter[int] = field(factory=Counter)
    """How many requests were sent again, by the same labels."""
    seconds: Histogram = field(factory=lambda: Histogram(LATENCY_BUCKETS))
    waited: Histogram = field(factory=lambda: Histogram(LATENCY_BUCKETS))
    """For the rate limit; without the requests that had not to wait, see *not_waited*."""
    not_waited: int = 0
    sent_bytes: Histogram = field(factory=lambda: Histogram(SIZE_BUCKETS))
    received_bytes: Histogram = field(factory=lambda: Histogram(SIZE_BUCKETS))


@define(eq=False)
class RequestLog:
    """Counts the requests to one host."""

    host: str
    methods: dict[bytes, RequestsOfMethod] = field(factory=dict)

    def request_done(
        self, method: bytes, status: int, *, seconds: float, waited_seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """See `trio_sched.kube_client.http.observer.RequestObserver`."""
        counted = self.methods.get(method) or self._add(method)
        counted.statuses[status] += 1
        counted.seconds.observe(seconds)
        if waited_seconds > 0.0:
            counted.waited.observe(waited_seconds)
        else:
            counted.not_waited += 1
        counted.sent_bytes.observe(sent_bytes)
        counted.received_bytes.observe(received_bytes)

    def request_retried(self, method: bytes, status: int) -> None:
        """See `trio_sched.kube_client.http.observer.RequestObserver`."""
        (self.methods.get(method) or self._add(method)).retried[status] += 1

    def fold(self) -> None:
        """Add the requests that had not to wait to those that had; to be called before reading."""
        for counted in self.methods.values():
            if counted.not_waited:
                counted.waited.observe_many(0.0, counted.not_waited)
                counted.not_waited = 0

    def reset(self) -> None:
        """Forget everything."""
        self.methods.clear()

    def _add(self, method: bytes) -> RequestsOfMethod:
        key = method if len(self.methods) < MAX_METHODS else b"OTHER"
        return self.methods.setdefault(key, RequestsOfMethod())


@define(eq=False)
class RequestLogs:
    """A log for each host that requests go to."""

    by_host: dict[str, RequestLog] = field(factory=dict)

    def of(self, server: str) -> RequestLog:
        """The log of the host of the URL *server*; clients are opened with it as their observer."""
        host = server.partition("://")[2].partition("/")[0]
        return self.by_host.setdefault(host, RequestLog(host))

    def reset(self) -> None:
        """Forget everything."""
        for log in self.by_host.values():
            log.reset()
