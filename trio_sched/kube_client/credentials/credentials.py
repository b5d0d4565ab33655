"""Credentials as request headers, from settings, a `TokenFile` or an `ExecPlugin`."""

from __future__ import annotations

import base64
import logging
from typing import TYPE_CHECKING
from urllib.parse import quote

from attrs import define, field

from trio_sched.go import text as go_text
from trio_sched.kube_client.credentials.token_file import TokenFile, header_value_problem
from trio_sched.kube_client.errors import CredentialsError, KubeconfigError
from trio_sched.kube_client.http.http1 import Headers
from trio_sched.kube_client.http.tls import TlsSource
from trio_sched.kube_client.settings import ConnectionSettings, Impersonation

if TYPE_CHECKING:
    from trio_sched.kube_client.credentials.exec_plugin import ExecCredential, ExecPlugin

log = logging.getLogger(__name__)


@define(eq=False)
class Credentials:
    """The request headers with the credentials.

    Args:
        settings: of the connection.
        tls: gets the certificate of an exec plugin; None if the connection is not a TLS connection of this client.
    """

    settings: ConnectionSettings
    tls: TlsSource | None = None
    _token_file: TokenFile | None = field(default=None, init=False)
    _exec: ExecPlugin | None = field(default=None, init=False)
    _exec_used: ExecCredential | None = field(default=None, init=False)
    _authorization: str = field(default="", init=False, repr=False)
    _headers: Headers = field(factory=list, init=False, repr=False)
    version: int = field(default=0, init=False)
    """Incremented when the headers change, so that prepared headers can be replaced."""

    def __attrs_post_init__(self) -> None:
        settings = self.settings
        if settings.is_tls:  # over a plain connection anyone on the network could read them
            if settings.token_file:
                self._token_file = TokenFile(settings.token_file, fallback=settings.token)
            elif settings.token:
                self._authorization = f"Bearer {settings.token}"
            elif settings.username or settings.password:
                self._authorization = basic_authorization(settings.username, settings.password)
            elif settings.exec_plugin is not None:
                from trio_sched.kube_client.credentials.exec_plugin import ExecPlugin

                self._exec = ExecPlugin(settings.exec_plugin)
        self._rebuild()

    def current(self) -> Headers | None:
        """The headers if they are known without waiting; None means to call :meth:`refresh`.

        Raises:
            CredentialsError: the token file is unreadable and there is no older token.
        """
        if self._token_file is not None:
            self._set_authorization(f"Bearer {self._token_file.token()}")
        elif self._exec is not None and (self._exec_used is None or self._exec.cached() is not self._exec_used):
            return None
        return self._headers

    async def refresh(self) -> Headers:
        """The headers, after running the exec plugin if its credential is missing or has expired."""
        if self._exec is not None:
            self._use(await self._exec.credential())
        return self.current() or self._headers

    async def refused(self, sent_at: float) -> None:
        """Handle the 401 to a request of *sent_at*, so that the next one has fresh credentials."""
        if self._token_file is not None:
            self._token_file.refused(sent_at)
        elif self._exec is not None and self._exec_used is not None:
            try:
                self._use(await self._exec.refused(self._exec_used))
            except CredentialsError as problem:  # the caller gets the 401
                log.error("refreshing credentials: %s", problem)
        elif self.tls is not None:
            self.tls.reload_or_keep()

    def _use(self, credential: ExecCredential) -> None:
        if self.tls is not None and credential.client_certificate:
            try:
                self.tls.use_client_certificate(credential.client_certificate, credential.client_key)
            except KubeconfigError as problem:
                if self._exec is not None:
                    self._exec.forget(credential)
                raise CredentialsError(f"getting credentials: {problem}") from problem
        self._exec_used = credential
        self._set_authorization(f"Bearer {credential.token}" if credential.token else "")

    def _set_authorization(self, value: str) -> None:
        if value != self._authorization:
            self._authorization = value
            self._rebuild()

    def _rebuild(self) -> None:
        self.version += 1
        headers = [(b"Authorization", self._authorization.encode())] if self._authorization else []
        self._headers = headers + impersonation_headers(self.settings.impersonation)


def check_credentials(settings: ConnectionSettings) -> None:
    """Check that the credentials in *settings* can be sent; those of files and programs are checked when they are read.

    Raises:
        KubeconfigError: names the header; never with any text of a credential.
    """
    named = [(b"Authorization", f"the token {problem}")] if (problem := header_value_problem(settings.token)) else []
    for name, value in impersonation_headers(settings.impersonation):
        if problem := header_value_problem(value.decode()):
            named.append((name, f"it {problem}"))
    for name, problem in named:
        raise KubeconfigError(f"net/http: invalid header field value for {go_text.quote(name.decode())}: {problem}")


def basic_authorization(username: str, password: str) -> str:
    """The value of an HTTP basic ``Authorization`` header."""
    return "Basic " + base64.b64encode(f"{username}:{password}".encode()).decode()


def impersonation_headers(who: Impersonation) -> Headers:
    """The ``Impersonate-…`` headers for *who*; keys of *extra* are percent-escaped, as header names must be tokens."""
    headers: Headers = []
    if who.user:
        headers.append((b"Impersonate-User", who.user.encode()))
    if who.uid:
        headers.append((b"Impersonate-Uid", who.uid.encode()))
    headers.extend((b"Impersonate-Group", group.encode()) for group in who.groups)
    for key, values in who.extra:
        name = b"Impersonate-Extra-" + quote(key.lower(), safe="!#$&'*+-.^_`|~").encode()
        headers.extend((name, value.encode()) for value in values)
    return headers
