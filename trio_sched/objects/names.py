"""Which names Kubernetes accepts for labels and resources, and its error texts for the others."""

import re
from typing import Final

_KEY_FORMAT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY: Final = re.compile(_KEY_FORMAT)
_VALUE_FORMAT: Final = f"({_KEY_FORMAT})?"
_VALUE: Final = re.compile(_VALUE_FORMAT)
_LABEL_FORMAT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_FORMAT: Final = rf"{_LABEL_FORMAT}(\.{_LABEL_FORMAT})*"
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_FORMAT)
_LONGEST: Final = 63
_LONGEST_SUBDOMAIN: Final = 253
_ENDS: Final = "and must start and end with an alphanumeric character"
_KEY_RULE: Final = f"must consist of alphanumeric characters, '-', '_' or '.', {_ENDS}"
_REQUESTS_PREFIX: Final = "requests."


def _rule(text: str, regex: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{regex}')"


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"


def label_key_problems(key: str) -> list[str]:
    """What is wrong with *key* as the key of a label (or as a resource name): empty if nothing is."""
    problems = []
    prefix, slash, name = key.rpartition("/")
    key_rule = _rule(_KEY_RULE, _KEY_FORMAT, "MyName", "my.name", "123-abc")
    if "/" in prefix:
        return [
            f"a valid label key {key_rule} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if slash:
        problems += [f"prefix part {problem}" for problem in (_subdomain_problems(prefix) if prefix else [_EMPTY])]
    if not name:
        problems.append(f"name part {_EMPTY}")
    elif len(name.encode()) > _LONGEST:
        problems.append(f"name part {_too_long(_LONGEST)}")
    if not _KEY.fullmatch(name):
        problems.append(f"name part {key_rule}")
    return problems


_EMPTY: Final = "must be non-empty"


def _subdomain_problems(name: str) -> list[str]:
    problems = [_too_long(_LONGEST_SUBDOMAIN)] if len(name.encode()) > _LONGEST_SUBDOMAIN else []
    if not _SUBDOMAIN.fullmatch(name):
        what = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.'"
        problems.append(_rule(f"{what}, {_ENDS}", _SUBDOMAIN_FORMAT, "example.com"))
    return problems


def label_value_problems(value: str) -> list[str]:
    """What is wrong with *value* as the value of a label: empty if nothing is."""
    problems = [_too_long(_LONGEST)] if len(value.encode()) > _LONGEST else []
    if not _VALUE.fullmatch(value):
        what = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_rule(f"{what}, {_ENDS}", _VALUE_FORMAT, "MyValue", "my_value", "12345"))
    return problems


def is_extended_resource(name: str) -> bool:
    """Whether *name*, a valid one, is outside the ``kubernetes.io`` domain and can stand in a quota."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_REQUESTS_PREFIX):
        return False
    return not label_key_problems(_REQUESTS_PREFIX + name)
