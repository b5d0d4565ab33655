"""What is wrong with a text that must be a name, a label, a path or a number; None if nothing is.

Source: the checks of ``k8s.io/apimachinery/pkg/util/validation``, and their texts.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, wraps
from typing import Final

Check = Callable[[str], str | None]

_LONGEST_REMEMBERED: Final = 317
"""The longest prefix, slash and name together; what is longer is wrong, and anyone can send megabytes of it."""


def _remembered(check: Check) -> Check:
    """*check* with a memory for what thousands of objects have in common: the names of namespaces, and labels."""
    known = lru_cache(maxsize=1024)(check)

    @wraps(check)
    def remembered(text: str) -> str | None:
        return known(text) if len(text) <= _LONGEST_REMEMBERED else check(text)

    return remembered


_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_SUBDOMAIN_WITH_UNDERSCORE: Final = re.compile(r"[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?(\.[a-z0-9_]([-_a-z0-9]*[a-z0-9_])?)*")
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_OLD_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED_NAME: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_ENV: Final = re.compile(r"[ -<>-~]+")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[0-9])")
_PATH_SEGMENT_TABOO: Final = re.compile(r"[/%]")

_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_OLD_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_NAME_RULE: Final = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def subdomain(text: str) -> str | None:
    """An RFC 1123 subdomain, as most names are."""
    if len(text) > 253:
        return _too_long(253)
    return None if _SUBDOMAIN.fullmatch(text) else _SUBDOMAIN_RULE


def domain_prefixed_path(text: str) -> str | None:
    """A subdomain, a slash and a path, like names of controllers."""
    domain, slash, path = text.partition("/")
    if not slash or not domain or not path:
        return 'must be a domain-prefixed path (such as "acme.io/foo")'
    if problem := subdomain(domain):
        return problem
    return None if _HTTP_PATH.fullmatch(path) else "a valid HTTP path must consist of characters of URLs"


def subdomain_with_underscore(text: str) -> str | None:
    """A subdomain in which underscores are fine, as in search lists."""
    if len(text) > 253:
        return _too_long(253)
    return None if _SUBDOMAIN_WITH_UNDERSCORE.fullmatch(text) else _SUBDOMAIN_RULE


@_remembered
def dns_label(text: str) -> str | None:
    """An RFC 1123 label, as names of containers are."""
    if len(text) > 63:
        return _too_long(63)
    return None if _LABEL.fullmatch(text) else _LABEL_RULE


def old_dns_label(text: str) -> str | None:
    """An RFC 1035 label, which begins with a letter."""
    if len(text) > 63:
        return _too_long(63)
    return None if _OLD_LABEL.fullmatch(text) else _OLD_LABEL_RULE


def path_segment(text: str) -> str | None:
    """A name that only has to fit into a path, as those of roles."""
    if text in (".", ".."):
        return f"may not be '{text}'"
    return "may not contain '/' or '%'" if _PATH_SEGMENT_TABOO.search(text) else None


@_remembered
def qualified_name(text: str) -> str | None:
    """A key of labels: a name, perhaps with a subdomain before a slash."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return f"a valid label key {_QUALIFIED_NAME_RULE.removeprefix('name part ')}"
    if slash and not prefix:
        return "prefix part must be non-empty"
    if slash and (problem := subdomain(prefix)):
        return f"prefix part {problem}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return None if _QUALIFIED_NAME.fullmatch(name) else _QUALIFIED_NAME_RULE


@_remembered
def label_value(text: str) -> str | None:
    """The value of a label."""
    if len(text) > 63:
        return _too_long(63)
    return None if _LABEL_VALUE.fullmatch(text) else _LABEL_VALUE_RULE


def config_key(text: str) -> str | None:
    """A key in a ConfigMap or a Secret."""
    if len(text) > 253:
        return _too_long(253)
    if text in (".", ".."):
        return f"must not be '{text}'"
    if text.startswith(".."):
        return "must not start with '..'"
    rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    return None if _CONFIG_KEY.fullmatch(text) else rule


def header_name(text: str) -> str | None:
    """The name of an HTTP header."""
    rule = (
        "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
        "validation is '[-A-Za-z0-9]+')"
    )
    return None if _HEADER.fullmatch(text) else rule


def environment_variable(text: str) -> str | None:
    """The name of an environment variable."""
    rule = "a valid environment variable name must consist only of printable ASCII characters other than '='"
    return None if _ENV.fullmatch(text) else rule


def port_name(text: str) -> str | None:
    """The name of a port of a container."""
    if len(text) > 15:
        return "must be no more than 15 characters"
    if not _PORT_NAME.fullmatch(text):
        return "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", text):
        return "must contain at least one letter (a-z)"
    if "--" in text:
        return "must not contain consecutive hyphens"
    return "must not begin or end with a hyphen" if text.startswith("-") or text.endswith("-") else None


def port_number(number: int) -> str | None:
    """The number of a port."""
    return None if 0 < number < 65536 else "must be between 1 and 65535, inclusive"


def ip_address(text: str) -> str | None:
    """An IPv4 or IPv6 address; numbers may have leading zeros, as in fields that always took them."""
    with suppress(ValueError):
        if "%" not in text:
            ipaddress.ip_address(text if ":" in text else _LEADING_ZEROS.sub("", text))
            return None
    return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def cidr(text: str) -> str | None:
    """A network as address and bits."""
    address, slash, bits = text.partition("/")
    limit = 128 if ":" in address else 32
    if slash and ip_address(address) is None and re.fullmatch(r"[0-9]{1,3}", bits) and int(bits) <= limit:
        return None
    return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
