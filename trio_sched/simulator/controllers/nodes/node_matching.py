"""Whether a pod may run on a node, as far as controllers ask: node affinity, node selector, taints."""

from collections.abc import Callable, Iterable, Mapping

from trio_sched.documents.json_values import Json
from trio_sched.simulator.label_matching import holds


def tolerates(tolerations: Iterable[Json], taint: Json) -> Json | None:
    """The first toleration that *taint* is tolerated with."""
    for toleration in tolerations:
        if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
            continue
        if toleration.get("key") and toleration["key"] != taint.get("key"):
            continue
        operator = toleration.get("operator") or "Equal"
        equal = (toleration.get("value") or "") == (taint.get("value") or "")
        if operator == "Exists" or (operator == "Equal" and equal):
            return toleration
    return None


def untolerated(spec: Json, node: Json, *effects: str) -> bool:
    """Whether *node* has a taint of these effects that the pod *spec* does not tolerate."""
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerations = spec.get("tolerations") or ()
    return any(taint.get("effect") in effects and tolerates(tolerations, taint) is None for taint in taints)


def is_selected(spec: Json, node: Json) -> bool:
    """Whether the node selector and the required node affinity of the pod *spec* match *node*."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    fields = {"metadata.name": node["metadata"]["name"]}
    return any(_term_matches(term, labels, fields) for term in required.get("nodeSelectorTerms") or ())


def _term_matches(term: Json, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
    by_labels, by_fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not by_labels and not by_fields:
        return False
    return all(_matches(rule, labels) for rule in by_labels) and all(_matches(rule, fields) for rule in by_fields)


def _matches(rule: Json, values: Mapping[str, str]) -> bool:
    if (plain := holds(rule, values)) is not None:
        return plain
    found, wanted = values.get(rule.get("key") or ""), rule.get("values") or ()
    match rule.get("operator"):
        case "Gt":
            return _compares(found, wanted, lambda one, other: one > other)
        case "Lt":
            return _compares(found, wanted, lambda one, other: one < other)
    return False


def _compares(found: str | None, wanted: Iterable[str], compare: Callable[[int, int], bool]) -> bool:
    try:
        (limit,) = wanted
        return found is not None and compare(int(found), int(limit))
    except ValueError:
        return False
