"""A bearer token in a file: how often that is read again, and what text can be a token."""

import logging

import trio
from attrs import define, field

from trio_sched.documents.files import read_bytes
from trio_sched.go.text import printable, quote
from trio_sched.kube_client.errors import CredentialsError
from trio_sched.kube_client.files import UNREADABLE, describe_open_error

log = logging.getLogger(__name__)

TOKEN_FILE_SECONDS = 50.0
"""How long a token from a file is used before the file is read again: a minute, less ten seconds of leeway."""
RETRY_SECONDS = 10.0
"""How long the previous token is used before a file that had none is read again: reading can take a while."""
_MAX_TOKEN_BYTES = 1024 * 1024
_PIPE_WAIT_SECONDS = 1.0
"""Requests wait so long for a token that is read from a pipe."""


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
        """The file's token, at most :data:`TOKEN_FILE_SECONDS` old; the last one if the file has no usable one now.

        Raises:
            CredentialsError: the file has no usable token and there is no older one.
        """
        now = trio.current_time()
        if now - self._read_at < TOKEN_FILE_SECONDS:
            return self._token
        try:
            self._token = read_token(self.path)
        except CredentialsError as problem:
            self._token = self._token or self.fallback
            if not self._token:
                raise
            log.error("using the previous token: %s", problem)
            self._read_at = now - TOKEN_FILE_SECONDS + RETRY_SECONDS
            return self._token
        self._read_at = now
        return self._token

    def refused(self, sent_at: float) -> None:
        """Handle the 401 to a request of *sent_at*: read the file again, unless that was done since."""
        if self._read_at < sent_at:
            self._read_at = float("-inf")


def read_token(path: str) -> str:
    """The token in *path*, without the blanks around it.

    Raises:
        CredentialsError: the file cannot be read, or contains no token that can be sent; never with any of its text.
    """
    try:
        content = read_bytes(path, max_bytes=_MAX_TOKEN_BYTES, pipe_wait_seconds=_PIPE_WAIT_SECONDS)
    except UNREADABLE as problem:
        text = f"failed to read token file {quote(path)}: {describe_open_error(path, problem)}"
        raise CredentialsError(text) from problem
    return token_in(content, path)


def token_in(content: bytes, path: str) -> str:
    """The token in the *content* of *path*, without the blanks around it.

    Raises:
        CredentialsError: it is no token that can be sent; never with any of its text.
    """
    shown = printable(path)
    if len(content) > _MAX_TOKEN_BYTES:
        size = f"it is larger than {_MAX_TOKEN_BYTES} bytes"
        raise CredentialsError(f"failed to read token file {quote(path)}: open {shown}: {size}")
    try:
        token = content.decode().strip()
    except UnicodeDecodeError:
        # Without a cause: the text of a UnicodeDecodeError contains bytes of the token.
        raise CredentialsError(f"failed to read token file {quote(path)}: it is not UTF-8 text") from None
    if not token:
        raise CredentialsError(f"read empty token from file {quote(path)}")
    if problem_text := header_value_problem(token):
        raise CredentialsError(f"token file {quote(path)}: the token {problem_text}")
    return token


def header_value_problem(value: str) -> str:
    """Why *value* cannot be the value of an HTTP header, as a predicate without any of its text; empty if it can.

    A line break in it would begin another header. Source: ``httpguts.ValidHeaderFieldValue``.
    """
    for position, character in enumerate(value, start=1):
        if (character < " " and character != "\t") or character == "\x7f":
            return f"has a control character at position {position}"
    return ""
