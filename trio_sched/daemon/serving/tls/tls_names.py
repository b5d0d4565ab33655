"""The names and numbers of TLS that flags may use, as Go's ``crypto/tls`` has them, and what OpenSSL calls them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

TLS13_SUITES: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Go has no choice among these: they are always offered with TLS 1.3."""

SUITES: Final[Mapping[str, str]] = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA": "ECDHE-ECDSA-AES128-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA": "ECDHE-ECDSA-AES256-SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA": "ECDHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA": "ECDHE-RSA-AES256-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305": "ECDHE-ECDSA-CHACHA20-POLY1305",
}
"""Suites of TLS 1.2 and before."""

INSECURE_SUITES: Final[Mapping[str, str]] = {
    "TLS_RSA_WITH_RC4_128_SHA": "RC4-SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA": "DES-CBC3-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA": "AES128-SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA": "ECDHE-ECDSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA": "ECDHE-RSA-RC4-SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA": "ECDHE-RSA-DES-CBC3-SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256": "ECDHE-ECDSA-AES128-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256": "ECDHE-RSA-AES128-SHA256",
}
"""Suites that are offered only when they are asked for; the log warns of them."""

CURVES: Final[Mapping[int, str]] = {
    23: "P-256",
    24: "P-384",
    25: "P-521",
    29: "X25519",
    4587: "SecP256r1MLKEM768",
    4588: "X25519MLKEM768",
    4589: "SecP384r1MLKEM1024",
}
"""Key exchange mechanisms by their IANA numbers."""

VERSIONS: Final = frozenset({"", "VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"})
"""The oldest versions that can be asked for; empty: 1.2."""

_MAX_CURVE: Final = (1 << 16) - 1


def cipher_suite_problem(names: Sequence[str]) -> str:
    """What is wrong with the first unknown name among *names*; empty if nothing is."""
    for name in names:
        if name not in TLS13_SUITES and name not in SUITES and name not in INSECURE_SUITES:
            return f"Cipher suite {name} not supported or doesn't exist"
    return ""


def curve_problem(numbers: Sequence[int]) -> str:
    """What is wrong with the first unusable number among *numbers*; empty if nothing is."""
    for index, number in enumerate(numbers):
        if not 0 < number <= _MAX_CURVE:
            return f"curve preference {number} is out of range (must be 1-{_MAX_CURVE})"
        if number in numbers[:index]:
            return f"duplicate curve preference {number}"
        if number not in CURVES:
            return f"curve preference {number} is not supported by the current Go version"
    return ""
