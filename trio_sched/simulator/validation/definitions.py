"""Rules of CustomResourceDefinitions, as far as serving their resources depends on them."""

from __future__ import annotations

from trio_sched.simulator.status_errors import FieldProblem, bad_value, required, unsupported
from trio_sched.simulator.validation.shapes import Json


def definition_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new definition."""
    spec = fields.get("spec") or {}
    names = spec.get("names") or {}
    problems = [required(f"spec.{name}") for name in ("group", "scope") if not spec.get(name)]
    problems += [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
    if spec.get("scope") not in (None, "", "Cluster", "Namespaced"):
        problems.append(unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    wanted, name = f"{names.get('plural')}.{spec.get('group')}", fields["metadata"].get("name")
    if not problems and name != wanted:
        problems.append(bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    versions = spec.get("versions") or []
    if not versions:
        problems.append(required("spec.versions"))
    problems += [
        required(f"spec.versions[{index}].name") for index, version in enumerate(versions) if not version.get("name")
    ]
    if versions and sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        problems.append(bad_value("spec.versions", [version.get("name") for version in versions], detail))
    return problems
