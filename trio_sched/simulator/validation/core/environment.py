"""Rules of the environment variables of containers, and of fields that are shown to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value, required, unsupported
from trio_sched.simulator.validation.meta.shapes import fields_of

_FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName"),
    *("status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs"),
)
_KNOWN_FIELDS: Final = frozenset(
    {*_FIELDS, "metadata.annotations", "metadata.labels", "spec.restartPolicy", "spec.schedulerName", "status.phase"}
    | {"spec.hostNetwork", "status.nominatedNodeName"}
)
"""What names a field of pods at all."""
_RESOURCES: Final = (
    *("limits.cpu", "limits.ephemeral-storage", "limits.memory"),
    *("requests.cpu", "requests.ephemeral-storage", "requests.memory"),
)
_DIVISORS: Final = frozenset(
    parse_nano(text) for text in ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)


def variable_problems(variables: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``env`` of a container."""
    for index, variable in enumerate(variables):
        where, name = f"{path}[{index}]", variable.get("name") or ""
        if not name:
            yield required(f"{where}.name")
        elif problem := names.environment_variable(name):
            yield bad_value(f"{where}.name", name, problem)
        if (source := variable.get("valueFrom")) is not None:
            yield from _source_problems(source, f"{where}.valueFrom", has_value=bool(variable.get("value")))


def _source_problems(source: Json, path: str, *, has_value: bool) -> Iterator[FieldProblem]:
    given = [name for name in fields_of("core.v1.EnvVarSource") if source.get(name) is not None]
    if (field := source.get("fieldRef")) is not None:
        yield from field_problems(field, f"{path}.fieldRef", _FIELDS)
    if (resource := source.get("resourceFieldRef")) is not None:
        yield from resource_field_problems(resource, f"{path}.resourceFieldRef", needs_container=False)
    for kind in ("configMapKeyRef", "secretKeyRef"):
        if (reference := source.get(kind)) is not None:
            yield from _key_problems(reference, f"{path}.{kind}")
    if (file := source.get("fileKeyRef")) is not None:
        yield from _file_problems(file, f"{path}.fileKeyRef")
    if not given:
        listed = "`fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        yield bad_value(path, "", f"must specify one of: {listed}")
    elif has_value:
        yield bad_value(path, "", "may not be specified when `value` is not empty")
    elif len(given) > 1:
        yield bad_value(path, "", "may not have more than one field specified at a time")


def field_problems(reference: Json, path: str, known: Collection[str]) -> Iterator[FieldProblem]:
    """What is wrong with a reference to a field of the pod, which must be one of *known*."""
    name = reference.get("fieldPath") or ""
    version = reference.get("apiVersion", "v1")
    if not name:
        yield required(f"{path}.fieldPath")
        return
    subscript = re.fullmatch(r"([^\[\]']*)\['(.*)'\]", name)
    base = subscript[1] if subscript else name
    if version != "v1":
        yield bad_value(f"{path}.fieldPath", name, f"error converting fieldPath: unsupported pod version: {version}")
    elif base not in _KNOWN_FIELDS:
        yield bad_value(f"{path}.fieldPath", name, f"error converting fieldPath: field label not supported: {name}")
    elif subscript:
        key = subscript[2].lower() if base == "metadata.annotations" else subscript[2]
        if base not in ("metadata.annotations", "metadata.labels"):
            yield bad_value(path, base, "does not support subscript")
        elif problem := names.qualified_name(key):
            yield bad_value(path, key, problem)
    elif name not in known:
        yield unsupported(f"{path}.fieldPath", name, sorted(known))


def resource_field_problems(reference: Json, path: str, *, needs_container: bool) -> Iterator[FieldProblem]:
    """What is wrong with a reference to a request or limit of a container."""
    name, divisor = reference.get("resource") or "", reference.get("divisor")
    if needs_container and not reference.get("containerName"):
        yield required(f"{path}.containerName")
    elif not name:
        yield required(f"{path}.resource")
    elif name not in _RESOURCES and not name.startswith(("requests.hugepages-", "limits.hugepages-")):
        yield unsupported(f"{path}.resource", name, _RESOURCES)
    amount = 0 if divisor is None else parse_nano(divisor)
    if not amount:
        return
    if name.endswith(".cpu"):
        if amount not in (parse_nano("1m"), parse_nano("1")):
            yield bad_value(
                f"{path}.divisor", name, "only divisor's values 1m and 1 are supported with the cpu resource"
            )
    elif (name in _RESOURCES or ".hugepages-" in name) and amount not in _DIVISORS:
        kind = name.partition(".")[2]
        listed = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei"
        yield bad_value(
            f"{path}.divisor", name, f"only divisor's values {listed} are supported with the {kind} resource"
        )


def _key_problems(reference: Json, path: str) -> Iterator[FieldProblem]:
    name, key = reference.get("name") or "", reference.get("key") or ""
    if problem := names.subdomain(name):
        yield bad_value(f"{path}.name", name, problem)
    if not key:
        yield required(f"{path}.key")
    elif problem := names.config_key(key):
        yield bad_value(f"{path}.key", key, problem)


def _file_problems(reference: Json, path: str) -> Iterator[FieldProblem]:
    key = reference.get("key") or ""
    if not key:
        yield required(f"{path}.key")
    elif problem := names.environment_variable(key):
        yield bad_value(f"{path}.key", key, problem)
    for field in ("volumeName", "path"):
        if not reference.get(field):
            yield required(f"{path}.{field}")


def source_list_problems(sources: list[Json], path: str) -> Iterator[FieldProblem]:
    """What is wrong with the ``envFrom`` of a container."""
    for index, source in enumerate(sources):
        where, prefix = f"{path}[{index}]", source.get("prefix") or ""
        if prefix and (problem := names.environment_variable(prefix)):
            yield bad_value(f"{where}.prefix", prefix, problem)
        given = [kind for kind in ("configMapRef", "secretRef") if source.get(kind) is not None]
        for kind in given:
            name = source[kind].get("name") or ""
            if not name:
                yield required(f"{where}.{kind}.name")
            elif problem := names.subdomain(name):
                yield bad_value(f"{where}.{kind}.name", name, problem)
        if not given:
            yield bad_value(path, "", "must specify one of: `configMapRef` or `secretRef`")
        elif len(given) > 1:
            yield bad_value(path, "", "may not have more than one field specified at a time")
