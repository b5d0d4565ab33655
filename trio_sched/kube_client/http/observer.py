"""What may be told about every request: its outcome, how long it took, how much was sent."""

from __future__ import annotations

from typing import Protocol


class RequestObserver(Protocol):
    """Is called for every request; must return at once, and not raise."""

    def request_done(
        self, method: bytes, status: int, *, seconds: float, waited_seconds: float, sent_bytes: int, received_bytes: int
    ) -> None:
        """A request is over.

        Args:
            method: ``b"POST"``.
            status: of the response; 0 if there is none.
            seconds: from sending it to its response; of a watch, to the header of that.
            waited_seconds: for the rate limit, before.
            sent_bytes: of the body.
            received_bytes: likewise, decompressed; 0 for a stream.
        """

    def request_retried(self, method: bytes, status: int) -> None:
        """It is sent again after such a response; 0 if there was none."""


class ObserveRequest(Protocol):
    """Tells an observer, if there is one, about a request that was sent at *sent_at*."""

    def __call__(
        self, method: bytes, status: int, sent_at: float, *, waited: float = 0.0, sent: int = 0, received: int = 0
    ) -> None:
        """See `RequestObserver.request_done`."""
