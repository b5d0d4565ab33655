"""Certificates for clients, with the subjects that a test wants."""

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from attrs import define, field
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID


@define(eq=False)
class ClientAuthority:
    """Signs certificates of clients."""

    name: str
    _key: ec.EllipticCurvePrivateKey = field(init=False, factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    certificate: x509.Certificate = field(init=False)

    def __attrs_post_init__(self) -> None:
        name = _name(self.name, ())
        builder = _builder(name, name, self._key.public_key(), expired=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.sign(self._key, SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(
        self,
        common_name: str,
        organizations: tuple[str, ...] = (),
        *,
        usage: Any = ExtendedKeyUsageOID.CLIENT_AUTH,
        expired: bool = False,
        uid: str = "",
    ) -> tuple[bytes, bytes]:
        """Certificate and key, as PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(common_name, organizations, uid)
        builder = _builder(subject, self.certificate.subject, key.public_key(), expired=expired)
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        signed = builder.sign(self._key, SHA256()).public_bytes(Encoding.PEM)
        return signed, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def client_context(folder: Path, pair: tuple[bytes, bytes] | None = None, *, alpn: str = "http/1.1") -> ssl.SSLContext:
    """A context that trusts any server and presents *pair*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    if pair is not None:
        file = folder / "client.pem"
        file.write_bytes(pair[0] + pair[1])
        context.load_cert_chain(file)
    return context


def _name(common_name: str, organizations: tuple[str, ...], uid: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, one) for one in organizations]
    attributes.append(x509.NameAttribute(NameOID.COMMON_NAME, common_name))
    if uid:
        attributes.append(x509.NameAttribute(x509.ObjectIdentifier("1.3.6.1.4.1.57683.2"), uid))
    return x509.Name(attributes)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + timedelta(days=-1 if expired else 1))
    )
