"""Client certificates: verified against the authorities that are trusted now."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

from attrs import define, field
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL.crypto import X509, X509Store, X509StoreContext, X509StoreContextError, X509StoreFlags

from trio_sched.daemon.metrics.series.serving import ServingMetrics
from trio_sched.daemon.serving.authentication.users import User
from trio_sched.daemon.serving.errors import NotAuthenticated
from trio_sched.daemon.serving.messages import Request

_UID = x509.ObjectIdentifier("1.3.6.1.4.1.57683.2")
"""The attribute of a subject that holds the UID of a user; source: KEP-5284 and the x509 authenticator."""


@define(eq=False)
class Authorities:
    """The certificate authorities that sign one sort of client certificates; none until some are set."""

    _pem: str = field(init=False, default="")
    _store: X509Store | None = field(init=False, default=None)

    @property
    def is_empty(self) -> bool:
        """Whether nobody's signature counts."""
        return self._store is None

    def replace(self, pem: str) -> bool:
        """Trust those in *pem* from now on; returns whether that is a change.

        Raises:
            ValueError: these are no certificates; those before stay.
        """
        if pem == self._pem:
            return False
        store = None
        if pem.strip():
            store = X509Store()
            store.set_flags(X509StoreFlags.PARTIAL_CHAIN)  # as in Go, an intermediate can be trusted by itself
            for certificate in x509.load_pem_x509_certificates(pem.encode()):
                store.add_cert(X509.from_cryptography(certificate))
        self._pem, self._store = pem, store
        return True

    def verify(self, certificates: tuple[x509.Certificate, ...]) -> x509.Certificate:
        """The client's own certificate, if one of the authorities stands behind it.

        Args:
            certificates: what the client has presented, its own first; at least one.

        Raises:
            NotAuthenticated: none of them does, or the certificate is not for clients.
        """
        own, *issuers = certificates
        assert self._store is not None  # see is_empty
        try:
            chain = [X509.from_cryptography(issuer) for issuer in issuers]
            X509StoreContext(self._store, X509.from_cryptography(own), chain).verify_certificate()
        except X509StoreContextError as error:
            raise NotAuthenticated(f"verifying certificate {_identifier(own)} failed: {error}") from error
        if not _is_for_clients(own):
            raise NotAuthenticated(f"verifying certificate {_identifier(own)} failed: it is not for clients")
        return own


def _identifier(certificate: x509.Certificate) -> str:
    return f"SN={certificate.serial_number}"


def _is_for_clients(certificate: x509.Certificate) -> bool:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:  # extensions that cannot be parsed
        return False
    return any(
        usage in (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE) for usage in usages
    )


def common_name(certificate: x509.Certificate) -> str:
    """The common name of its subject; empty if there is none."""
    return next(iter(_attributes(certificate, NameOID.COMMON_NAME)), "")


def _attributes(certificate: x509.Certificate, oid: x509.ObjectIdentifier) -> list[str]:
    try:
        return [str(name.value) for name in certificate.subject.get_attributes_for_oid(oid)]
    except ValueError:  # a subject that cannot be parsed names nobody
        return []


@define(eq=False)
class CertificateAuthenticator:
    """Takes the user from a verified certificate: the common name, organizations as groups."""

    authorities: Authorities
    reads_uid: bool = True
    metrics: ServingMetrics = field(factory=ServingMetrics)
    wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC)

    async def authenticate(self, request: Request) -> User | None:
        """The user of the certificate; None if there is none, or no authority to verify it by.

        Raises:
            NotAuthenticated: the certificate is not good.
        """
        if not request.certificates or self.authorities.is_empty:
            return None
        seconds_left = request.certificates[0].not_valid_after_utc - self.wall_clock()
        self.metrics.client_certificate_shown(seconds_left.total_seconds())
        certificate = self.authorities.verify(request.certificates)
        name = common_name(certificate)
        if not name:
            return None
        uids = _attributes(certificate, _UID) if self.reads_uid else []
        if len(uids) > 1:
            raise NotAuthenticated("unexpected number of UIDs in the certificate")
        return User(
            name=name,
            uid="".join(uids),
            groups=tuple(_attributes(certificate, NameOID.ORGANIZATION_NAME)),
            extra={"authentication.kubernetes.io/credential-id": (f"X509SHA256={_fingerprint(certificate)}",)},
        )


def _fingerprint(certificate: x509.Certificate) -> str:
    return hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
