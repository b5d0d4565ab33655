"""Rules of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.annotations import node_annotation_problems
from trio_sched.simulator.validation.core.resources import quantity_problems
from trio_sched.simulator.validation.core.taints import taint_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    duplicate,
    forbidden_field,
)

_LONGEST_FEATURE: Final = 253
_FEATURE: Final = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*")
_FEATURE_RULE: Final = (
    "must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or "
    "MyFeature/mySubFeature), and contain only alphanumeric characters and slashes"
)


def node_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new node."""
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    yield from node_annotation_problems(fields["metadata"].get("annotations") or {})
    yield from taint_problems(spec.get("taints") or [], "metadata.taints")
    yield from _status_problems(status)
    networks = _networks(spec)
    for index, network in enumerate(networks):
        if problem := names.cidr(network):
            yield bad_value(f"spec.podCIDRs[{index}]", network, problem)
    families = {":" in network for network in networks}
    if len(networks) > 1 and (len(networks) > 2 or len(families) < 2):
        yield bad_value("spec.podCIDRs", networks, "may specify no more than one CIDR for each IP family")


def _networks(spec: Json) -> list[str]:
    """The networks of the pods of a node; where ``podCIDR``, the older field, says otherwise, it counts."""
    networks: list[str] = spec.get("podCIDRs") or []
    first = spec.get("podCIDR")
    return networks if not first or first in networks[:1] else [first]


def _status_problems(status: Json) -> Iterator[FieldProblem]:
    for kind in ("capacity", "allocatable"):
        for name, quantity in (status.get(kind) or {}).items():
            yield from quantity_problems(name, quantity, f"status.{kind}.{name}")
    features = status.get("declaredFeatures") or []
    for index, feature in enumerate(features):
        where, previous = f"status.declaredFeatures[{index}]", features[index - 1] if index else ""
        if len(feature.encode()) > _LONGEST_FEATURE:
            detail = f"must be no more than {_LONGEST_FEATURE} characters"
            yield bad_value(where, feature, f'invalid feature name "{feature}": {detail}')
        elif not _FEATURE.fullmatch(feature):
            yield bad_value(where, feature, f'invalid feature name "{feature}": {_FEATURE_RULE}')
        if index and feature == previous:
            yield duplicate(where, feature)
        elif feature < previous:
            yield bad_value(where, feature, "list must be sorted alphabetically")


def node_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a node."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if _networks(before) not in ([], _networks(after)):
        yield forbidden_field("spec.podCIDRs", 'node updates may not change podCIDR except from "" to valid')
    if before.get("providerID") and before["providerID"] != after.get("providerID"):
        yield forbidden_field("spec.providerID", 'node updates may not change providerID except from "" to valid')
    if before.get("externalID") != after.get("externalID"):
        yield forbidden_field("spec.externalID", "may not be updated")


def node_status_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of the status of a node."""
    yield from _status_problems(new.get("status") or {})
