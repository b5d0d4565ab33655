"""Label and field selectors, compiled to predicates over an object's fields."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.errors import TrioSchedError

Predicate = Callable[[Json], bool]

_LABEL_TERM = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<absent_key>[^\s,()=!]+)
      | (?P<set_key>[^\s,()=!]+)\s+(?P<set_op>in|notin)\s*\((?P<values>[^()]*)\)
      | (?P<key>[^\s,()=!<>]+)\s*(?P<op>==|=|!=|>|<)\s*(?P<value>[^\s,()]*)
      | (?P<present_key>[^\s,()=!]+)
    )\s*(?:,|$)""",
    re.VERBOSE,
)


class SelectorError(TrioSchedError):
    """A malformed selector, or one for a field that is not selectable."""


@lru_cache(maxsize=4096)
def label_selector(text: str) -> Predicate | None:
    """Compile the ``labelSelector`` of a request; ``None`` selects everything.

    Raises:
        SelectorError: *text* does not follow the grammar.
    """
    terms: list[Callable[[Json], bool]] = []
    position = 0
    while position < len(text):
        match = _LABEL_TERM.match(text, position)
        if match is None or match.end() == position:
            raise SelectorError(f"unable to parse requirement: found '{text[position:]}', expected: a label selector")
        terms.append(_label_term(match))
        position = match.end()
    return _over_labels(terms) if terms else None


def _label_term(match: re.Match[str]) -> Callable[[Json], bool]:
    part = match.groupdict()
    if part["absent"]:
        key = part["absent_key"]
        return lambda labels: key not in labels
    if part["set_op"]:
        key = part["set_key"]
        values = frozenset(value.strip() for value in part["values"].split(","))
        if part["set_op"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if part["op"]:
        key, wanted = part["key"], part["value"]
        if part["op"] == "!=":
            return lambda labels: labels.get(key) != wanted
        if part["op"] in "<>":
            return _numeric_term(key, part["op"], wanted)
        return lambda labels: labels.get(key) == wanted
    key = part["present_key"]
    return lambda labels: key in labels


def _numeric_term(key: str, operator: str, wanted: str) -> Callable[[Json], bool]:
    try:
        limit = int(wanted)
    except ValueError:
        raise SelectorError(f"for 'Gt', 'Lt' operators, the value must be an integer, not {wanted!r}") from None

    def compare(labels: Json) -> bool:
        try:
            number = int(labels[key])
        except (KeyError, ValueError):
            return False
        return number > limit if operator == ">" else number < limit

    return compare


def _over_labels(terms: list[Callable[[Json], bool]]) -> Predicate:
    def selects(fields: Json) -> bool:
        labels = fields["metadata"].get("labels") or {}
        return all(term(labels) for term in terms)

    return selects


def _path(*steps: str, default: str = "") -> Callable[[Json], str]:
    def read(fields: Json) -> str:
        value: Any = fields
        try:
            for step in steps:
                value = value[step]
        except (KeyError, TypeError):  # it is missing, or what it would be in is no mapping
            return default
        if type(value) is str:
            return value
        if value is None:
            return default
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    return read


def _event_source(fields: Json) -> str:
    return (fields.get("source") or {}).get("component") or fields.get("reportingComponent") or ""


_EVERYWHERE = {
    "metadata.name": _path("metadata", "name"),
    "metadata.namespace": _path("metadata", "namespace"),
}

_EVENT_OBJECT = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")

_BY_COLLECTION: dict[str, dict[str, Callable[[Json], str]]] = {
    "pods": {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.restartPolicy": _path("spec", "restartPolicy"),
        "spec.schedulerName": _path("spec", "schedulerName"),
        "spec.serviceAccountName": _path("spec", "serviceAccountName"),
        "spec.hostNetwork": _path("spec", "hostNetwork", default="false"),
        "status.phase": _path("status", "phase"),
        "status.podIP": _path("status", "podIP"),
        "status.nominatedNodeName": _path("status", "nominatedNodeName"),
    },
    "nodes": {"spec.unschedulable": _path("spec", "unschedulable", default="false")},
    "namespaces": {"status.phase": _path("status", "phase"), "name": _path("metadata", "name")},
    "secrets": {"type": _path("type")},
    "services": {"spec.clusterIP": _path("spec", "clusterIP"), "spec.type": _path("spec", "type")},
    "replicationcontrollers": {"status.replicas": _path("status", "replicas", default="0")},
    "replicasets.apps": {"status.replicas": _path("status", "replicas", default="0")},
    "jobs.batch": {"status.successful": _path("status", "succeeded", default="0")},
    "resourceslices.resource.k8s.io": {
        "spec.nodeName": _path("spec", "nodeName"),
        "spec.driver": _path("spec", "driver"),
    },
    "events": {
        **{f"involvedObject.{name}": _path("involvedObject", name) for name in _EVENT_OBJECT},
        **{f"regarding.{name}": _path("involvedObject", name) for name in _EVENT_OBJECT},
        "reason": _path("reason"),
        "type": _path("type"),
        "reportingComponent": _path("reportingComponent"),
        "reportingController": _path("reportingComponent"),
        "source": _event_source,
    },
}


@lru_cache(maxsize=4096)
def field_selector(text: str, collection: str) -> Predicate | None:
    """Compile the ``fieldSelector`` of a request; ``None`` selects everything.

    Raises:
        SelectorError: *text* does not follow the grammar, or names a field that is not selectable in this collection.
    """
    terms: list[tuple[Callable[[Json], str], set[str], bool]] = []
    refused: dict[Callable[[Json], str], set[str]] = {}
    known = _BY_COLLECTION.get(collection, {})
    for term in _split_terms(text):
        match = re.fullmatch(r"([^=!]+)(==|=|!=)(.*)", term, re.DOTALL)
        if match is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{term}'")
        name, operator, value = match.groups()
        read = known.get(name) or _EVERYWHERE.get(name)
        if read is None:
            raise SelectorError(f"field label not supported: {name}")
        if operator != "!=":
            terms.append((read, {value}, True))
        elif read in refused:
            refused[read].add(value)
        else:
            refused[read] = {value}
            terms.append((read, refused[read], False))
    if not terms:
        return None

    def selects(fields: Json) -> bool:
        for read, values, wanted in terms:  # noqa: SIM110 - a generator doubles the cost, for every change of a pod
            if (read(fields) in values) is not wanted:
                return False
        return True

    return selects


def _split_terms(text: str) -> Iterable[str]:
    """Split at commas that no backslash stands before."""
    terms: list[str] = [""]
    characters = iter(text)
    for character in characters:
        if character == "\\":
            terms[-1] += next(characters, "")
        elif character == ",":
            terms.append("")
        else:
            terms[-1] += character
    return [term for term in terms if term]


def both(first: Predicate | None, second: Predicate | None) -> Predicate | None:
    """What selects only what both select; ``None`` selects everything."""
    if first is None or second is None:
        return first or second
    one, other = first, second
    return lambda fields: one(fields) and other(fields)
