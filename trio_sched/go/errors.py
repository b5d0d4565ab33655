"""What Go's ``net``, ``crypto/tls``, ``crypto/x509`` and ``net/http`` say when a connection fails.

These texts end in pod conditions and events, where users and tools match on them; Python's and OpenSSL's would be new
to both. All of them are here. Source: the files with the error types of these packages.
"""

import errno
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

EOF: Final = "EOF"
UNEXPECTED_EOF: Final = "unexpected EOF"
HANDSHAKE_TIMEOUT: Final = "net/http: TLS handshake timeout"
DEADLINE_EXCEEDED: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
CONNECTION_LOST: Final = "http2: client connection lost"
"""The error of a connection that is silent while others work; Go's clients find that out with HTTP/2 pings."""
TOO_MANY_REDIRECTS: Final = "stopped after 10 redirects"
MALFORMED_RESPONSE: Final = "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
HTTP_INSTEAD_OF_TLS: Final = "http: server gave HTTP response to HTTPS client"
LEGACY_COMMON_NAME: Final = "x509: certificate relies on legacy Common Name field, use SANs instead"

_NOT_TLS: Final = "tls: first record does not look like a TLS handshake"
UNTRUSTED: Final = "tls: failed to verify certificate: "
"""What the text of an error about a certificate that is not trusted begins with."""
_VERIFICATION: Final[Mapping[int, str]] = {  # by OpenSSL's X509_V_ERR_ numbers
    2: "x509: certificate signed by unknown authority",  # the issuer's certificate is missing
    18: "x509: certificate signed by unknown authority",  # self-signed
    19: "x509: certificate signed by unknown authority",  # self-signed root in the chain
    20: "x509: certificate signed by unknown authority",  # the issuer's certificate is not among ours
    21: "x509: certificate signed by unknown authority",  # a lone leaf
    24: "x509: invalid basic constraints",
    25: "x509: too many intermediates for path length constraint",
    26: "x509: certificate specifies an incompatible key usage",
}
_EXPIRED: Final = {9: "before the certificate's notBefore", 10: "after the certificate's notAfter"}
NAME_MISMATCHES: Final = frozenset({62, 63, 64})
"""X509_V_ERR_HOSTNAME_MISMATCH, _EMAIL_MISMATCH and _IP_ADDRESS_MISMATCH."""
_HANDSHAKE: Final[Mapping[str, str]] = {  # by OpenSSL's reasons
    "WRONG_VERSION_NUMBER": _NOT_TLS,
    "RECORD_LAYER_FAILURE": _NOT_TLS,
    "PACKET_LENGTH_TOO_LONG": _NOT_TLS,
    "UNSUPPORTED_PROTOCOL": "tls: server selected unsupported protocol version",
    "WRONG_SSL_VERSION": "tls: server selected unsupported protocol version",
    "UNEXPECTED_EOF_WHILE_READING": EOF,
    "BAD_RECORD_MAC": "local error: tls: bad record MAC",
    "DECRYPTION_FAILED_OR_BAD_RECORD_MAC": "local error: tls: bad record MAC",
    "SSLV3_ALERT_BAD_CERTIFICATE": "remote error: tls: bad certificate",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "remote error: tls: expired certificate",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "remote error: tls: revoked certificate",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "remote error: tls: unknown certificate",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "remote error: tls: handshake failure",
    "SSLV3_ALERT_ILLEGAL_PARAMETER": "remote error: tls: illegal parameter",
    "SSLV3_ALERT_UNEXPECTED_MESSAGE": "remote error: tls: unexpected message",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "remote error: tls: unsupported certificate",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "remote error: tls: certificate required",
    "TLSV13_ALERT_MISSING_EXTENSION": "remote error: tls: missing extension",
    "TLSV1_ALERT_ACCESS_DENIED": "remote error: tls: access denied",
    "TLSV1_ALERT_DECODE_ERROR": "remote error: tls: error decoding message",
    "TLSV1_ALERT_DECRYPT_ERROR": "remote error: tls: error decrypting message",
    "TLSV1_ALERT_INSUFFICIENT_SECURITY": "remote error: tls: insufficient security level",
    "TLSV1_ALERT_INTERNAL_ERROR": "remote error: tls: internal error",
    "TLSV1_ALERT_NO_APPLICATION_PROTOCOL": "remote error: tls: no application protocol",
    "TLSV1_ALERT_PROTOCOL_VERSION": "remote error: tls: protocol version not supported",
    "TLSV1_ALERT_UNKNOWN_CA": "remote error: tls: unknown certificate authority",
    "TLSV1_UNRECOGNIZED_NAME": "remote error: tls: unrecognized name",
}
_NO_SUCH_HOST: Final = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if hasattr(socket, name)
)
_DIALLED: Final = re.compile(r"\('([^']+)', (\d+)")
_MAX_NAMES: Final = 100


