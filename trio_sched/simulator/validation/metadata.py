"""Rules for names, labels and annotations, with the error texts of Kubernetes."""

import re
from typing import Any

from trio_sched.simulator.status_errors import FieldProblem, bad_value, required

Json = dict[str, Any]

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PATH_SEGMENT_TABOO = re.compile(r"[/%]")
_QUALIFIED_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_DNS_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_QUALIFIED_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)

_LABEL_NAMED = frozenset({"namespaces", "services"})
_PATH_NAMED = frozenset({"clusterroles", "clusterrolebindings", "roles", "rolebindings"})


def name_problem(plural: str, name: str) -> str | None:
    """What is wrong with *name* for a resource; ``None`` if nothing is."""
    if plural in _PATH_NAMED:
        return "may not contain '/' or '%'" if _PATH_SEGMENT_TABOO.search(name) or name in (".", "..") else None
    if plural in _LABEL_NAMED:
        if len(name) > 63:
            return "must be no more than 63 bytes"
        return None if _DNS_LABEL.fullmatch(name) else _DNS_LABEL_RULE
    if len(name) > 253:
        return "must be no more than 253 bytes"
    return None if _SUBDOMAIN.fullmatch(name) else _SUBDOMAIN_RULE


def dns_label_problem(name: str) -> str | None:
    """What is wrong with *name* where a single DNS label is required, as for containers."""
    if len(name) > 63:
        return "must be no more than 63 bytes"
    return None if _DNS_LABEL.fullmatch(name) else _DNS_LABEL_RULE


def label_problems(labels: Json, field: str) -> list[FieldProblem]:
    """What is wrong with a map of labels."""
    problems = []
    for key, value in labels.items():
        problem = _label_key_problem(key)
        if problem:
            problems.append(bad_value(field, key, problem))
        if not isinstance(value, str) or len(value) > 63:
            problems.append(bad_value(field, value, "must be no more than 63 bytes"))
        elif not _LABEL_VALUE.fullmatch(value):
            problems.append(bad_value(field, value, _LABEL_VALUE_RULE))
    return problems


def _label_key_problem(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if slash and not _SUBDOMAIN.fullmatch(prefix):
        return f"prefix part {_SUBDOMAIN_RULE}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return None if _QUALIFIED_NAME.fullmatch(name) else _QUALIFIED_NAME_RULE


def metadata_problems(plural: str, metadata: Json) -> list[FieldProblem]:
    """What is wrong with an object's metadata, its name included."""
    problems = []
    name = metadata.get("name") or ""
    if not name:
        problems.append(required("metadata.name", "name or generateName is required"))
    else:
        problem = name_problem(plural, name)
        if problem:
            problems.append(bad_value("metadata.name", name, problem))
    labels = metadata.get("labels")
    if labels:
        problems.extend(label_problems(labels, "metadata.labels"))
    for key in metadata.get("annotations") or ():
        problem = _label_key_problem(key.lower())
        if problem:
            problems.append(bad_value("metadata.annotations", key, problem))
    for index, owner in enumerate(metadata.get("ownerReferences") or ()):
        for wanted in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(wanted):
                problems.append(bad_value(f"metadata.ownerReferences[{index}].{wanted}", "", "must not be empty"))
    return problems
