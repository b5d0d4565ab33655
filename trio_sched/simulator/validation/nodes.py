"""Rules of nodes."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.simulator.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
)
from trio_sched.simulator.validation import names
from trio_sched.simulator.validation.annotations import node_annotation_problems
from trio_sched.simulator.validation.resources import quantity_problems
from trio_sched.simulator.validation.shapes import Json
from trio_sched.simulator.validation.taints import taint_problems


def node_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new node."""
    spec, status = fields.get("spec") or {}, fields.get("status") or {}
    yield from node_annotation_problems(fields["metadata"].get("annotations") or {})
    yield from taint_problems(spec.get("taints") or [], "metadata.taints")
    yield from _resource_problems(status)
    networks = spec.get("podCIDRs") or []
    if spec.get("podCIDR"):
        networks = [spec["podCIDR"], *networks[1:]]  # the field from before there were two families
    for index, network in enumerate(networks):
        if problem := names.cidr(network):
            yield bad_value(f"spec.podCIDRs[{index}]", network, problem)
    families = {":" in network for network in networks}
    if len(networks) > 1 and (len(networks) > 2 or len(families) < 2):
        yield bad_value("spec.podCIDRs", networks, "may specify no more than one CIDR for each IP family")


def _resource_problems(status: Json) -> Iterator[FieldProblem]:
    for kind in ("capacity", "allocatable"):
        for name, quantity in (status.get(kind) or {}).items():
            yield from quantity_problems(name, quantity, f"status.{kind}.{name}")


def node_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a node."""
    before, after = old.get("spec") or {}, dict(new.get("spec") or {})
    # One stands for the other where one is left out, and podCIDR is the one that counts.
    if after.get("podCIDRs") and not after.get("podCIDR"):
        after["podCIDR"] = after["podCIDRs"][0]
    elif after.get("podCIDR") and after["podCIDR"] not in (after.get("podCIDRs") or ())[:1]:
        after["podCIDRs"] = [after["podCIDR"]]
    for field in ("podCIDR", "podCIDRs", "providerID"):
        if before.get(field) and before.get(field) != after.get(field):
            detail = 'node updates may not change podCIDR except from "" to valid'
            if field == "providerID":
                detail = 'node updates may not change providerID except from "" to valid'
            yield forbidden_field(f"spec.{field}", detail)


def node_status_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of the status of a node."""
    yield from _resource_problems(new.get("status") or {})
