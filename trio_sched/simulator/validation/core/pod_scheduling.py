"""Rules of the fields of pods that scheduling depends on: affinity, spreading, gates, claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.selectors import (
    key_problems,
    label_selector_problems,
    node_selector_problems,
    node_selector_term_problems,
)

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_problems(affinity: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the affinity of a pod."""
    if (node := affinity.get("nodeAffinity")) is not None:
        yield from _node_affinity_problems(node, f"{path}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        if (of_pods := affinity.get(name)) is not None:
            yield from _pod_affinity_problems(of_pods, f"{path}.{name}")


def _node_affinity_problems(affinity: Json, path: str) -> Iterator[FieldProblem]:
    if (needed := affinity.get(_REQUIRED)) is not None:
        yield from node_selector_problems(needed, f"{path}.{_REQUIRED}")
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_problems(term, where)
        yield from node_selector_term_problems(term.get("preference") or {}, f"{where}.preference", values=False)


def _weight_problems(term: Json, path: str) -> Iterator[FieldProblem]:
    weight = term.get("weight") or 0
    if not 0 < weight <= 100:
        yield bad_value(f"{path}.weight", weight, "must be in the range 1-100")


def _pod_affinity_problems(affinity: Json, path: str) -> Iterator[FieldProblem]:
    for index, term in enumerate(affinity.get(_REQUIRED) or ()):
        yield from _pod_affinity_term_problems(term, f"{path}.{_REQUIRED}[{index}]")
    for index, weighted in enumerate(affinity.get(_PREFERRED) or ()):
        where = f"{path}.{_PREFERRED}[{index}]"
        yield from _weight_problems(weighted, where)
        yield from _pod_affinity_term_problems(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm")


def _pod_affinity_term_problems(term: Json, path: str) -> Iterator[FieldProblem]:
    selector = term.get("labelSelector")
    yield from label_selector_problems(selector, f"{path}.labelSelector")
    yield from label_selector_problems(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces") or ():
        if problem := names.dns_label(namespace):
            yield bad_value(f"{path}.namespace", namespace, problem)
    matching, mismatching = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    yield from _label_key_list_problems(matching, f"{path}.matchLabelKeys", selector)
    yield from _label_key_list_problems(mismatching, f"{path}.mismatchLabelKeys", selector)
    # The server itself writes keys of matchLabelKeys into the selector, once; a key that is there twice is the user's.
    known = set((selector or {}).get("matchLabels") or ())
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key")
        if key in matching and key in known:
            yield bad_value(f"{path}[{matching.index(key)}]", key, "exists in both matchLabelKeys and labelSelector")
        known.add(key)
    for index, key in enumerate(matching):
        if key in mismatching:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield bad_value(f"{path}.matchLabelKeys[{index}]", key, detail)
    topology_key = term.get("topologyKey") or ""
    if not topology_key:
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from key_problems(topology_key, f"{path}.topologyKey")


def _label_key_list_problems(keys: list[str], path: str, selector: Json | None) -> Iterator[FieldProblem]:
    if keys and selector is None:
        yield forbidden_field(path, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        yield from key_problems(key, f"{path}[{index}]")


def spread_problems(constraints: list[Json], path: str, *, selectors: bool = True) -> Iterator[FieldProblem]:
    """What is wrong with constraints of topology spreading."""
    for index, constraint in enumerate(constraints):
        where = f"{path}[{index}]"
        action = constraint.get("whenUnsatisfiable") or ""
        skew, domains, key = constraint.get("maxSkew") or 0, constraint.get("minDomains"), constraint.get("topologyKey")
        if skew <= 0:
            yield bad_value(f"{where}.maxSkew", skew, "must be greater than zero")
        if not key:
            yield required(f"{where}.topologyKey", "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            yield unsupported(f"{where}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway"))
        for later in constraints[index + 1 :]:
            if (later.get("topologyKey"), later.get("whenUnsatisfiable") or "") == (key, action):
                yield duplicate(f"{where}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}")
                break
        if domains is not None and domains <= 0:
            yield bad_value(f"{where}.minDomains", domains, "must be greater than zero")
        if domains is not None and action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield bad_value(f"{where}.minDomains", domains, detail)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name) not in (None, "Honor", "Ignore"):
                yield unsupported(f"{where}.{name}", constraint[name], ("Honor", "Ignore"))
        yield from _spread_key_problems(constraint, where)
        if selectors:
            yield from label_selector_problems(constraint.get("labelSelector"), f"{where}.labelSelector")


def _spread_key_problems(constraint: Json, path: str) -> Iterator[FieldProblem]:
    keys, selector = constraint.get("matchLabelKeys") or [], constraint.get("labelSelector")
    yield from _label_key_list_problems(keys, f"{path}.matchLabelKeys", selector)
    known = set((selector or {}).get("matchLabels") or ())
    for requirement in (selector or {}).get("matchExpressions") or ():
        key = requirement.get("key")
        if key in keys and key in known:
            yield bad_value(f"{path}[{keys.index(key)}]", key, "exists in both matchLabelKeys and labelSelector")
        known.add(key)


def gate_problems(gates: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name, where = gate.get("name") or "", f"{path}[{index}]"
        if problem := names.qualified_name(name):
            yield bad_value(where, name, problem)
        if name in seen:
            yield duplicate(where, name)
        seen.add(name)


def claim_problems(claims: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the resource claims of a pod."""
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        name, where = claim.get("name") or "", f"{path}[{index}]"
        if not name:
            yield required(f"{where}.name")
        elif name in seen:
            yield duplicate(f"{where}.name", name)
        elif problem := names.dns_label(name):
            yield bad_value(f"{where}.name", name, problem)
        seen.add(name)
        sources = [one for one in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(one) is not None]
        if len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
            yield bad_value(where, claim, detail)
        if not sources:
            yield bad_value(where, claim, "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for source in sources:
            if problem := names.subdomain(claim[source]):
                yield bad_value(f"{where}.{source}", claim[source], problem)
