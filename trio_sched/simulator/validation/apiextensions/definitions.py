"""Rules of CustomResourceDefinitions, as far as serving their resources depends on them."""

from __future__ import annotations

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.apiextensions.definition_names import (
    column_problems,
    conversion_problems,
    group_problems,
    resource_name_problems,
    selectable_field_problems,
)
from trio_sched.simulator.validation.apiextensions.definition_schemas import schema_problems
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required, unsupported
from trio_sched.simulator.validation.meta.names import old_dns_label


def definition_problems(fields: Json) -> list[FieldProblem]:
    """What is wrong with a new definition."""
    spec = fields.get("spec") or {}
    names = spec.get("names") or {}
    problems = [required(f"spec.{name}") for name in ("group", "scope") if not spec.get(name)]
    problems += [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
    if spec.get("scope") not in (None, "", "Cluster", "Namespaced"):
        problems.append(unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    problems += resource_name_problems(names, "spec.names")
    if spec.get("group"):
        problems += group_problems(spec["group"], "spec.group")
    if spec.get("preserveUnknownFields"):
        detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in the schema instead"
        problems.append(bad_value("spec.preserveUnknownFields", True, detail))
    if (conversion := spec.get("conversion")) is not None:
        problems += conversion_problems(conversion, "spec.conversion")
    wanted, name = f"{names.get('plural')}.{spec.get('group')}", fields["metadata"].get("name")
    if not problems and name != wanted:
        problems.append(bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group'))
    versions = spec.get("versions") or []
    if not versions:
        problems.append(required("spec.versions"))
    seen = [version.get("name") or "" for version in versions]
    if len({*seen}) < len(seen):
        problems.append(bad_value("spec.versions", seen, "must contain unique version names"))
    for index, version in enumerate(versions):
        if problem := old_dns_label(seen[index]):
            problems.append(bad_value(f"spec.versions[{index}].name", seen[index], problem))
        path = f"spec.versions[{index}].schema.openAPIV3Schema"
        given = (version.get("schema") or {}).get("openAPIV3Schema")
        if given is None:
            problems.append(required(path, "schemas are required"))
        else:
            problems += schema_problems(given, path, is_root=True)
        problems += _shown_problems(version, f"spec.versions[{index}]")
    if versions and sum(bool(version.get("storage")) for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        problems.append(bad_value("spec.versions", [version.get("name") for version in versions], detail))
    return problems


def _shown_problems(version: Json, path: str) -> list[FieldProblem]:
    """What is wrong with the paths of one version."""
    problems: list[FieldProblem] = []
    scale = (version.get("subresources") or {}).get("scale")
    if scale is not None:
        problems += _scale_problems(scale, f"{path}.subresources.scale")
    for number, column in enumerate(version.get("additionalPrinterColumns") or ()):
        problems += column_problems(column, f"{path}.additionalPrinterColumns[{number}]")
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    problems += selectable_field_problems(version.get("selectableFields") or [], schema, f"{path}.selectableFields")
    if version.get("deprecationWarning") is not None and not version.get("deprecated"):
        detail = "can only be set for deprecated versions"
        problems.append(bad_value(f"{path}.deprecationWarning", version["deprecationWarning"], detail))
    return problems


def _scale_problems(scale: Json, path: str) -> list[FieldProblem]:
    problems = []
    for field, root in (("specReplicasPath", "spec"), ("statusReplicasPath", "status")):
        given = scale.get(field)
        if not given:
            problems.append(required(f"{path}.{field}"))
        elif not given.startswith(f".{root}."):
            problems.append(bad_value(f"{path}.{field}", given, f"should be a json path under .{root}"))
    selector = scale.get("labelSelectorPath")
    if selector and not selector.startswith((".spec.", ".status.")):
        detail = "should be a json path under either .spec or .status"
        problems.append(bad_value(f"{path}.labelSelectorPath", selector, detail))
    return problems