def describe_failure(problem: BaseException) -> str:
    """What broke an open connection, or its TLS handshake."""
    match problem:
        case ssl.SSLCertVerificationError():
            return describe_untrusted(problem)
        case ssl.SSLEOFError():
            return EOF
        case ssl.SSLError():
            reason = getattr(problem, "reason", None) or ""  # only those that OpenSSL raises have one
            return _HANDSHAKE.get(reason) or f"tls: {reason.replace('_', ' ').lower() or 'protocol error'}"
        case OSError(errno=int(number)):
            return f"{'write' if number == errno.EPIPE else 'read'}: {os.strerror(number).lower()}"
    return str(problem) or type(problem).__name__


def describe_untrusted(problem: ssl.SSLCertVerificationError) -> str:
    """Why a certificate is not trusted; for a wrong name see :func:`describe_wrong_name`."""
    code = problem.verify_code
    if side := _EXPIRED.get(code):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{UNTRUSTED}x509: certificate has expired or is not yet valid: current time {now} is {side}"
    return UNTRUSTED + (_VERIFICATION.get(code) or f"x509: {problem.verify_message}")


def describe_wrong_name(certificate: Mapping[str, Any], host: str) -> str:
    """Why *certificate*, in the form of ``SSLSocket.getpeercert``, is not for *host*; empty: only *host* is known."""
    names = certificate.get("subjectAltName", ())
    if certificate and not names and host.lower() in (name.lower() for name in _common_names(certificate)):
        return UNTRUSTED + LEGACY_COMMON_NAME
    is_address = _is_address(host)
    valid = [str(name) for kind, name in names if kind == ("IP Address" if is_address else "DNS")]
    if len(valid) >= _MAX_NAMES:
        what = "IP SANs" if is_address else "names"
        return f"{UNTRUSTED}x509: certificate is valid for {len(valid)} {what}, but none matched {host}"
    if valid:
        return f"{UNTRUSTED}x509: certificate is valid for {', '.join(map(_shown, valid))}, not {host}"
    if not certificate:
        return f"{UNTRUSTED}x509: certificate is not valid for {host}"
    if is_address:
        return f"{UNTRUSTED}x509: cannot validate certificate for {host} because it doesn't contain any IP SANs"
    return f"{UNTRUSTED}x509: certificate is not valid for any names, but wanted to match {host}"


def describe_failed_dial(host: str, port: int, problem: Exception) -> str:
    """Why there is no connection to *host*; of several addresses the first that was tried is named."""
    match problem:
        case socket.gaierror():
            text = (problem.strerror or str(problem)).lower()
            return f"dial tcp: lookup {host}: {'no such host' if problem.errno in _NO_SUCH_HOST else text}"
        case OSError():
            first = _first_attempt(problem)
            tried = _DIALLED.search(str(first))
            address, text = (tried[1] if tried else host), os.strerror(first.errno) if first.errno else str(first)
            return f"dial tcp {host_port(address, port)}: connect: {text.lower()}"
    return f"dial tcp: lookup {host}: no such host"  # no name that could be looked up


def describe_slow_dial(host: str, port: int) -> str:
    """The error that the time to connect is over."""
    return f"dial tcp {host_port(host, port)}: i/o timeout"


def host_port(host: str, port: int) -> str:
    """Host and port as in a URL."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _first_attempt(problem: OSError) -> OSError:
    """The failure of the first address; trio chains those of several as a group to one error."""
    cause = problem.__cause__
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return cause if isinstance(cause, OSError) else problem


def _common_names(certificate: Mapping[str, Any]) -> list[str]:
    return [value for part in certificate.get("subject", ()) for key, value in part if key == "commonName"]


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _shown(name: str) -> str:
    """A name as Go prints it; OpenSSL writes IPv6 addresses without abbreviation."""
    return str(ipaddress.ip_address(name.strip())) if _is_address(name.strip()) else name
