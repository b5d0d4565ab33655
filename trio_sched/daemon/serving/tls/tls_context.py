"""What a connection shakes hands with: certificates, the oldest version of TLS, cipher suites, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from OpenSSL import SSL

from trio_sched.daemon.serving.errors import ServingError
from trio_sched.daemon.serving.tls.tls_names import CURVES, INSECURE_SUITES, SUITES
from trio_sched.daemon.serving_settings import TlsServerSettings

_VERSIONS: Final = {
    "": SSL.TLS1_2_VERSION,
    "VersionTLS10": SSL.TLS1_VERSION,
    "VersionTLS11": SSL.TLS1_1_VERSION,
    "VersionTLS12": SSL.TLS1_2_VERSION,
    "VersionTLS13": SSL.TLS1_3_VERSION,
}
_DEFAULT_SUITES: Final = (
    "ECDHE+AESGCM:ECDHE+CHACHA20:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES256-SHA:"
    "ECDHE-RSA-AES256-SHA"
)
_OLD_VERSIONS: Final = ("VersionTLS10", "VersionTLS11")


def build_context(
    settings: TlsServerSettings, certificate: bytes, key: bytes, *, http2: bool, file: str = ""
) -> SSL.Context:
    """A context that presents *certificate* and asks clients for theirs, which it does not verify.

    Args:
        settings: versions, suites and curves.
        certificate: as PEM, followed by its issuers.
        key: its private key as PEM.
        http2: whether to offer HTTP/2.
        file: where the certificate is from, for errors.

    Raises:
        ServingError: certificate and key are not usable, or this OpenSSL lacks what *settings* ask for.
    """
    context = SSL.Context(SSL.TLS_SERVER_METHOD)
    context.set_min_proto_version(_VERSIONS[settings.min_version])
    context.set_options(SSL.OP_NO_COMPRESSION | SSL.OP_NO_RENEGOTIATION | SSL.OP_NO_TICKET)
    context.set_mode(SSL.MODE_RELEASE_BUFFERS)  # those of idle connections take 34 KiB each
    context.set_session_cache_mode(SSL.SESS_CACHE_OFF)  # a resumed session would lack the client's certificates
    context.set_session_id(b"trio-sched")
    context.set_verify(SSL.VERIFY_PEER, _accept)
    offered = (b"h2", b"http/1.1") if http2 else (b"http/1.1",)
    context.set_alpn_select_callback(lambda _connection, asked: _first_common(offered, asked))
    _set_suites(context, settings)
    _set_curves(context, settings.curves)
    _use_pair(context, certificate, key, file)
    return context


def _accept(_connection: SSL.Connection, _certificate: Any, _error: int, _depth: int, _ok: int) -> bool:
    """Take every client certificate: who has presented what is the authenticators' business."""
    return True


def _first_common(offered: Sequence[bytes], asked: Sequence[bytes]) -> Any:
    return next((protocol for protocol in offered if protocol in asked), SSL.NO_OVERLAPPING_PROTOCOLS)


def _set_suites(context: SSL.Context, settings: TlsServerSettings) -> None:
    names = [SUITES.get(name) or INSECURE_SUITES.get(name, "") for name in settings.cipher_suites]
    suites = ":".join(filter(None, names)) or _DEFAULT_SUITES
    if settings.min_version in _OLD_VERSIONS or any(name in INSECURE_SUITES for name in settings.cipher_suites):
        suites += ":@SECLEVEL=0"  # higher levels have neither
    try:
        context.set_cipher_list(suites.encode())
    except SSL.Error as error:
        asked = ", ".join(settings.cipher_suites)
        raise ServingError(
            f"--tls-cipher-suites: OpenSSL has none of {asked}; name at least one that it has"
        ) from error


def _set_curves(context: SSL.Context, curves: Sequence[int]) -> None:
    if not curves:
        return
    names = ":".join(CURVES[number] for number in curves)
    # pyOpenSSL binds this function of OpenSSL and offers only one that takes a single curve.
    library: Any = vars(SSL)["_lib"]
    if library.SSL_CTX_set1_curves_list(context._context, names.encode()) != 1:
        library.ERR_clear_error()
        raise ServingError(f"--tls-curve-preferences: OpenSSL lacks one of {names}; leave it out")


def _use_pair(context: SSL.Context, certificate: bytes, key: bytes, file: str) -> None:
    try:
        own, *issuers = x509.load_pem_x509_certificates(certificate)
        context.use_certificate(own)
        for issuer in issuers:
            context.add_extra_chain_cert(issuer)
    except (ValueError, SSL.Error) as error:
        raise ServingError("tls: failed to find any PEM data in certificate input", place=file) from error
    try:
        context.use_privatekey(load_pem_private_key(key, password=None))  # type: ignore[arg-type]  # or TypeError
        context.check_privatekey()
    except (ValueError, TypeError, UnsupportedAlgorithm, SSL.Error) as error:
        raise ServingError("tls: private key does not match public key", place=file) from error
