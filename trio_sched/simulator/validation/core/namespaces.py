"""Rules of Namespaces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value
from trio_sched.simulator.validation.meta.metadata import finalizer_problems

LABEL_PREFIX: Final = "pod-security.kubernetes.io/"
LEVELS: Final = ("privileged", "baseline", "restricted")
"""The levels of the Pod Security Standards, from the one that takes all pods to the strictest."""
VERSION: Final = re.compile(r"v1\.(0|[1-9][0-9]{0,8})")
_MODES: Final = ("enforce", "audit", "warn")


def sent_namespace_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a Namespace that is to be created; its spec is the API server's afterwards."""
    yield from finalizer_problems((fields.get("spec") or {}).get("finalizers") or (), "spec.finalizers")
    yield from _label_problems(fields)


def namespace_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the change of a Namespace: labels that were wrong before may stay."""
    found = list(_label_problems(new))
    if found != list(_label_problems(old)):
        yield from found


def _label_problems(fields: Json) -> Iterator[FieldProblem]:
    """Which labels name no level of the Pod Security Standards, or no version of them."""
    labels = fields["metadata"].get("labels") or {}
    for mode in _MODES:
        key, version_key = f"{LABEL_PREFIX}{mode}", f"{LABEL_PREFIX}{mode}-version"
        if labels.get(key, "privileged") not in LEVELS:
            yield bad_value(f"metadata.labels[{key}]", labels[key], f"must be one of {', '.join(LEVELS)}")
        version = labels.get(version_key, "latest")
        if version != "latest" and VERSION.fullmatch(version) is None:
            yield bad_value(f"metadata.labels[{version_key}]", version, 'must be "latest" or "v1.x"')


def namespace_status_problems(_old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with the status of a namespace."""
    phase = (new.get("status") or {}).get("phase") or "Active"
    is_deleted = new["metadata"].get("deletionTimestamp") is not None
    if is_deleted and phase != "Terminating":
        yield bad_value("status.Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")
    elif not is_deleted and phase != "Active":
        yield bad_value("status.Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty")
