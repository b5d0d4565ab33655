"""URLs, as Go's ``net/url`` takes them apart."""

from __future__ import annotations

import re
from typing import Final

from attrs import field, frozen

from trio_sched.cel.errors import EvaluationError
from trio_sched.cel.values.network import is_address_6
from trio_sched.go.text import quote

_UNRESERVED: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~")
_IN_HOST: Final = _UNRESERVED | frozenset(b"!$&'()*+,;=:[]<>\"")
_IN_PATH: Final = _UNRESERVED | frozenset(b"$&+,/:;=@")
_IN_USER: Final = _UNRESERVED | frozenset(b"$&+,;=")
_IN_FRAGMENT: Final = _IN_PATH | frozenset(b"?!()*")
_WRITTEN_IN_PATH: Final = _UNRESERVED | frozenset(b"!$&'()*+,;=:@[]%/")
_USER_INFO: Final = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*\Z")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)?:")
_PORT: Final = re.compile(r"(?::[0-9]*)?\Z")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_ESCAPE: Final = re.compile(rb"%([0-9a-fA-F]{2})")
_BAD_ESCAPE: Final = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}", re.DOTALL)


@frozen(eq=False)
class Url:
    """A URL in its parts."""

    scheme: str
    host: str
    escaped_path: str
    raw_query: str
    _opaque: str = ""
    _user: str | None = None
    _has_query: bool = False
    _fragment: str = ""
    query: dict[str, list[str]] = field(init=False)
    """Parameters and their values; those that are not written rightly are left out."""

    @query.default
    def _parameters(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for part in self.raw_query.split("&"):
            key, _, value = part.partition("=")
            if not part or ";" in part or _BAD_ESCAPE.search(part):
                continue
            decoded = [_unescaped(text.replace("+", " ")).decode("utf-8", "replace") for text in (key, value)]
            found.setdefault(decoded[0], []).append(decoded[1])
        return found

    @property
    def hostname(self) -> str:
        """The host without port and brackets."""
        host = self._split[0]
        return host[1:-1] if host.startswith("[") and host.endswith("]") else host

    @property
    def port(self) -> str:
        """Empty if none is given."""
        return self._split[1]

    @property
    def _split(self) -> tuple[str, str]:
        before, colon, after = self.host.rpartition(":")
        return (before, after) if colon and _PORT.match(f":{after}") else (self.host, "")

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self._opaque:
            text += self._opaque
        else:
            if self.scheme or self.host or self._user is not None:
                if self.host or self.escaped_path or self._user is not None:
                    text += "//" if self.host or self._user is not None else ""
                text += f"{self._user}@" if self._user is not None else ""
                text += _escaped(self.host.encode("utf-8", "surrogateescape"), _IN_HOST)
            text += self.escaped_path
        text += f"?{self.raw_query}" if self._has_query or self.raw_query else ""
        return f"{text}#{self._fragment}" if self._fragment else text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Url) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse_url(text: str) -> Url:
    """The URL that *text* is: an absolute one, or an absolute path.

    Raises:
        EvaluationError: it is none.
    """
    _parse(text, is_request=True)
    return _parse(text, is_request=False)


def uri_problem(text: str) -> str | None:
    """Why *text* is neither an absolute URL nor an absolute path."""
    try:
        _parse(text, is_request=True)
    except EvaluationError as error:
        return str(error).removeprefix(_FAILED)
    return None


def is_request_uri(text: str) -> bool:
    """Whether *text* is an absolute URL or an absolute path."""
    return uri_problem(text) is None


_FAILED: Final = "URL parse error during conversion from string: "


class _Problem(Exception):
    """What is wrong, without the text that it is about."""


def _parse(text: str, *, is_request: bool) -> Url:
    bare, _, fragment = (text, "", "") if is_request else text.partition("#")
    try:
        url = _parts(bare, is_request, fragment)
    except _Problem as problem:
        raise EvaluationError(f"{_FAILED}parse {quote(bare)}: {problem}") from None
    return url


