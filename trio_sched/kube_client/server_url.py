"""Server addresses: what kubeconfigs have made into URLs, their parts, and how they are shown."""

import ipaddress
import re
from urllib.parse import quote as percent_encode
from urllib.parse import urlsplit

import idna

from trio_sched.go.text import quote
from trio_sched.kube_client.errors import KubeconfigError

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")
_PASSWORD = re.compile(r"^([^/?#]*//)?([^/?#@:]*):([^/?#]*)@")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2}).{0,2}")
_KEPT_IN_PATHS = "/%:@!$&'()*+,;=-._~"
_ZONE = re.compile(r"25[-.~\w]+", re.ASCII)
"""The zone of an IPv6 address, with the ``%`` before it."""
_MAX_LABEL, _MAX_NAME = 63, 253


def normalise_server(server: str, *, has_tls_settings: bool) -> str:
    """*server* with a scheme, without query, fragment and the slash at its end; a path stays as a prefix.

    Args:
        server: a URL, or just ``host:port``.
        has_tls_settings: makes a bare ``host:port`` https instead of http.

    Raises:
        KubeconfigError: with the text of Go's URL parser, which kube-scheduler prints.
    """
    url = server if _SCHEME.match(server) else f"{'https' if has_tls_settings else 'http'}://{server}"
    check_parses(url)
    scheme, _, rest = url.partition("://")
    before_path = re.split(r"[/?#]", rest, maxsplit=1)[0]
    authority, after_authority = before_path.rpartition("@")[2], rest[len(before_path) :]
    if scheme.lower() not in ("http", "https"):
        shown = quote(surely_redacted(server))
        raise KubeconfigError(f"unsupported scheme {quote(scheme)} of the server {shown}, must be http or https")
    if not authority or authority.startswith(":"):
        raise KubeconfigError(f"host must be a URL or a host:port pair: {quote(surely_redacted(server))}")
    authority = _ascii_authority(url, authority)
    path = re.split(r"[?#]", after_authority, maxsplit=1)[0].rstrip("/")
    if bad := _BAD_ESCAPE.search(path):
        raise _unparsable(url, f"invalid URL escape {quote(bad.group())}")
    return f"{scheme.lower()}://{authority}{percent_encode(path, safe=_KEPT_IN_PATHS)}"


def check_parses(url: str) -> None:
    """Check that *url*, which has a scheme, has the form of a URL.

    Raises:
        KubeconfigError: with the text of Go's URL parser, without a password.
    """
    if re.search(r"[\x00-\x1f\x7f]", url):
        raise _unparsable(url, "net/url: invalid control character in URL")
    _check_authority(url, re.split(r"[/?#]", url.partition("://")[2], maxsplit=1)[0].rpartition("@")[2])


def host_and_port(url: str) -> tuple[str, int]:
    """Which host and port to connect to for *url*; the zone of an IPv6 address follows a ``%``.

    Raises:
        ValueError: the port is no number up to 65535.
    """
    parts = urlsplit(url)
    return (parts.hostname or "").replace("%25", "%"), parts.port or (443 if parts.scheme == "https" else 80)


def host_header_of(url: str) -> bytes:
    """The value of the ``Host`` header for *url*: without user, password, and the zone of an IPv6 address."""
    authority = urlsplit(url).netloc.rpartition("@")[2]
    if not authority.isascii():
        host, colon, port = authority.partition(":")
        authority = ascii_host(host) + colon + port
    return re.sub(r"%[^\]]*\]", "]", authority).encode()


def ascii_host(host: str) -> str:
    """*host* as the domain name system knows it.

    Raises:
        ValueError: there is no such name.
    """
    return host if host.isascii() else idna.encode(host, uts46=True).decode()


def host_problem(host: str) -> str:
    """Why *host* can be no name of a host, as a clause; empty if it can."""
    try:
        name = ascii_host(host)
    except ValueError:
        return "it is no internationalised domain name"
    if bad := re.search(r"[][\x00-\x20\"<>^`{|}\\\x7f]", name):
        return f"invalid character {quote(bad.group())} in host name"
    labels = name.removesuffix(".").split(".")
    if not all(1 <= len(label) <= _MAX_LABEL for label in labels):
        return f"a label has 1 to {_MAX_LABEL} characters"
    return f"it has more than {_MAX_NAME} characters" if len(name) > _MAX_NAME + 1 else ""


def redacted(url: str) -> str:
    """*url* with ``xxxxx`` for its password, as Go's ``URL.Redacted`` shows it."""
    return _PASSWORD.sub(r"\1\2:xxxxx@", url)


def surely_redacted(url: str) -> str:
    """*url*, which is malformed, without anything that may have been meant as a password: up to its last ``@``."""
    return re.sub(r"^([^/?#]*//)?([^/?#@:]*):.*@", r"\1\2:xxxxx@", url, flags=re.DOTALL)


def _unparsable(url: str, problem: str) -> KubeconfigError:
    return KubeconfigError(f"parse {quote(surely_redacted(url))}: {problem}")


def _check_authority(url: str, authority: str) -> None:
    if authority.startswith("["):
        inner, bracket, after = authority[1:].partition("]")
        if not bracket:
            raise _unparsable(url, "missing ']' in host")
        _check_port(url, after)
        address, percent, zone = inner.partition("%")
        if percent and not _ZONE.fullmatch(zone):
            raise _unparsable(url, f"invalid URL escape {quote((percent + zone)[:3])}")
        try:
            ipaddress.IPv6Address(address)
        except ValueError:
            raise _unparsable(url, f"invalid host: {quote(authority)}") from None
        return
    host, colon, port = authority.partition(":")
    _check_port(url, colon + port)
    if bad := re.search(r"[][ \"<>^`{|}\\]", host):
        raise _unparsable(url, f"invalid character {quote(bad.group())} in host name")


def _check_port(url: str, colon_and_port: str) -> None:
    number = re.fullmatch(r":([0-9]*)", colon_and_port)
    digits = number[1].lstrip("0") if number else ""
    if (number or not colon_and_port) and len(digits) <= 5 and int(digits or 0) <= 65535:
        return
    # A slash in a password ends the authority early: then this is a part of it.
    shown = "" if "@" in url and surely_redacted(url) != redacted(url) else f" {quote(colon_and_port)}"
    raise _unparsable(url, f"invalid port{shown} after host")


def _ascii_authority(url: str, authority: str) -> str:
    if authority.startswith("["):
        return authority
    host, colon, port = authority.partition(":")
    if problem := host_problem(host):
        raise _unparsable(url, f"invalid host {quote(host)}: {problem}")
    return ascii_host(host) + colon + port
