"""HTTP for plugins: what ``handle.http`` offers, and what pretend endpoints get and give in tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import field, frozen

from trio_sched.errors import TrioSchedError


class HttpFailed(TrioSchedError):
    """A request got no usable response: time is up, no connection, TLS, too many redirects, a body that is too large.

    A response of any status is no failure; see `HttpResponse.check`.
    """

    def __init__(self, method: str, url: str, problem: str) -> None:
        super().__init__(method, url, problem)
        self.method, self.url, self.problem = method, url, problem

    def __str__(self) -> str:
        return f"{self.method} {self.url}: {self.problem}"


@frozen(kw_only=True)
class HttpRequest:
    """A request, as a pretend endpoint of a test gets it."""

    method: str
    url: str
    """With the query."""
    path: str
    """The path of the URL, without the query."""
    params: Mapping[str, str] = field(factory=dict)
    """The query; of a parameter that is repeated the last value."""
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    """With names in lower case."""
    body: bytes = field(default=b"", repr=False)

    def json(self) -> Any:
        """The body, decoded from JSON.

        Raises:
            ValueError: it is no JSON.
        """
        return json.loads(self.body)


@frozen(kw_only=True)
class HttpResponse:
    """A response, read to its end."""

    status: int = 200
    headers: Mapping[str, str] = field(factory=dict, repr=False)
    """With names in lower case; values of repeated ones are joined with commas."""
    body: bytes = field(default=b"", repr=False)
    """Decompressed."""
    url: str = ""
    """Where it came from, after redirects; without user, password and query."""

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none is replaced."""
        return self.body.decode("utf-8", "replace")

    def json(self) -> Any:
        """The body, decoded from JSON.

        Raises:
            HttpFailed: it is no JSON.
        """
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError) as problem:
            start = self.text[:80]
            raise HttpFailed("response of", self.url, f"status {self.status}, no JSON ({problem}): {start!r}") from None

    def check(self) -> HttpResponse:
        """This response, if its status is 2xx.

        Raises:
            HttpFailed: it has another status.
        """
        if not self.is_success:
            raise HttpFailed("response of", self.url, f"status {self.status}: {self.text[:200]!r}")
        return self


class Http(Protocol):
    """Requests to other servers than the API server; ``await`` it, in hooks that may be ``async`` only.

    Connections are kept. Proxies and certificates come from the usual variables of the environment (``HTTPS_PROXY``,
    ``NO_PROXY``, ``SSL_CERT_FILE``). At most ten redirects are followed, without the ``Authorization`` header
    to another host; at most 16 MiB are read.
    """

    async def get(
        self,
        url: str,
        *,
        params: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str = "",
    ) -> HttpResponse:
        """GET *url*.

        Args:
            url: ``http://…`` or ``https://…``.
            params: the query.
            headers: to send.
            timeout_seconds: for all of it, redirects and the body included.
            ca_file: a file with the certificates to trust instead of the usual ones, in PEM.

        Raises:
            HttpFailed: there is no complete response.
            ValueError: the URL or the timeout is not usable.
        """
        ...

    async def post(
        self,
        url: str,
        *,
        json: Any = None,
        content: bytes | str | None = None,
        params: Mapping[str, str | int | float] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10.0,
        ca_file: str = "",
    ) -> HttpResponse:
        """POST to *url*; the body is *json*, encoded, or *content* as it is. Otherwise as `get`."""
        ...
