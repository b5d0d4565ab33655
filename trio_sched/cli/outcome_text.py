"""An `Outcome` as tables for the terminal, and as plain data for JSON and YAML."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from attrs import asdict
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from trio_sched.cli.outcome import Outcome, Placement, Usage

Json = dict[str, Any]

_EXAMPLES: Final = 3
_GIB: Final = 1024**3


def outcome_as_data(outcome: Outcome) -> Json:
    """*outcome* for JSON and YAML; CPU in milli-CPU, memory in bytes."""
    return {
        "summary": {
            "nodes": len(outcome.nodes),
            "placed": len(outcome.placements),
            "pending": outcome.waiting_pods,
            "settled": outcome.settled,
            "simulatedSeconds": round(outcome.simulated_seconds, 3),
        },
        "placements": [asdict(placement) for placement in outcome.placements],
        "pending": [
            {"reason": group.reason, "message": group.message, "pods": list(group.pods)} for group in outcome.waiting
        ],
        "claims": [
            {
                "namespace": one.namespace,
                "storageClass": one.storage_class,
                "bound": one.bound,
                "pending": one.pending,
            }
            for one in outcome.claims
        ],
        "devices": [asdict(one) for one in outcome.devices],
        "podGroups": [
            {
                "namespace": one.namespace,
                "name": one.name,
                "minCount": one.min_count,
                "placed": one.placed,
                "pending": one.pending,
                "message": one.message,
            }
            for one in outcome.groups
        ],
        "preempted": [asdict(eviction) for eviction in outcome.evictions],
        "pools": [{"name": name, **_usage_as_data(usage)} for name, usage in outcome.pools.items()],
        "nodes": [
            {"name": node.name, "pool": node.pool, "zone": node.zone, **_usage_as_data(node.usage)}
            for node in outcome.nodes
        ],
    }


def outcome_as_tables(outcome: Outcome, *, every_pod: bool) -> Iterator[RenderableType]:
    """*outcome* as tables: nodes, placements, evictions and so on.

    Args:
        outcome: what to show.
        every_pod: also list where each pod is, instead of summing them up by workload only.
    """
    yield _placements_by_pod(outcome) if every_pod else _placements_by_workload(outcome)
    yield _nodes(outcome)
    yield _pools(outcome)
    if outcome.claims:
        yield _claims(outcome)
    if outcome.devices:
        yield _devices(outcome)
    if outcome.groups:
        yield _groups(outcome)
    if outcome.evictions:
        yield _evictions(outcome)
    if outcome.waiting:
        yield _waiting(outcome)
    yield _summary(outcome)


def _usage_as_data(usage: Usage) -> Json:
    return {
        "pods": usage.pods,
        "podsAllocatable": usage.pods_allocatable,
        "requested": dict(usage.requested),
        "allocatable": dict(usage.allocatable),
    }


def _table(title: str, *columns: str, right: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return table


def _placements_by_workload(outcome: Outcome) -> Table:
    table = _table("Placements", "NAMESPACE", "WORKLOAD", "PODS", "NODES", "WHERE", "ZONES", right=("PODS", "NODES"))
    pool_of = {node.name: node.pool for node in outcome.nodes}
    zone_of = {node.name: node.zone for node in outcome.nodes}
    workloads: dict[tuple[str, str], list[Placement]] = {}
    for placement in outcome.placements:
        workloads.setdefault((placement.namespace, placement.workload), []).append(placement)
    for (namespace, workload), placements in sorted(workloads.items()):
        nodes = {placement.node for placement in placements}
        if len(nodes) == 1:
            where = f"node {nodes.pop()}"
            count = 1
        else:
            pools = Counter(pool_of.get(placement.node, "unknown node") for placement in placements)
            where = ", ".join(f"{pool} {number}" for pool, number in sorted(pools.items()))
            count = len(nodes)
        zones = Counter(zone_of.get(placement.node, "-") for placement in placements)
        spread = ", ".join(f"{zone} {number}" for zone, number in sorted(zones.items()))
        table.add_row(namespace, workload, str(len(placements)), str(count), where, spread)
    return table


def _placements_by_pod(outcome: Outcome) -> Table:
    table = _table("Placements", "NAMESPACE", "POD", "NODE", "PHASE")
    for one in outcome.placements:
        table.add_row(one.namespace, one.pod, one.node, one.phase)
    return table


def _nodes(outcome: Outcome) -> Table:
    numbers = ("PODS", *map(_heading, outcome.resources))
    table = _table("Nodes (requested of allocatable)", "NODE", "POOL", "ZONE", *numbers, right=numbers)
    for node in sorted(outcome.nodes, key=lambda node: (node.pool, node.name)):
        table.add_row(node.name, node.pool, node.zone, *_shares(node.usage, outcome.resources))
    return table


def _pools(outcome: Outcome) -> Table:
    numbers = ("NODES", "PODS", *map(_heading, outcome.resources))
    table = _table("Pools", "POOL", *numbers, right=numbers)
    sizes = Counter(node.pool for node in outcome.nodes)
    for name, usage in outcome.pools.items():
        table.add_row(name, str(sizes[name]), *_shares(usage, outcome.resources))
    return table


def _claims(outcome: Outcome) -> Table:
    numbers = ("BOUND", "PENDING")
    table = _table("Claims for volumes", "NAMESPACE", "CLASS", *numbers, right=numbers)
    for one in outcome.claims:
        table.add_row(one.namespace, one.storage_class, str(one.bound), str(one.pending))
    return table


def _devices(outcome: Outcome) -> Table:
    numbers = ("DEVICES", "ALLOCATED", "TAINTED")
    table = _table("Devices", "DRIVER", "POOL", *numbers, right=numbers)
    for one in outcome.devices:
        table.add_row(one.driver, one.pool, str(one.count), str(one.allocated), str(one.tainted))
    return table


def _groups(outcome: Outcome) -> Table:
    numbers = ("MIN", "PLACED", "PENDING")
    table = _table("Pod groups", "NAMESPACE", "GROUP", *numbers, "WHY PENDING", right=numbers)
    for one in outcome.groups:
        least = str(one.min_count) if one.min_count else "-"
        table.add_row(one.namespace, one.name, least, str(one.placed), str(one.pending), one.message)
    return table


def _evictions(outcome: Outcome) -> Table:
    table = _table("Preempted", "POD", "MADE ROOM FOR", "ON NODE")
    for eviction in outcome.evictions:
        table.add_row(eviction.pod, eviction.by, eviction.node)
    return table


def _waiting(outcome: Outcome) -> Table:
    table = _table("Pending", "PODS", "REASON", "WHY", "FOR EXAMPLE", right=("PODS",))
    for group in outcome.waiting:
        examples = list(group.pods[:_EXAMPLES])
        if len(group.pods) > _EXAMPLES:
            examples.append("…")
        table.add_row(str(len(group.pods)), group.reason, group.message, "\n".join(examples))
    return table


def _summary(outcome: Outcome) -> Text:
    pods = len(outcome.placements) + outcome.waiting_pods
    text = (
        f"{pods} pods, {len(outcome.nodes)} nodes: {len(outcome.placements)} placed, "
        f"{outcome.waiting_pods} pending, after {outcome.simulated_seconds:.1f} s of the cluster's time"
    )
    return Text(text if outcome.settled else f"{text}; it had not come to rest")


def _heading(resource: str) -> str:
    return resource.upper() if "/" not in resource else resource


def _shares(usage: Usage, resources: tuple[str, ...]) -> Iterator[str]:
    yield f"{usage.pods}/{usage.pods_allocatable}"
    for resource in resources:
        allocatable = usage.allocatable.get(resource, 0)
        if not allocatable:
            yield "-"
            continue
        requested = usage.requested.get(resource, 0)
        percent = 100 * requested // allocatable
        yield f"{_amount(resource, requested)}/{_amount(resource, allocatable)} {percent:>3}%"


def _amount(resource: str, amount: int) -> str:
    match resource:
        case "cpu":
            return f"{amount / 1000:.1f}"
        case "memory":
            return f"{amount / _GIB:.1f}Gi"
    return str(amount)
