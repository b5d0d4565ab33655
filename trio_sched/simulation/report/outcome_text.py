"""An `Outcome` as tables for the terminal; large clusters are summarised."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from typing import Final

from rich.console import RenderableType
from rich.table import Table

from trio_sched.simulation.explanations import explanation_as_tables
from trio_sched.simulation.node_usage import NodeGroup, Usage
from trio_sched.simulation.outcome import Outcome, Placement
from trio_sched.simulation.tables import line, table
from trio_sched.simulation.units import amount, duration, heading

_EXAMPLES: Final = 3
_ALL_NODES: Final = 100
"""Clusters with more are summarised."""
_MOST_USED: Final = 20
_ROWS: Final = 50
"""Of workloads, reasons and preemptions."""


def outcome_as_tables(outcome: Outcome, *, every_pod: bool, every_node: bool) -> Iterator[RenderableType]:
    """*outcome* as tables: nodes, placements, evictions and so on.

    Args:
        outcome: what to show.
        every_pod: also list where each pod is, instead of summing them up by workload only.
        every_node: list all nodes, however many there are.
    """
    if every_pod:
        yield _placements_by_pod(outcome)
    else:
        yield from _placements_by_workload(outcome)
    yield from _nodes(outcome, every_node=every_node)
    yield _node_groups("Pools", "POOL", outcome.pools, outcome.resources)
    if {zone.name for zone in outcome.zones} != {"-"}:
        yield _node_groups("Zones", "ZONE", outcome.zones, outcome.resources)
    if outcome.claims:
        yield _claims(outcome)
    if outcome.devices:
        yield _devices(outcome)
    if outcome.groups:
        yield _groups(outcome)
    if outcome.evictions:
        yield from _evictions(outcome)
    if outcome.waiting:
        yield from _waiting(outcome)
    if outcome.missing:
        yield from _missing(outcome)
    for one in outcome.explanations:
        yield from explanation_as_tables(one, every_node=every_node)
    yield from _summary(outcome)


def _placements_by_workload(outcome: Outcome) -> Iterator[RenderableType]:
    rows = table("Placements", "NAMESPACE", "WORKLOAD", "PODS", "NODES", "WHERE", "ZONES", right=("PODS", "NODES"))
    pool_of = {node.name: node.pool for node in outcome.nodes}
    zone_of = {node.name: node.zone for node in outcome.nodes}
    workloads: dict[tuple[str, str], list[Placement]] = {}
    for placement in outcome.placements:
        workloads.setdefault((placement.namespace, placement.workload), []).append(placement)
    largest = sorted(workloads.items(), key=lambda item: -len(item[1]))[:_ROWS]
    for (namespace, workload), placements in sorted(largest):
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
        rows.add_row(namespace, workload, str(len(placements)), str(count), where, spread)
    yield rows
    if more := len(workloads) - len(largest):
        yield line(f"and {more} smaller workloads; --pods shows every pod")


def _placements_by_pod(outcome: Outcome) -> Table:
    rows = table("Placements", "NAMESPACE", "POD", "NODE", "PHASE")
    for one in outcome.placements:
        rows.add_row(one.namespace, one.pod, one.node, one.phase)
    return rows


def _nodes(outcome: Outcome, *, every_node: bool) -> Iterator[RenderableType]:
    numbers = ("PODS", *map(heading, outcome.resources))
    is_summary = len(outcome.nodes) > _ALL_NODES and not every_node
    if is_summary:
        title = f"The {_MOST_USED} most used of {len(outcome.nodes)} nodes (requested of allocatable)"
        shown = sorted(outcome.nodes, key=lambda node: (-node.use, node.pool, node.name))[:_MOST_USED]
    else:
        title = "Nodes (requested of allocatable)"
        shown = sorted(outcome.nodes, key=lambda node: (node.pool, node.name))
    rows = table(title, "NODE", "POOL", "ZONE", *numbers, right=numbers)
    for node in shown:
        rows.add_row(node.name, node.pool, node.zone, *_shares(node.usage, outcome.resources))
    yield rows
    if is_summary:
        yield line("--nodes shows all of them")


def _node_groups(title: str, column: str, groups: Iterable[NodeGroup], resources: tuple[str, ...]) -> Table:
    """With the share of the free resources that no typical pod can use."""
    numbers = ("NODES", "PODS", *map(heading, resources))
    rows = table(title, column, *numbers, "FRAGMENTED", right=numbers)
    for group in groups:
        known = ((name, group.fragmentation.get(name)) for name in resources)
        fragmented = ", ".join(f"{name} {100 * share:.0f}%" for name, share in known if share is not None)
        rows.add_row(group.name, str(group.nodes), *_shares(group.usage, resources), fragmented or "-")
    return rows


def _claims(outcome: Outcome) -> Table:
    numbers = ("BOUND", "PENDING")
    rows = table("Claims for volumes", "NAMESPACE", "CLASS", *numbers, right=numbers)
    for one in outcome.claims:
        rows.add_row(one.namespace, one.storage_class, str(one.bound), str(one.pending))
    return rows


def _devices(outcome: Outcome) -> Table:
    numbers = ("DEVICES", "ALLOCATED", "TAINTED")
    rows = table("Devices", "DRIVER", "POOL", *numbers, right=numbers)
    for one in outcome.devices:
        rows.add_row(one.driver, one.pool, str(one.count), str(one.allocated), str(one.tainted))
    return rows


def _groups(outcome: Outcome) -> Table:
    numbers = ("MIN", "PLACED", "PENDING")
    rows = table("Pod groups", "NAMESPACE", "GROUP", *numbers, "WHY PENDING", right=numbers)
    for one in outcome.groups:
        least = str(one.min_count) if one.min_count else "-"
        rows.add_row(one.namespace, one.name, least, str(one.placed), str(one.pending), one.message)
    return rows


def _evictions(outcome: Outcome) -> Iterator[RenderableType]:
    rows = table("Preempted", "AFTER", "POD", "MADE ROOM FOR", "ON NODE", right=("AFTER",))
    for eviction in outcome.evictions[:_ROWS]:
        rows.add_row(duration(eviction.at_seconds), eviction.pod, eviction.by, eviction.node)
    yield rows
    yield from _more(outcome.evictions, "pods that made room")


def _waiting(outcome: Outcome) -> Iterator[RenderableType]:
    rows = table("Pending", "PODS", "REASON", "WHY", "FOR EXAMPLE", right=("PODS",))
    for group in outcome.waiting[:_ROWS]:
        examples = list(group.pods[:_EXAMPLES])
        if len(group.pods) > _EXAMPLES:
            examples.append("…")
        rows.add_row(str(len(group.pods)), group.reason, group.message, examples)
    yield rows
    yield from _more(outcome.waiting, "reasons")


def _missing(outcome: Outcome) -> Iterator[RenderableType]:
    rows = table("Could not be created", "NAMESPACE", "WORKLOAD", "PODS", "WHY", right=("PODS",))
    for one in outcome.missing[:_ROWS]:
        rows.add_row(one.namespace, f"{one.kind} {one.workload}", str(one.pods), one.message)
    yield rows
    yield from _more(outcome.missing, "workloads")


def _more(rows: Sized, what: str) -> Iterator[RenderableType]:
    if (more := len(rows) - _ROWS) > 0:
        yield line(f"and {more} more {what}; --output json has all")


def _summary(outcome: Outcome) -> Iterator[RenderableType]:
    pods = len(outcome.placements) + outcome.waiting_pods
    missing = f"{outcome.missing_pods} could not be created, " if outcome.missing else ""
    text = (
        f"{pods} pods, {len(outcome.nodes)} nodes: {len(outcome.placements)} placed, "
        f"{outcome.waiting_pods} pending, {missing}after {outcome.simulated_seconds:.1f} s of the cluster's time"
    )
    yield line(text if outcome.settled else f"{text}; it had not come to rest")
    if (time := outcome.time_to_schedule) is not None:
        p50, p99, longest = map(duration, (time.p50, time.p99, time.longest))
        yield line(f"from creation to binding: p50 {p50}, p99 {p99}, at most {longest}")


def _shares(usage: Usage, resources: tuple[str, ...]) -> Iterator[str]:
    yield f"{usage.pods}/{usage.pods_allocatable}"
    for resource in resources:
        allocatable = usage.allocatable.get(resource, 0)
        if not allocatable:
            yield "-"
            continue
        requested = usage.requested.get(resource, 0)
        percent = 100 * requested // allocatable
        yield f"{amount(resource, requested)}/{amount(resource, allocatable)} {percent:>3}%"
