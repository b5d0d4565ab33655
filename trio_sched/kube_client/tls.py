"""TLS contexts from certificates in memory or in files, rebuilt when a file was replaced."""

import ssl
import tempfile
from pathlib import Path

from attrs import define, field

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.settings import TlsSettings

_PEM_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"

Material = tuple[bytes, bytes, bytes]
"""Certificate authority, client certificate, client key, as PEM; empty where there is none."""


@define(eq=False)
class TlsSource:
    """The context for the next connection; a new one after a certificate changed.

    Args:
        settings: the kubeconfig's certificates.
    """

    settings: TlsSettings
    generation: int = field(default=0, init=False)
    """Incremented when the certificates change: connections of earlier generations use outdated ones."""
    _exec_certificate: tuple[bytes, bytes] = field(default=(b"", b""), init=False)
    _material: Material | None = field(default=None, init=False)
    _context: ssl.SSLContext | None = field(default=None, init=False)

    def context(self) -> ssl.SSLContext:
        """The context as of the last :meth:`reload`, made on first use.

        Raises:
            KubeconfigError: a certificate or key is unreadable or invalid.
        """
        if self._context is None:
            self._material = self._read()
            self._context = build_context(self.settings, self._material)
        return self._context

    def reload(self) -> bool:
        """Read the files again; returns whether something changed, so that new connections are needed.

        While a file is being replaced it may be missing or incomplete: then the old context stays.

        Raises:
            KubeconfigError: a certificate or key is unreadable or invalid.
        """
        material = self._read()
        if material == self._material:
            return False
        context = build_context(self.settings, material)
        is_first = self._context is None
        self._material, self._context = material, context
        if not is_first:
            self.generation += 1
        return not is_first

    def use_client_certificate(self, certificate: bytes, key: bytes) -> bool:
        """Use the certificate that an exec plugin returned; returns whether it is another one than before."""
        if (certificate, key) == self._exec_certificate:
            return False
        self._exec_certificate = (certificate, key)
        return self.reload()

    def _read(self) -> Material:
        settings = self.settings
        certificate, key = self._exec_certificate
        return (
            settings.ca_data or read_file(settings.ca_file),
            certificate or settings.client_certificate_data or read_file(settings.client_certificate_file),
            key or settings.client_key_data or read_file(settings.client_key_file),
        )


def build_context(settings: TlsSettings, material: Material) -> ssl.SSLContext:
    """A client context with the certificates and the key in *material*.

    Raises:
        KubeconfigError: with the text of kube-scheduler where it has one.
    """
    authority, certificate, key = material
    if authority and settings.insecure_skip_verify:
        raise KubeconfigError("specifying a root certificates file with the insecure flag is not allowed")
    # Not create_default_context: since Python 3.13 it is strict about key identifiers that many clusters' own
    # authorities leave out, and kubectl accepts those.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    if settings.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        _trust(context, authority)
    else:
        context.load_default_certs()
    if certificate or key:
        _load_pair(context, certificate, key)
    return context


def read_file(path: str) -> bytes:
    """The bytes of *path*; none for an empty path.

    Raises:
        KubeconfigError: it cannot be read; with the text of kube-scheduler.
    """
    if not path:
        return b""
    try:
        return Path(path).read_bytes()
    except OSError as problem:
        raise KubeconfigError(f"open {path}: {describe_os_error(problem)}") from problem


def describe_os_error(problem: OSError) -> str:
    """The system's text for *problem*, in lower case as kube-scheduler prints it."""
    return (problem.strerror or str(problem)).lower()


def _trust(context: ssl.SSLContext, authority: bytes) -> None:
    if _PEM_CERTIFICATE not in authority:
        raise KubeconfigError("unable to load root certificates: unable to parse bytes as PEM block")
    try:
        context.load_verify_locations(cadata=authority.decode("ascii", "replace"))
    except ssl.SSLError as problem:
        text = problem.reason or str(problem)
        raise KubeconfigError(f"unable to load root certificates: {text}") from problem


def _load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    # OpenSSL's Python binding reads key pairs from files only; this one has mode 0600 and is deleted at once.
    with tempfile.NamedTemporaryFile(suffix=".pem") as pair:
        pair.write(certificate.rstrip(b"\n") + b"\n" + key)
        pair.flush()
        try:
            context.load_cert_chain(pair.name)
        except ssl.SSLError as problem:
            raise KubeconfigError(f"tls: {_explain_pair(certificate, key, problem)}") from problem


def _explain_pair(certificate: bytes, key: bytes, problem: ssl.SSLError) -> str:
    if b"-----BEGIN" not in certificate:
        return "failed to find any PEM data in certificate input"
    if b"-----BEGIN" not in key:
        return "failed to find any PEM data in key input"
    if problem.reason == "KEY_VALUES_MISMATCH":
        return "private key does not match public key"
    return f"failed to load the client certificate and key: {problem.reason or problem}"
