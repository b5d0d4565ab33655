"""Rules of roles and of their bindings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required, unsupported
from trio_sched.simulator.validation.meta.metadata import same
from trio_sched.simulator.validation.meta.selectors import label_selector_problems
from trio_sched.simulator.validation.meta.shapes import Json

GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")


def role_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a Role."""
    for index, rule in enumerate(fields.get("rules") or ()):
        yield from _rule_problems(rule, f"rules[{index}]", is_namespaced=True)


def cluster_role_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a ClusterRole."""
    for index, rule in enumerate(fields.get("rules") or ()):
        yield from _rule_problems(rule, f"rules[{index}]", is_namespaced=False)
    if (aggregation := fields.get("aggregationRule")) is not None:
        path, selectors = "aggregationRule.clusterRoleSelectors", aggregation.get("clusterRoleSelectors") or []
        if not selectors:
            yield required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil")
        for index, selector in enumerate(selectors):
            yield from label_selector_problems(selector, f"{path}[{index}]")


def _rule_problems(rule: Json, path: str, *, is_namespaced: bool) -> Iterator[FieldProblem]:
    if not rule.get("verbs"):
        yield required(f"{path}.verbs", "verbs must contain at least one value")
    if urls := rule.get("nonResourceURLs"):
        if is_namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            yield bad_value(f"{path}.nonResourceURLs", urls, detail)
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            yield bad_value(f"{path}.nonResourceURLs", urls, detail)
        return
    if not rule.get("apiGroups"):
        yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
    if not rule.get("resources"):
        yield required(f"{path}.resources", "resource rules must supply at least one resource")


def binding_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a RoleBinding."""
    yield from _binding_problems(fields, ("Role", "ClusterRole"))


def cluster_binding_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a ClusterRoleBinding."""
    yield from _binding_problems(fields, ("ClusterRole",))


def binding_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a binding."""
    if not same(old.get("roleRef"), new.get("roleRef")):
        yield bad_value("roleRef", new.get("roleRef"), "cannot change roleRef")


def _binding_problems(fields: Json, kinds: tuple[str, ...]) -> Iterator[FieldProblem]:
    role = fields.get("roleRef") or {}
    name = role.get("name") or ""
    if role.get("apiGroup") != GROUP:
        yield unsupported("roleRef.apiGroup", role.get("apiGroup") or "", (GROUP,))
    if role.get("kind") not in kinds:
        yield unsupported("roleRef.kind", role.get("kind") or "", kinds)
    if not name:
        yield required("roleRef.name")
    elif problem := names.path_segment(name):
        yield bad_value("roleRef.name", name, problem)
    for index, subject in enumerate(fields.get("subjects") or ()):
        yield from _subject_problems(subject, f"subjects[{index}]", is_namespaced="Role" in kinds)


def _subject_problems(subject: Json, path: str, *, is_namespaced: bool) -> Iterator[FieldProblem]:
    kind, name, group = (subject.get(field) or "" for field in ("kind", "name", "apiGroup"))
    if not name:
        yield required(f"{path}.name")
    if kind not in _SUBJECTS:
        yield unsupported(f"{path}.kind", kind, _SUBJECTS)
        return
    wanted = "" if kind == "ServiceAccount" else GROUP
    if group != wanted:
        yield unsupported(f"{path}.apiGroup", group, (wanted,))
    if kind == "ServiceAccount":
        if name and (problem := names.subdomain(name)):
            yield bad_value(f"{path}.name", name, problem)
        if not is_namespaced and not subject.get("namespace"):
            yield required(f"{path}.namespace")
