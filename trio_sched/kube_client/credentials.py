"""Credentials as request headers: static, from a file that is replaced, or from a program."""

import base64
import logging
from pathlib import Path
from urllib.parse import quote

import trio
from attrs import define, field

from trio_sched.kube_client.errors import CredentialsError, KubeconfigError
from trio_sched.kube_client.exec_plugin import ExecCredential, ExecPlugin
from trio_sched.kube_client.http1 import Headers
from trio_sched.kube_client.settings import ConnectionSettings, Impersonation
from trio_sched.kube_client.tls import TlsSource, describe_os_error

log = logging.getLogger(__name__)

TOKEN_FILE_SECONDS = 50.0
"""How long a token from a file is used before the file is read again: a minute, less ten seconds of leeway."""


@define(eq=False)
class TokenFile:
    """A token in a file that is replaced from outside, such as a projected service account token.

    Args:
        path: the file.
        fallback: the token to use if the file has never been readable.
    """

    path: str
    fallback: str = field(default="", repr=False)
    _token: str = field(default="", init=False, repr=False)
    _read_at: float = field(default=float("-inf"), init=False)

    def token(self) -> str:
        """The file's token, at most :data:`TOKEN_FILE_SECONDS` old; the last one if the file cannot be read now.

        Raises:
            CredentialsError: the file cannot be read and there is no older token.
        """
        now = trio.current_time()
        if now - self._read_at < TOKEN_FILE_SECONDS:
            return self._token
        try:
            self._token = self._read()
        except CredentialsError as problem:
            self._token = self._token or self.fallback
            if not self._token:
                raise
            log.error("using the previous token: %s", problem)
            return self._token
        self._read_at = now
        return self._token

    def refused(self, sent_at: float) -> None:
        """Handle the 401 to a request of *sent_at*: read the file again, unless that was done since."""
        if self._read_at < sent_at:
            self._read_at = float("-inf")

    def _read(self) -> str:
        try:
            token = Path(self.path).read_text().strip()
        except OSError as problem:
            raise CredentialsError(
                f'failed to read token file "{self.path}": open {self.path}: {describe_os_error(problem)}'
            ) from problem
        if not token:
            raise CredentialsError(f'read empty token from file "{self.path}"')
        return token


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

    def _use(self, credential: ExecCredential) -> None:
        self._exec_used = credential
        self._set_authorization(f"Bearer {credential.token}" if credential.token else "")
        if self.tls is not None and credential.client_certificate:
            try:
                self.tls.use_client_certificate(credential.client_certificate, credential.client_key)
            except KubeconfigError as problem:
                raise CredentialsError(f"getting credentials: {problem}") from problem

    def _set_authorization(self, value: str) -> None:
        if value != self._authorization:
            self._authorization = value
            self._rebuild()

    def _rebuild(self) -> None:
        self.version += 1
        headers = [(b"Authorization", self._authorization.encode())] if self._authorization else []
        self._headers = headers + impersonation_headers(self.settings.impersonation)


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
