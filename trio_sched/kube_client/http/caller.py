"""What sends requests for the client: a pool of connections, or an adapted httpx transport."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from trio_sched.kube_client.http.http1 import Headers, Reply


class ByteStream(Protocol):
    """A response whose body is read while it arrives."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Headers:
        """With lower-case names."""

    async def receive(self) -> bytes:
        """The next bytes; empty at the end."""


class Caller(Protocol):
    """Sends requests as bytes: a pool, or an adapted httpx transport."""

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        """Send a request, return the whole response; raises ``ConnectionFailed``."""

    def stream(
        self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b""
    ) -> AbstractAsyncContextManager[ByteStream]:
        """Send a request, read the response piece by piece; raises ``ConnectionFailed``."""
