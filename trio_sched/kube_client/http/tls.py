"""TLS contexts from certificates in memory or in files, rebuilt when a file was replaced."""

import logging
import ssl

from attrs import define, field

from trio_sched.kube_client.errors import KubeconfigError
from trio_sched.kube_client.files import read_file
from trio_sched.kube_client.http.client_certificate import load_client_certificate, pem_blocks
from trio_sched.kube_client.settings import TlsSettings

log = logging.getLogger(__name__)

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

    def context_for_any_name(self) -> ssl.SSLContext:
        """A context that trusts the same authorities, whatever name a certificate is for, without a client certificate.

        It is only for reading the names in a certificate: nothing may be sent over a connection that it was used for.

        Raises:
            KubeconfigError: as :meth:`context`.
        """
        authority = (self._material or self._read())[0]
        context = build_context(self.settings, (authority, b"", b""))
        context.check_hostname = False
        return context

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

    def reload_or_keep(self) -> bool:
        """Reload the files; unusable ones are logged, and what was read of them before stays in use."""
        if not self.settings.files:
            return False
        try:
            is_new = self.reload()
        except KubeconfigError as problem:
            log.warning("keeping the certificates in use: %s", problem)
            return False
        if is_new:
            log.info("certificates were replaced; connecting again")
        return is_new

    def use_client_certificate(self, certificate: bytes, key: bytes) -> bool:
        """Use the certificate that an exec plugin returned; returns whether it is another one than before.

        Raises:
            KubeconfigError: it is unusable; then the one before stays in use.
        """
        before = self._exec_certificate
        if (certificate, key) == before:
            return False
        self._exec_certificate = (certificate, key)
        try:
            return self.reload()
        except KubeconfigError:
            self._exec_certificate = before
            raise

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
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # an intermediate authority can be trusted without its root
    context.hostname_checks_common_name = False
    context.set_alpn_protocols(["http/1.1"])
    if settings.insecure_skip_verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif authority:
        _trust(context, authority)
    else:
        context.load_default_certs()
    if certificate or key:
        load_client_certificate(context, certificate, key)
    return context


def _trust(context: ssl.SSLContext, authority: bytes) -> None:
    """Trust the certificates in *authority*; those that cannot be read are skipped, as by Go, if there is another."""
    certificates = [block for block in pem_blocks(authority) if block.type == "CERTIFICATE"]
    if not certificates:
        raise KubeconfigError("unable to load root certificates: unable to parse bytes as PEM block")
    unreadable: list[ssl.SSLError] = []
    for certificate in certificates:
        try:
            context.load_verify_locations(cadata=certificate.text.decode("ascii", "replace").replace("\ufffd", "?"))
        except ssl.SSLError as problem:
            unreadable.append(problem)
    if len(unreadable) == len(certificates):
        text = unreadable[0].reason or "malformed certificate"
        raise KubeconfigError(f"unable to load root certificates: failed to parse certificate: {text}")
