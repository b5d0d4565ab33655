"""Normalises the server addresses of kubeconfigs to URLs."""

import ipaddress
import re
from urllib.parse import urlsplit

from trio_sched.kube_client.errors import KubeconfigError

_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://")


def normalise_server(server: str, *, has_tls_settings: bool) -> str:
    """*server* with a scheme, without query, fragment and the slash at its end; a path stays as a prefix.

    Args:
        server: a URL, or just ``host:port``.
        has_tls_settings: makes a bare ``host:port`` https instead of http.

    Raises:
        KubeconfigError: with the text of Go's URL parser, which kube-scheduler prints.
    """
    url = server if _SCHEME.match(server) else f"{'https' if has_tls_settings else 'http'}://{server}"
    if re.search(r"[\x00-\x1f\x7f]", url):
        raise KubeconfigError(f"parse {_quote(url)}: net/url: invalid control character in URL")
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    _check_authority(url, authority)
    if scheme.lower() not in ("http", "https"):
        raise KubeconfigError(f'unsupported scheme "{scheme}" of the server {_quote(server)}, must be http or https')
    if not authority or authority.startswith(":"):
        raise KubeconfigError(f"host must be a URL or a host:port pair: {_quote(server)}")
    parts = urlsplit(url)
    return f"{scheme.lower()}://{authority}{parts.path.rstrip('/')}"


def _check_authority(url: str, authority: str) -> None:
    if authority.startswith("["):
        inner, bracket, after = authority[1:].partition("]")
        if not bracket:
            raise KubeconfigError(f"parse {_quote(url)}: missing ']' in host")
        if after and not re.fullmatch(r":\d*", after):
            raise KubeconfigError(f"parse {_quote(url)}: invalid port {_quote(after)} after host")
        try:
            ipaddress.IPv6Address(inner.partition("%")[0])
        except ValueError:
            raise KubeconfigError(f"parse {_quote(url)}: invalid host: {_quote(authority)}") from None
        return
    host, colon, port = authority.partition(":")
    if colon and not re.fullmatch(r"\d*", port):
        raise KubeconfigError(f"parse {_quote(url)}: invalid port {_quote(colon + port)} after host")
    if port and int(port) > 65535:
        raise KubeconfigError(f"parse {_quote(url)}: invalid port {_quote(colon + port)} after host")
    if bad := re.search(r"[ \"<>^`{|}\\]", host):
        raise KubeconfigError(f"parse {_quote(url)}: invalid character {_quote(bad.group())} in host name")


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda match: f"\\x{ord(match.group()):02x}", escaped) + '"'
