"""Says in one sentence why a pod group is not scheduled: how many of its pods fit, and what the next one lacks."""

from __future__ import annotations

from collections.abc import Iterator

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, TreeResult
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import ResourceOptions, pod_resources
from trio_sched.snapshot.node_columns import NodeColumns

_INSUFFICIENT = "Insufficient "


def shortage(pod: Pod, failed: SchedulingFailure, nodes: NodeColumns, options: ResourceOptions) -> str:
    """What *pod* lacks on *nodes*, with the pods of its group there that came before it.

    Args:
        pod: it fits on none of *nodes*.
        failed: why.
        nodes: the nodes of the placement, as they are.
        options: which parts of the pod count as requests.

    Returns:
        ``pod shop/trainer-7 lacks 2 nvidia.com/gpu`` if amounts are what is missing on every node, else the reasons.
    """
    missing = list(_missing(pod, failed, nodes, options))
    if missing:
        return f"pod {pod.key} lacks {' and '.join(missing)}"
    return f"pod {pod.key}: {failed.message}"


def _missing(pod: Pod, failed: SchedulingFailure, nodes: NodeColumns, options: ResourceOptions) -> Iterator[str]:
    """The amounts that no node has free, as far as these are why the pod was rejected."""
    if failed.diagnosis is None or not len(nodes):
        return
    requested = pod_resources(pod, options).requested
    for name in lacking_resources(failed):
        row, wanted = nodes.resource_row(name), requested.amount(name)
        free = 0 if row is None else max(0, int((nodes.allocatable[row] - nodes.requested[row]).max()))
        if wanted > free:
            yield f"{_amount(name, wanted - free)} {name}"


def lacking_resources(failed: SchedulingFailure) -> list[str]:
    """The resources of which nodes have too little, by name."""
    statuses = () if failed.diagnosis is None else failed.diagnosis.statuses.counts()
    reasons = {reason for status, _count in statuses for reason in status.all_reasons}
    return sorted(one.removeprefix(_INSUFFICIENT) for one in reasons if one.startswith(_INSUFFICIENT))


def _amount(name: str, amount: int) -> str:
    """*amount* of the resource *name*, rounded up to a unit that people read."""
    if name == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for unit, size in (("Gi", 1 << 30), ("Mi", 1 << 20)):
            if amount >= size:
                return f"{-(-amount * 10 // size) / 10:g}{unit}"
    return str(amount)


def explain(result: GroupResult, members: int, *, topology_key: str = "") -> str:
    """One sentence about a group that is not scheduled.

    Args:
        result: what the attempt came to.
        members: how many pods the attempt was about.
        topology_key: the node label whose values are the placements, if the group has one.
    """
    assert result.status is not None
    if result.is_error or not result.shortage:
        return result.status.message
    return f"{result.fitting} of {members} pods fit; {result.shortage}{_where(result, topology_key)}"


def explain_tree(result: GroupResult, children: int, *, topology_key: str = "") -> str:
    """One sentence about a composite group that is not scheduled.

    Args:
        result: what the attempt came to.
        children: how many child groups it has.
        topology_key: as for `explain`.
    """
    assert result.status is not None
    if result.is_error or not result.shortage:
        return result.status.message
    fitting = fitting_children(result)
    return f"{fitting} of {children} child groups fit; {result.shortage}{_where(result, topology_key)}"


def fitting_children(result: GroupResult) -> int:
    """How many child groups of a composite group are schedulable."""
    children = result.children if isinstance(result, TreeResult) else ()
    return sum(child.status is None for child in children)


def _where(result: GroupResult, topology_key: str) -> str:
    if not topology_key:
        return ""
    best = f'; most fit in "{result.placement.name}"' if len(result.tried) > 1 else ""
    return f" in any {topology_key}{best}"
