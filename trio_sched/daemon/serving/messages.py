"""Requests and responses as the handlers see them."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote_plus

from attrs import define, field, frozen

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

Header = tuple[str, str]

_BAD_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")


@frozen(kw_only=True)
class Request:
    """One request."""

    method: str
    path: str
    """Percent-decoded."""
    target: str
    """Path and query as they were sent."""
    query: str = ""
    headers: Sequence[Header] = ()
    """With lower-case names, in the order in which they came."""
    body: bytes = b""
    client: str = ""
    """The address that it came from."""
    certificates: tuple[Certificate, ...] = ()
    """What the client has presented, its own first; verified by nobody yet."""
    is_http2: bool = False
    is_websocket: bool = False
    on_authenticated: Callable[[], object] = field(default=lambda: None, eq=False, repr=False)
    """Called when it is known who sends it."""

    def header(self, name: str) -> str:
        """The first value of the header *name*; empty if there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def parameters(self, name: str) -> list[str]:
        """All values of the query parameter *name*."""
        found = []
        for pair in self.query.split("&"):
            key, _, value = pair.partition("=")
            if ";" in pair or _BAD_ESCAPE.search(pair):
                continue  # as Go does it
            if unquote_plus(key) == name:
                found.append(unquote_plus(value))
        return found

    def parameter(self, name: str) -> str:
        """The first value of the query parameter *name*; empty if there is none."""
        return next(iter(self.parameters(name)), "")


@define(kw_only=True)
class Response:
    """What to send."""

    status: int = 200
    headers: list[Header] = field(factory=list)
    body: bytes = b""
    rest: Sequence[bytes] = ()
    """What follows *body*, of a long response: each piece is sent in turns of its own."""
    stream: AsyncGenerator[bytes, None] | None = None
    """In place of a body: pieces that are sent as they come, for as long as the client takes each of them in time."""
    closes: bool = False
    """End the connection afterwards, if it is HTTP/2: many requests of strangers could come over it."""


Handler = Callable[[Request], Awaitable[Response]]

PLAIN: Final = ("content-type", "text/plain; charset=utf-8")
HTML: Final = ("content-type", "text/html; charset=utf-8")
JSON: Final = ("content-type", "application/json")
NOSNIFF: Final = ("x-content-type-options", "nosniff")


def plain(text: str, *, status: int = 200, nosniff: bool = True) -> Response:
    """A response of plain text."""
    return Response(status=status, headers=[PLAIN, *([NOSNIFF] if nosniff else [])], body=text.encode())


def refusal(text: str, status: int) -> Response:
    """An error as Go's ``http.Error`` writes it."""
    return plain(f"{text}\n", status=status)


def not_found() -> Response:
    """404 for a path that nothing is served at."""
    return refusal("404 page not found", 404)
