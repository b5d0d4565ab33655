"""Rules of the names that CustomResourceDefinitions give their resources, of columns and conversions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.names import old_dns_label, subdomain

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MIXED: Final = "may have mixed case, but should otherwise match: "


def group_problems(group: str, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the group of custom resources."""
    if problem := subdomain(group):
        yield bad_value(path, group, problem)
    elif "." not in group:
        yield bad_value(path, group, "should be a domain with at least one dot")


def resource_name_problems(names: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the names of custom resources."""
    for field in ("plural", "singular", "kind", "listKind"):
        name = names.get(field) or ""
        is_mixed = field in ("kind", "listKind")
        if name and (problem := old_dns_label(name.lower() if is_mixed else name)):
            yield bad_value(f"{path}.{field}", name, f"{_MIXED if is_mixed else ''}{problem}")
    for field in ("shortNames", "categories"):
        for index, name in enumerate(names.get(field) or ()):
            if problem := old_dns_label(name):
                yield bad_value(f"{path}.{field}[{index}]", name, problem)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield bad_value(f"{path}.listKind", names["kind"], "kind and listKind may not be the same")


def column_problems(column: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with a column of tables."""
    kind, form, source = (column.get(field) or "" for field in ("type", "format", "jsonPath"))
    if not column.get("name"):
        yield required(f"{path}.name")
    if not kind:
        yield required(f"{path}.type", f"must be one of {','.join(_COLUMN_TYPES)}")
    elif kind not in _COLUMN_TYPES:
        yield bad_value(f"{path}.type", kind, f"must be one of {','.join(_COLUMN_TYPES)}")
    if form and form not in _COLUMN_FORMATS:
        yield bad_value(f"{path}.format", form, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not source:
        yield required(f"{path}.jsonPath")
    elif not source.startswith("."):
        yield bad_value(f"{path}.jsonPath", source, "must be a simple json path starting with .")


def selectable_field_problems(fields: list[Json], schema: Any, path: str) -> Iterator[FieldProblem]:
    """What is wrong with the fields of objects with *schema* that selectors may name."""
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where, source = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not source:
            yield required(where)
        elif not source.startswith("."):
            yield bad_value(where, source, f"is an invalid path: expected [ or . but got: {source}")
        elif source.startswith(".metadata"):
            yield bad_value(where, source, "must not point to fields in metadata")
        elif not _is_field(source, schema):
            yield bad_value(where, source, "is an invalid path: does not refer to a valid field")
        elif source in seen:
            yield duplicate(where, source)
        seen.add(source)


def _is_field(path: str, schema: Any) -> bool:
    for step in path[1:].split("."):
        properties = schema.get("properties") if isinstance(schema, dict) else None
        schema = properties.get(step) if isinstance(properties, dict) else None
    return isinstance(schema, dict)


def conversion_problems(conversion: Json, path: str) -> Iterator[FieldProblem]:
    """What is wrong with how versions are converted."""
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield unsupported(f"{path}.strategy", strategy, ("None", "Webhook"))
    if strategy != "Webhook":
        for field in ("clientConfig", "conversionReviewVersions"):
            if (webhook or {}).get(field) not in (None, []):
                detail = "should not be set when strategy is not set to Webhook"
                yield forbidden_field(f"{path}.webhook.{field}", detail)
        return
    client, versions = (webhook or {}).get("clientConfig"), (webhook or {}).get("conversionReviewVersions") or []
    if client is None:
        yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    if not {*versions} & {"v1", "v1beta1"}:
        yield bad_value(f"{path}.conversionReviewVersions", versions, "must include at least one of v1, v1beta1")
