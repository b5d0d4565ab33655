"""Rules of ConfigMaps, Secrets and service accounts."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping
from typing import Final

from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    too_long,
)
from trio_sched.simulator.validation.meta.metadata import immutable
from trio_sched.simulator.validation.meta.shapes import Json

_MAX_BYTES: Final = 1 << 20
_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def config_map_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new ConfigMap."""
    texts, binaries = fields.get("data") or {}, fields.get("binaryData") or {}
    size = 0
    for kind, values in (("data", texts), ("binaryData", binaries)):
        for key, value in values.items():
            if problem := names.config_key(key):
                yield bad_value(f"{kind}[{key}]", key, problem)
            size += len(value.encode()) if kind == "data" else len(value) * 3 // 4
    for key in texts.keys() & binaries.keys():
        yield bad_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    if size > _MAX_BYTES:
        yield too_long("", _MAX_BYTES)


def secret_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Secret, whose ``stringData`` counts as data."""
    data = {key: b64decode(value) for key, value in (fields.get("data") or {}).items()}
    data |= {key: value.encode() for key, value in (fields.get("stringData") or {}).items()}
    for key in data:
        if problem := names.config_key(key):
            yield bad_value(f"data[{key}]", key, problem)
    if sum(map(len, data.values())) > _MAX_BYTES:
        yield too_long("data", _MAX_BYTES)
    kind = fields.get("type") or "Opaque"
    for key in _NEEDED.get(kind, ()):
        if key not in data or (kind == "kubernetes.io/ssh-auth" and not data[key]):
            yield required(f"data[{key}]")
        elif "docker" in kind and not _is_object(data[key]):
            yield bad_value(f"data[{key}]", "<secret contents redacted>", "it is no object in JSON")
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")
    account, annotations = "kubernetes.io/service-account.name", fields["metadata"].get("annotations") or {}
    if kind == "kubernetes.io/service-account-token" and not annotations.get(account):
        yield required(f"metadata.annotations[{account}]")


def _is_object(content: bytes) -> bool:
    try:
        return isinstance(json.loads(content), dict)
    except ValueError:
        return False


def secret_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a Secret."""
    yield from immutable(old, new, "type", path="")
    yield from frozen_changes(old, new)


def frozen_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a ConfigMap or Secret."""
    detail = "field is immutable when `immutable` is set"
    if old.get("immutable"):
        if not new.get("immutable"):
            yield forbidden_field("immutable", detail)
        for field in ("data", "binaryData"):
            if (old.get(field) or {}) != (new.get(field) or {}):
                yield forbidden_field(field, detail)
