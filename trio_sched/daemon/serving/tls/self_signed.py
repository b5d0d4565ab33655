"""A self-signed certificate for a server that was given none, and how long it is valid."""

from __future__ import annotations

import ipaddress
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_HOST: Final = "localhost"
_BACKDATED: Final = timedelta(hours=1)
_LIFETIME_DAYS: Final = 365
_KEY_BITS: Final = 2048
_PUBLIC_EXPONENT: Final = 65537


def self_signed(bind_address: str) -> tuple[bytes, bytes]:
    """A new certificate with its authority's behind it, and its private key, both as PEM.

    The key of the authority is thrown away.

    Args:
        bind_address: also one of its names, unless it is unspecified.
    """
    now = datetime.now(UTC)
    stamp = int(time.time())
    authority_name, name = (_common_name(f"{text}@{stamp}") for text in (f"{_HOST}-ca", _HOST))
    authority_key, key = (rsa.generate_private_key(_PUBLIC_EXPONENT, _KEY_BITS) for _ in range(2))
    authority = (
        _builder(authority_name, authority_name, authority_key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(authority_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(authority_name_text(authority_name))]), critical=False)
        .sign(authority_key, SHA256())
    )
    certificate = (
        _builder(name, authority_name, key.public_key(), now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key()), critical=False)
        .add_extension(x509.SubjectAlternativeName(_names(bind_address)), critical=False)
        .sign(authority_key, SHA256())
    )
    chain = certificate.public_bytes(Encoding.PEM) + authority.public_bytes(Encoding.PEM)
    return chain, key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def write_pair(certificate_file: Path, key_file: Path, pair: tuple[bytes, bytes]) -> None:
    """Write certificate and key; the key so that nobody else can read it.

    Raises:
        OSError: they cannot be written.
    """
    for path, content, mode in ((certificate_file, pair[0], 0o644), (key_file, pair[1], 0o600)):
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(opened, "wb") as file:
            os.fchmod(opened, mode)
            file.write(content)


def authority_name_text(name: x509.Name) -> str:
    """The common name in *name*."""
    return str(name.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _builder(subject: x509.Name, issuer: x509.Name, key: rsa.RSAPublicKey, now: datetime) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(now + timedelta(days=_LIFETIME_DAYS))
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=True,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _names(bind_address: str) -> list[x509.GeneralName]:
    address = ipaddress.ip_address(bind_address or "0.0.0.0")
    loopback = ipaddress.ip_address("127.0.0.1")
    names: list[x509.GeneralName] = [x509.DNSName(_HOST)]
    if address.is_unspecified:
        names.append(x509.DNSName(_HOST))
    names.append(x509.IPAddress(loopback))
    if not address.is_unspecified:
        names.append(x509.IPAddress(address))
    return names
