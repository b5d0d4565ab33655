"""Formats of names and texts, and what is wrong with what does not have them; the texts are those of Kubernetes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from trio_sched.cel.values.times import parse_timestamp
from trio_sched.cel.values.urls import uri_problem
from trio_sched.cel.values.values import NamedFormat

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE: Final = f"({_KEY})?"
_PATTERNS: Final = {text: re.compile(f"(?:{text})\\Z") for text in (_LABEL, _SUBDOMAIN, _LABEL_1035, _KEY, _VALUE)}
_AROUND: Final = "must start and end with an alphanumeric character"
_LABEL_PROBLEM: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_AROUND}"
)
_SUBDOMAIN_PROBLEM: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_AROUND}"
)
_LABEL_1035_PROBLEM: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_KEY_PROBLEM: Final = f"must consist of alphanumeric characters, '-', '_' or '.', and {_AROUND}"
_VALUE_PROBLEM: Final = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and {_AROUND}"
)
_KEY_EXAMPLES: Final = ("MyName", "my.name", "123-abc")
_UUID: Final = re.compile(
    r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\Z", re.IGNORECASE | re.ASCII
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})\Z")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})\Z")


def _is(pattern: str, text: str) -> bool:
    return _PATTERNS[pattern].match(text) is not None


def _pattern_problem(problem: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{problem} (e.g. {shown}regex used for validation is '{pattern}')"


def _length_problems(text: str, limit: int, unit: str = "characters") -> list[str]:
    """The problem that *text* is longer than *limit* bytes; the original has two functions, with a word each for it."""
    is_long = len(text) > limit or len(text.encode("utf-8", "surrogatepass")) > limit
    return [f"must be no more than {limit} {unit}"] if is_long else []


def _label(text: str) -> list[str]:
    found = _length_problems(text, 63)
    if not _is(_LABEL, text):
        if _is(_SUBDOMAIN, text):
            found.append("must not contain dots")
        else:
            found.append(_pattern_problem(_LABEL_PROBLEM, _LABEL, "my-name", "123-abc"))
    return found


def _subdomain(text: str, unit: str = "characters") -> list[str]:
    found = _length_problems(text, 253, unit)
    if not _is(_SUBDOMAIN, text):
        found.append(_pattern_problem(_SUBDOMAIN_PROBLEM, _SUBDOMAIN, "example.com"))
    return found


def _label_1035(text: str) -> list[str]:
    found = _length_problems(text, 63)
    if not _is(_LABEL_1035, text):
        found.append(_pattern_problem(_LABEL_1035_PROBLEM, _LABEL_1035, "my-name", "abc-123"))
    return found


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """For what names are generated from: a trailing dash is no mistake."""

    def checked(text: str) -> list[str]:
        return check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return checked


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    problem = _pattern_problem(_KEY_PROBLEM, _KEY, *_KEY_EXAMPLES)
    if len(parts) > 2:
        example = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {problem} {example}"]
    found: list[str] = []
    *prefixes, name = parts
    for prefix in prefixes:
        problems_of_prefix = _subdomain(prefix, "bytes") if prefix else ["must be non-empty"]
        found += [f"prefix part {one}" for one in problems_of_prefix]
    found += [f"name part {one}" for one in (_length_problems(name, 63, "bytes") if name else ["must be non-empty"])]
    if not _is(_KEY, name):
        found.append(f"name part {problem}")
    return found


def _label_value(text: str) -> list[str]:
    found = _length_problems(text, 63, "bytes")
    if not _is(_VALUE, text):
        found.append(_pattern_problem(_VALUE_PROBLEM, _VALUE, "MyValue", "my_value", "12345"))
    return found


def _uri(text: str) -> list[str]:
    problem = uri_problem(text)
    return [] if problem is None else [problem]


def _is_date(text: str) -> bool:
    year = "2000" if text[:4] == "0000" else text[:4]  # no year of a timestamp, but one of a date
    return len(text) == 10 and parse_timestamp(f"{year}{text[4:]}T00:00:00Z") is not None


def _is_date_and_time(text: str) -> bool:
    date, _, time = text.lower().partition("t")
    match = _TIME.match(time.partition("t")[0])
    return match is not None and _is_date(date) and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _whether(check: Callable[[str], object], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if check(text) else [problem]


_CHECKS: Final[dict[str, tuple[str, Callable[[str], list[str]]]]] = {
    "dns1123Label": ("DNS1123Label", _label),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", _prefix(_label)),
    "dns1123Subdomain": ("DNS1123Subdomain", _subdomain),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", _prefix(_subdomain)),
    "dns1035Label": ("DNS1035Label", _label_1035),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", _prefix(_label_1035)),
    "qualifiedName": ("QualifiedName", _qualified_name),
    "labelValue": ("LabelValue", _label_value),
    "uri": ("URI", _uri),
    "uuid": ("uuid", _whether(_UUID.match, "does not match the UUID format")),
    "byte": ("byte", _whether(_BASE64.match, "invalid base64")),
    "date": ("date", _whether(_is_date, "invalid date")),
    "datetime": ("datetime", _whether(_is_date_and_time, "invalid datetime")),
}
FORMATS: Final = {key: NamedFormat(key, name) for key, (name, _check) in _CHECKS.items()}
"""Formats by their key."""


def problems(key: str, text: str) -> list[str]:
    """What is wrong with *text* as one of the format with that *key*; empty: nothing."""
    return _CHECKS[key][1](text)
