"""What NodeResourcesFit says of a pending pod: each resource that is short, by how much, and the largest that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np
from attrs import evolve

from plugins_builtin.resources.request_origin import request_origin
from trio_sched.plugin_api import (
    BoolArray,
    Change,
    Clause,
    Container,
    Int64Array,
    NodeColumns,
    Pod,
    Quantity,
    ResourceOptions,
    amount_text,
    edit_pod,
    nearest_name,
    replace_fields,
    smaller_request,
)

_REASONS: Final = {
    "cpu": "InsufficientCPU",
    "memory": "InsufficientMemory",
    "ephemeral-storage": "InsufficientEphemeralStorage",
}
_HUGE_MILLI: Final = 100_000
_TIMES_LARGER: Final = 3
"""Nobody asks for so much more than the largest node has, and for so many CPUs."""


def too_many_pods(nodes: NodeColumns) -> Clause:
    """Nodes that run as many pods as they may."""
    fails = nodes.pod_count >= nodes.allowed_pods

    def cause(otherwise: BoolArray) -> str:
        where = otherwise & fails if (otherwise & fails).any() else fails
        position = int(np.argmax(np.where(where, nodes.allowed_pods, -1)))
        count = int(np.count_nonzero(where))
        return (
            f"{count} node(s) run as many pods as they may ({nodes.allowed_pods[position]} on {nodes.name(position)})"
        )

    return Clause(reason="TooManyPods", title="room for one more pod", fails=fails, cause=cause)


def resource_clauses(
    pod: Pod, nodes: NodeColumns, resource: str, amount: int, fails: BoolArray, options: ResourceOptions
) -> Iterator[Clause]:
    """A request, and of a resource that only some nodes have that the others have none; see `_resource_clause`."""
    lacks = fails & (nodes.allocatable_of(resource) <= 0)
    if not lacks.any() or lacks.all():
        yield _resource_clause(pod, nodes, resource, amount, fails, options)
        return
    yield _resource_clause(pod, nodes, resource, amount, fails & ~lacks, options)
    yield Clause(
        reason="ResourceNotOffered",
        title=f"node with {resource}",
        fails=lacks,
        cause=f"{np.count_nonzero(lacks)} node(s) have no {resource}",
        is_given=True,
    )


def _resource_clause(
    pod: Pod, nodes: NodeColumns, resource: str, amount: int, fails: BoolArray, options: ResourceOptions
) -> Clause:
    """A request of *amount* (milli-CPU, bytes or a count) of *resource*.

    Args:
        pod: the pod.
        nodes: all nodes.
        resource: the name of the resource.
        amount: what the pod requests of it.
        fails: shape (nodes,): where that is not free.
        options: which parts of a pod count.
    """
    allocatable = nodes.allocatable_of(resource)
    free = allocatable - nodes.requested_of(resource)
    asked = amount_text(resource, amount, round_up=True)
    unit = " CPU" if resource == "cpu" else ""
    is_offered = bool((allocatable > 0).any())
    meant = None if is_offered else nearest_name(resource, _offered(nodes))
    meant_milli = _meant_milli(amount, allocatable) if resource == "cpu" else 0

    def _relevant(otherwise: BoolArray) -> BoolArray:
        """Those of the nodes where all else is met that offer the resource, else all that do, else all."""
        offers = allocatable > 0
        return next((one for one in (otherwise & offers, offers) if one.any()), np.ones(len(nodes), dtype=np.bool_))

    def cause(otherwise: BoolArray) -> str:
        if not is_offered:
            text = f"no node offers {resource}"
            if meant is None:
                return text
            return f"{text}; {np.count_nonzero(nodes.allocatable_of(meant) > 0)} offer {meant}"
        where = _relevant(otherwise)
        best = _best(free, where)
        most = amount_text(resource, max(int(free[best]), 0))
        text = f"it asks for {asked}{unit}{request_origin(pod, resource, options)}, "
        text += f"the most that is free is {most}{unit}"
        text += f" ({nodes.name(best)})"
        if "/" in resource:
            text += f"; {np.count_nonzero(allocatable > 0)} node(s) offer it"
        largest = _best(allocatable, where)
        if amount > allocatable[largest]:
            has = amount_text(resource, int(allocatable[largest]))
            text += f"; even the largest of these nodes has no more than {has}{unit} in all ({nodes.name(largest)})"
        if meant_milli:
            text += f"; did you mean {meant_milli}m?"
        return text

    def changes(where: BoolArray) -> Iterator[Change]:
        if meant is not None:
            yield _renamed(pod, resource, meant)
        if not where.any():
            return
        most = int(free[_best(free, where)])
        if 0 < meant_milli <= most:
            thousandth = smaller_request(pod, resource, meant_milli, options)
            if thousandth is not None:
                title = f"request cpu {meant_milli}m instead of {asked}"
                yield evolve(thousandth, title=title, corrects=True)
        if 0 < most < amount:
            change = smaller_request(pod, resource, most, options)
            if change is not None:
                yield change
        elif "/" in resource and not is_offered:
            title = f"no request for {resource}"
            yield Change(title=title, edits=(edit_pod(pod, lambda one: _edit_names(one, resource, None)),))

    short = f"{resource} {asked}"
    if not is_offered:
        return Clause(reason="ResourceNotOffered", title=short, fails=fails, cause=cause, changes=changes)
    reason = _REASONS.get(
        resource, "InsufficientHugePages" if "hugepages-" in resource else "InsufficientExtendedResource"
    )
    return Clause(reason=reason, title=short, fails=fails, cause=cause, changes=changes)


def _meant_milli(amount: int, allocatable: Int64Array) -> int:
    """A thousandth of *amount*, a number of milli-CPU, if its unit was probably forgotten; else 0."""
    is_huge = amount >= _HUGE_MILLI and amount > _TIMES_LARGER * int(allocatable.max(initial=0))
    return amount // 1000 if is_huge and amount % 1000 == 0 else 0


def _best(column: Int64Array, where: BoolArray) -> int:
    """The position with the most, among those that *where* says."""
    return int(np.argmax(np.where(where, column, np.iinfo(np.int64).min)))


def _offered(nodes: NodeColumns) -> list[str]:
    return [name for name in nodes.resource_names if name and bool((nodes.allocatable_of(name) > 0).any())]


def _renamed(pod: Pod, resource: str, meant: str) -> Change:
    title = f"request {meant} instead of {resource}"
    edit = edit_pod(pod, lambda one: _edit_names(one, resource, meant))
    return Change(title=title, edits=(edit,), corrects=True)


def _edit_names(pod: Pod, resource: str, meant: str | None) -> Pod:
    """*pod* whose containers ask for *meant* in place of *resource*; None: for neither."""

    def edited(amounts: Mapping[str, Quantity] | None) -> dict[str, Quantity] | None:
        if amounts is None or resource not in amounts:
            return None if amounts is None else dict(amounts)
        found = {name: value for name, value in amounts.items() if name != resource}
        return found if meant is None else {**found, meant: amounts[resource]}

    def of(containers: Sequence[Container] | None) -> tuple[Container, ...] | None:
        if containers is None:
            return None
        return tuple(
            one
            if one.resources is None
            else replace_fields(
                one,
                resources=replace_fields(
                    one.resources, requests=edited(one.resources.requests), limits=edited(one.resources.limits)
                ),
            )
            for one in containers
        )

    spec = replace_fields(pod.spec, containers=of(pod.spec.containers), init_containers=of(pod.spec.init_containers))
    return replace_fields(pod, spec=spec)
