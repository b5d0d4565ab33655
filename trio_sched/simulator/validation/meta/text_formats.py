"""The formats that a schema can ask of a text."""

import re
from base64 import b64decode
from collections.abc import Callable, Mapping
from datetime import date, datetime
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from trio_sched.simulator.validation.meta.names import dns_label, subdomain

_UUID: Final = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_SIGNS: Final = "A-Za-z0-9$+<=>^`|~"
"""What the API server takes in names of hosts, symbols of Unicode apart."""
_HOST: Final = re.compile(
    rf"(?=.{{1,255}}$)([{_SIGNS}](-?[{_SIGNS}]{{0,62}})?|([{_SIGNS}]([{_SIGNS}-]{{0,61}}[{_SIGNS}])?\.)+[A-Za-z]{{2,63}})"
)
_MAC: Final = re.compile(r"([0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}")
_GO_DURATION: Final = re.compile(r"[+-]?(0|((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+)")
_AMOUNT_OF_TIME: Final = re.compile(r"\d+\s*([A-Za-zµ]+)")
_UNITS: Final = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_LONG_UNITS: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_DATE_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(.\d+)?([Zz]|[+-]\d\d:\d\d)")
_URI: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:\S*|/\S*)")


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def is_valid(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return is_valid


def _matches(pattern: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: pattern.fullmatch(text) is not None


def _is_duration(text: str) -> bool:
    """As in Go, or anything in which an amount of time occurs, such as ``5 minutes``."""
    units = [unit.lower() for unit in _AMOUNT_OF_TIME.findall(text)]
    return _GO_DURATION.fullmatch(text) is not None or any(
        unit in _UNITS or unit.startswith(_LONG_UNITS) for unit in units
    )


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "byte": lambda text: bool(text) and _parses(lambda one: b64decode(one, validate=True))(text),
    "cidr": lambda text: "/" in text and _parses(lambda one: ip_network(one, strict=False))(text),
    "date": _parses(date.fromisoformat),
    "date-time": lambda text: _DATE_TIME.fullmatch(text) is not None and _parses(datetime.fromisoformat)(text[:19]),
    "duration": _is_duration,
    "email": _matches(_EMAIL),
    "hostname": _matches(_HOST),
    "ipv4": _parses(IPv4Address),
    "ipv6": _parses(IPv6Address),
    "k8s-long-name": lambda text: subdomain(text) is None,
    "k8s-short-name": lambda text: dns_label(text) is None,
    "mac": _matches(_MAC),
    "uri": _matches(_URI),
    "uuid": _matches(_UUID),
}
"""The formats that objects of clusters have; those of others (credit cards, colours) are not looked at."""
