"""IP addresses and networks."""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from attrs import frozen

from trio_sched.cel.errors import EvaluationError
from trio_sched.go.text import quote

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_BITS: Final = re.compile(r"(?:0|[1-9][0-9]{0,2})\Z")
_MAX_LENGTH: Final = 64
"""No address is longer; what is, is not looked at closely."""
_LINK_LOCAL_6: Final = ipaddress.IPv6Network("fe80::/10")
_BROADCAST: Final = ipaddress.IPv4Address("255.255.255.255")


@frozen
class Ip:
    """An address."""

    address: _Address

    @property
    def size(self) -> int:
        """Bytes."""
        return self.address.max_prefixlen // 8

    def __str__(self) -> str:
        return str(self.address)

    @property
    def family(self) -> int:
        """4 or 6."""
        return self.address.version

    @property
    def is_unspecified(self) -> bool:
        """Whether it is that of nobody."""
        return self.address.is_unspecified

    @property
    def is_loopback(self) -> bool:
        """Whether it is that of the host itself."""
        return self.address.is_loopback

    @property
    def is_link_local_unicast(self) -> bool:
        """Whether it is one of 169.254.0.0/16 or fe80::/10."""
        return self.address in _LINK_LOCAL_6 if self.family == 6 else self.address.is_link_local

    @property
    def is_link_local_multicast(self) -> bool:
        """Whether it is one of 224.0.0.0/24 or ff02::/16."""
        packed = self.address.packed
        if self.family == 4:
            return packed[:3] == b"\xe0\x00\x00"
        return packed[0] == 0xFF and packed[1] & 0x0F == 0x02

    @property
    def is_global_unicast(self) -> bool:
        """Whether it is none of the others, private addresses included."""
        return not (
            self.is_unspecified
            or self.is_loopback
            or self.address.is_multicast
            or self.is_link_local_unicast
            or self.address == _BROADCAST
        )


@frozen
class Cidr:
    """A network, with whatever bits of a host it was written with."""

    address: _Address
    bits: int

    @property
    def size(self) -> int:
        """Bytes that are looked at."""
        return -(-self.bits // 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def _network(self, address: _Address, bits: int) -> int:
        return int(address) >> (address.max_prefixlen - bits)

    def contains_ip(self, other: Ip) -> bool:
        """Whether *other* is of this network."""
        if self.address.version != other.address.version:
            return False
        return self._network(self.address, self.bits) == self._network(other.address, self.bits)

    def contains_cidr(self, other: Cidr) -> bool:
        """Whether all of *other* is in this network."""
        return self.bits <= other.bits and self.contains_ip(Ip(other.address))

    @property
    def masked(self) -> Cidr:
        """Without the bits of a host."""
        rest = self.address.max_prefixlen - self.bits
        return Cidr(type(self.address)(int(self.address) >> rest << rest), self.bits)


def parse_ip(text: str) -> Ip:
    """The address that *text* is.

    Raises:
        EvaluationError: it is none, or one with a zone, or an IPv4 address in IPv6.
    """
    address, zone = _address(text)
    if address is None:
        problem = f"ParseAddr({quote(text)}): unable to parse IP"
        raise EvaluationError(f"IP Address {quote(text)} parse error during conversion from string: {problem}")
    if zone:
        raise EvaluationError(f"IP address {quote(text)} with zone value is not allowed")
    _refuse_mapped(address, text)
    return Ip(address)


def _address(text: str) -> tuple[_Address | None, str]:
    """The address without its zone, and the zone."""
    bare, percent, zone = text.partition("%")
    if len(bare) > _MAX_LENGTH or not bare.isascii() or (percent and (not zone or ":" not in bare)):
        return None, ""
    try:
        return ipaddress.ip_address(bare), zone
    except ValueError:
        return None, ""


def _refuse_mapped(address: _Address, text: str) -> None:
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise EvaluationError(f"IPv4-mapped IPv6 address {quote(text)} is not allowed")


def parse_cidr(text: str) -> Cidr:
    """The network that *text* is.

    Raises:
        EvaluationError: it is none, or one with a zone, or of IPv4 addresses in IPv6.
    """
    before, slash, bits = text.rpartition("/")
    address, zone = _address(before)
    problem = ""
    if not slash:
        problem = "no '/'"
    elif address is None:
        problem = f"ParseAddr({quote(before)}): unable to parse IP"
    elif zone:
        problem = "IPv6 zones cannot be present in a prefix"
    elif not _BITS.match(bits):
        problem = f"bad bits after slash: {quote(bits)}"
    elif int(bits) > address.max_prefixlen:
        problem = "prefix length out of range"
    if problem or address is None:
        error = (
            f"network address parse error during conversion from string: netip.ParsePrefix({quote(text)}): {problem}"
        )
        raise EvaluationError(error)
    _refuse_mapped(address, text)
    return Cidr(address, int(bits))


def is_address_6(text: str) -> bool:
    """Whether *text* is an IPv6 address, with or without a zone."""
    return isinstance(_address(text)[0], ipaddress.IPv6Address)