def _parts(text: str, is_request: bool, fragment: str) -> Url:
    if _CONTROL.search(text):
        raise _Problem("net/url: invalid control character in URL")
    if not text and is_request:
        raise _Problem("empty url")
    if text == "*":
        return Url("", "", "*", "")
    _check_escapes(fragment)
    written = _escaped(_unescaped(fragment), _IN_FRAGMENT)
    scheme, rest = _scheme(text)
    has_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = (rest[:-1], "", "") if has_query else rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, "", "", query, rest, None, has_query, written)
        if is_request:
            raise _Problem("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Problem("first path segment in URL cannot contain colon")
    user, host = None, ""
    if rest.startswith("//") and (scheme or not (is_request or rest.startswith("///"))):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    _check_escapes(rest)
    return Url(scheme, host, _escaped_path(rest), query, "", user, has_query, written)


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.match(text)
    if match is None:
        return "", text
    if match.group(1) is None:
        raise _Problem("missing protocol scheme")
    return match.group(1).lower(), text[match.end() :]


def _authority(scheme: str, text: str) -> tuple[str | None, str]:
    before, at, host = text.rpartition("@")
    parsed = _host(scheme, host)
    if not at:
        return None, parsed
    if not _USER_INFO.match(before):
        raise _Problem("net/url: invalid userinfo")
    _check_escapes(before)
    name, colon, password = before.partition(":")
    return colon.join(_escaped(_unescaped(part), _IN_USER) for part in ([name, password] if colon else [name])), parsed


def _host(scheme: str, host: str) -> str:
    opened = host.rfind("[")
    if opened > 0:
        raise _Problem("invalid IP-literal")
    if opened == 0:
        return _literal(host)
    if ":" in host:
        is_strict = scheme in ("http", "https")
        port = host[host.index(":") if is_strict else host.rindex(":") :]
        if not _PORT.match(port):
            raise _Problem(f"invalid port {quote(port)} after host")
    return _unescaped_host(host)


def _literal(host: str) -> str:
    """An address between brackets, with its port."""
    closed = host.rfind("]")
    if closed < 0:
        raise _Problem("missing ']' in host")
    port = host[closed + 1 :]
    if not _PORT.match(port):
        raise _Problem(f"invalid port {quote(port)} after host")
    name, percent, zone = host[1:closed].partition("%25")
    _check_escapes(zone)
    inside = _unescaped_host(name) + (f"%{_text(_unescaped(zone))}" if percent else "")
    if not is_address_6(inside):
        raise _Problem("invalid host: unable to parse IP")
    return f"[{inside}]{port}"


def _unescaped_host(host: str) -> str:
    _check_escapes(host)
    for match in _ESCAPE.finditer(host.encode("utf-8", "surrogateescape")):
        if match.group(1)[:1] < b"8" and match.group() != b"%25":
            raise _Problem(f"invalid URL escape {quote(match.group().decode())}")
    for character in host:
        if character != "%" and ord(character) < 0x80 and ord(character) not in _IN_HOST:
            raise _Problem(f"invalid character {quote(character)} in host name")
    return _text(_unescaped(host))


def _check_escapes(text: str) -> None:
    match = _BAD_ESCAPE.search(text)
    if match is not None:
        raise _Problem(f"invalid URL escape {quote(match.group())}")


def _unescaped(text: str) -> bytes:
    return _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), text.encode("utf-8", "surrogateescape"))


def _escaped(content: bytes, kept: frozenset[int]) -> str:
    return "".join(chr(byte) if byte in kept else f"%{byte:02X}" for byte in content)


def _escaped_path(path: str) -> str:
    if all(byte in _WRITTEN_IN_PATH for byte in path.encode("utf-8", "surrogateescape")):
        return path
    return _escaped(_unescaped(path), _IN_PATH)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
