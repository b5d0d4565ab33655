"""A certificate in one line, as kube-scheduler logs it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from trio_sched.go.text import quote

_PURPOSES: Final = "1.3.6.1.5.5.7.3."
"""What the usages of RFC 5280 begin with; Go numbers its own constants in the same way."""
_NAMED: Final = {
    ExtendedKeyUsageOID.CLIENT_AUTH.dotted_string: "client",
    ExtendedKeyUsageOID.SERVER_AUTH.dotted_string: "serving",
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE.dotted_string: "0",
}


def certificate_detail(certificate: x509.Certificate, now: datetime) -> str:
    """Name, usages, names that it is valid for, issuer and validity; what cannot be parsed is left out."""
    name, issuer = _values(certificate.subject, NameOID.COMMON_NAME), _values(certificate.issuer, NameOID.COMMON_NAME)
    groups = _values(certificate.subject, NameOID.ORGANIZATION_NAME)
    valid_for = list(_valid_for(certificate))
    parts = [f"{quote(_last(name))} [{','.join(_usages(certificate))}]"]
    if groups:
        parts.append(f"groups=[{','.join(groups)}]")
    if valid_for:
        parts.append(f"validServingFor=[{','.join(valid_for)}]")
    parts.append(f"issuer={quote('<self>' if _last(name) == _last(issuer) else _last(issuer))}")
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    parts.append(f"({_time(begin)} to {_time(end)} (now={_time(now)}))")
    return " ".join(parts)


def _values(name: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(value.value) for value in name.get_attributes_for_oid(oid)]


def _last(values: list[str]) -> str:
    return values[-1] if values else ""


def _usages(certificate: x509.Certificate) -> Iterator[str]:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except (x509.ExtensionNotFound, ValueError):
        return
    for oid in (usage.dotted_string for usage in usages):
        number = oid.removeprefix(_PURPOSES)
        if oid in _NAMED:
            yield _NAMED[oid]
        elif len(number) == 1:
            yield number


def _valid_for(certificate: x509.Certificate) -> Iterator[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return
    yield from map(str, names.get_values_for_type(x509.IPAddress))
    yield from names.get_values_for_type(x509.DNSName)


def _time(when: datetime) -> str:
    """As Go prints times: the fraction of a second without zeros at its end."""
    when = when.astimezone(UTC)
    fraction = f".{when.microsecond:06d}".rstrip("0") if when.microsecond else ""
    return f"{when:%Y-%m-%d %H:%M:%S}{fraction} +0000 UTC"
