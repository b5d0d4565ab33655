"""The sections of the report of an `Outcome`: what each is called, when it is shown, its columns and rows.

The tables, the page and the data (JSON, YAML) are drawn from them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from attrs import field, frozen

from trio_sched.simulation.node_usage import NodeGroup, Usage, total_usage
from trio_sched.simulation.outcome import Outcome, Placement
from trio_sched.simulation.units import amount, duration, label, percent

_ALL_NODES: Final = 100
"""Clusters with more are summarised."""
_MOST_USED: Final = 20


@frozen
class Names:
    """A cell with names, of which tables and the page show the first few."""

    all: tuple[str, ...]


@frozen
class Shown:
    """A cell that people see otherwise than programs do."""

    text: str
    data: Any = None
    share: float | None = None
    """What the page draws as a bar."""


@frozen
class Section:
    """One section; the cells of a row are texts, numbers, `Names`, `Shown`, or a list of lines."""

    key: str
    """The name of the property in the data."""
    title: str
    heads: tuple[str, ...]
    """The heads of the columns; empty for those that only the data have."""
    keys: tuple[str, ...]
    """The names of the columns in the data; empty for those that only are shown."""
    rows: Sequence[Sequence[Any]]
    numbers: tuple[str, ...] = ()
    """The heads of columns with numbers."""
    is_shown: bool = field(kw_only=True)
    """Whether tables and the page have it, if it has rows for instance; the data always do."""
    left_out: str = ""
    """Says what is not among the rows."""
    option: str = "--output json has all"
    """The option that shows what is left out."""
    note: str = ""
    """What a reader of the page may have to be told."""

    @is_shown.default
    def _has_rows(self) -> bool:
        return bool(self.rows)

    def shown_rows(self) -> Iterator[list[Any]]:
        """The cells below them: texts, `Names`, `Shown` and lists of lines."""
        for row in self.rows:
            cells = [cell for head, cell in zip(self.heads, row, strict=True) if head]
            yield [str(cell) if isinstance(cell, int) else cell for cell in cells]

    def data(self) -> list[dict[str, Any]]:
        """The rows for JSON and YAML."""
        places = [(place, key) for place, key in enumerate(self.keys) if key]
        return [{key: _as_data(row[place]) for place, key in places} for row in self.rows]


def _as_data(cell: Any) -> Any:
    if isinstance(cell, Names):
        return list(cell.all)
    data = cell.data if isinstance(cell, Shown) else cell
    return round(data, 3) if isinstance(data, float) else data


def report_sections(
    outcome: Outcome, *, most_rows: int | None, every_pod: bool = False, every_node: bool = False
) -> Iterator[Section]:
    """The sections, in order.

    Args:
        outcome: what to report.
        most_rows: how many workloads, reasons and preemptions there are at most; None: all, and nodes by their names.
        every_pod: where each pod is, instead of each workload.
        every_node: all nodes, however many there are.
    """
    yield _pods(outcome) if every_pod else _workloads(outcome, most_rows)
    yield _nodes(outcome, most_rows, every_node=every_node)
    yield _node_groups("pools", "Pools", "Pool", outcome.pools, outcome.resources)
    yield _node_groups("zones", "Zones", "Zone", outcome.zones, outcome.resources)
    yield Section(
        "claims",
        "Claims for volumes",
        heads=("Namespace", "Class", "Bound", "Pending"),
        keys=("namespace", "storageClass", "bound", "pending"),
        numbers=("Bound", "Pending"),
        rows=[(one.namespace, one.storage_class, one.bound, one.pending) for one in outcome.claims],
    )
    yield Section(
        "assumptions",
        "Assumed",
        heads=("Claims", "Assumption", "For example"),
        keys=("", "message", "claims"),
        numbers=("Claims",),
        rows=[(len(one.claims), one.message, Names(one.claims)) for one in outcome.assumptions],
    )
    yield Section(
        "devices",
        "Devices",
        heads=("Driver", "Pool", "Devices", "Allocated", "Tainted"),
        keys=("driver", "pool", "count", "allocated", "tainted"),
        numbers=("Devices", "Allocated", "Tainted"),
        rows=[(one.driver, one.pool, one.count, one.allocated, one.tainted) for one in outcome.devices],
    )
    yield Section(
        "podGroups",
        "Pod groups",
        heads=("Namespace", "Group", "Min", "Placed", "Pending", "Why pending"),
        keys=("namespace", "name", "minCount", "placed", "pending", "message"),
        numbers=("Min", "Placed", "Pending"),
        rows=[
            (
                one.namespace,
                one.name,
                Shown(str(one.min_count or "-"), one.min_count),
                one.placed,
                one.pending,
                one.message,
            )
            for one in outcome.groups
        ],
    )
    yield Section(
        "preempted",
        "Preempted",
        heads=("After", "Pod", "Made room for", "On node"),
        keys=("atSeconds", "pod", "by", "node"),
        numbers=("After",),
        rows=[
            (Shown(duration(one.at_seconds), one.at_seconds), one.pod, one.by, one.node)
            for one in outcome.evictions[:most_rows]
        ],
        left_out=_more(outcome.evictions, most_rows, "pods that made room"),
    )
    yield Section(
        "pending",
        "Pending",
        heads=("Pods", "Reason", "Why", "", "", "For example"),
        keys=("", "reason", "", "message", "note", "pods"),
        numbers=("Pods",),
        rows=[
            (len(one.pods), one.reason, _lines(one.message, one.note), one.message, one.note, Names(one.pods))
            for one in outcome.waiting[:most_rows]
        ],
        left_out=_more(outcome.waiting, most_rows, "reasons"),
    )
    yield Section(
        "notCreated",
        "Could not be created",
        heads=("Namespace", "", "Workload", "Pods", "Why"),
        keys=("namespace", "kind", "workload", "pods", "message"),
        numbers=("Pods",),
        rows=[
            (one.namespace, one.kind, Shown(f"{one.kind} {one.workload}", one.workload), one.pods, one.message)
            for one in outcome.missing[:most_rows]
        ],
        left_out=_more(outcome.missing, most_rows, "workloads"),
    )


def facts(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """The summary: names and values."""
    usage, time = total_usage(node.usage for node in outcome.nodes), outcome.time_to_schedule
    yield "nodes", str(len(outcome.nodes))
    yield "pods placed", str(len(outcome.placements))
    yield "pods pending", str(outcome.waiting_pods)
    yield "pods preempted", str(len(outcome.evictions))
    yield "CPU requested", f"{100 * usage.share('cpu'):.1f}%"
    yield "memory requested", f"{100 * usage.share('memory'):.1f}%"
    yield "to schedule, p50", "-" if time is None else duration(time.p50)
    yield "to schedule, p99", "-" if time is None else duration(time.p99)
    yield "had come to rest", "yes" if outcome.settled else "no"


def _lines(*texts: str) -> list[str] | str:
    """A cell with those of *texts* that are not empty."""
    lines = [text for text in texts if text]
    return lines if len(lines) > 1 else "".join(lines)


def _more(rows: Sequence[object], most_rows: int | None, what: str) -> str:
    more = 0 if most_rows is None else len(rows) - most_rows
    return f"and {more} more {what}" if more > 0 else ""


def _workloads(outcome: Outcome, most_rows: int | None) -> Section:
    """The largest workloads."""
    pool_of = {node.name: node.pool for node in outcome.nodes}
    zone_of = {node.name: node.zone for node in outcome.nodes}
    workloads: dict[tuple[str, str], list[Placement]] = {}
    for placement in outcome.placements:
        workloads.setdefault((placement.namespace, placement.workload), []).append(placement)
    rows = []
    largest = sorted(workloads.items(), key=lambda item: -len(item[1]))[:most_rows]
    for (namespace, workload), placements in sorted(largest):
        nodes = {placement.node for placement in placements}
        pools = _counted(pool_of.get(placement.node, "unknown node") for placement in placements)
        where = f"node {min(nodes)}" if len(nodes) == 1 else pools
        zones = _counted(zone_of.get(placement.node, "-") for placement in placements)
        rows.append((namespace, workload, len(placements), len(nodes), where, zones))
    more = len(workloads) - len(largest)
    return Section(
        "placements",
        "Placements",
        heads=("Namespace", "Workload", "Pods", "Nodes", "Where", "Zones"),
        keys=("",) * 6,
        numbers=("Pods", "Nodes"),
        rows=rows,
        is_shown=True,
        left_out=f"and {more} smaller workloads" if more else "",
        option="--pods shows every pod",
    )


def _counted(names: Iterable[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(Counter(names).items()))


def _pods(outcome: Outcome) -> Section:
    return Section(
        "placements",
        "Placements",
        heads=("Namespace", "Pod", "", "Node", "Phase", ""),
        keys=("namespace", "pod", "workload", "node", "phase", "secondsToSchedule"),
        rows=[
            (one.namespace, one.pod, one.workload, one.node, one.phase, one.seconds_to_schedule)
            for one in outcome.placements
        ],
        is_shown=True,
    )


def _nodes(outcome: Outcome, most_rows: int | None, *, every_node: bool) -> Section:
    what, shown = "Nodes", list(outcome.nodes)
    is_summary = len(shown) > _ALL_NODES and not every_node
    if is_summary:
        what = f"The {_MOST_USED} most used of {len(shown)} nodes"
        shown = sorted(shown, key=lambda node: (-node.use, node.pool, node.name))[:_MOST_USED]
    elif most_rows is not None:
        shown.sort(key=lambda node: (node.pool, node.name))
    heads, keys = _usage_columns(outcome.resources)
    return Section(
        "nodes",
        f"{what} (requested of allocatable)",
        heads=("Node", "Pool", "Zone", *heads),
        keys=("name", "pool", "zone", *keys),
        numbers=heads,
        rows=[(node.name, node.pool, node.zone, *_usage_cells(node.usage, outcome.resources)) for node in shown],
        is_shown=True,
        left_out="--nodes shows all of them" if is_summary else "",
        option="",
    )


_FRAGMENTED: Final = (
    "Fragmented is the share of what is free that lies on nodes without room for a typical pod: the median of the pods "
    "that request this resource."
)


def _node_groups(key: str, title: str, head: str, groups: Sequence[NodeGroup], resources: tuple[str, ...]) -> Section:
    rows = []
    for group in groups:
        shares = [(name, share) for name in resources if (share := group.fragmentation.get(name)) is not None]
        fragmented = ", ".join(f"{name} {100 * share:.0f}%" for name, share in shares) or "-"
        exact = {name: None if share is None else round(share, 4) for name, share in group.fragmentation.items()}
        rows.append((group.name, group.nodes, *_usage_cells(group.usage, resources), Shown(fragmented, exact)))
    heads, keys = _usage_columns(resources)
    return Section(
        key,
        title,
        heads=(head, "Nodes", *heads, "Fragmented"),
        keys=("name", "nodes", *keys, "fragmentation"),
        numbers=("Nodes", *heads),
        rows=rows,
        is_shown=key == "pools" or {group.name for group in groups} != {"-"},
        note=_FRAGMENTED if key == "pools" else "",
    )


def _usage_columns(resources: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Heads and keys."""
    data = "podsAllocatable", "requested", "allocatable"
    return ("Pods", *map(label, resources), *[""] * len(data)), ("pods", *[""] * len(resources), *data)


def _usage_cells(usage: Usage, resources: Iterable[str]) -> Iterator[Any]:
    yield Shown(f"{usage.pods}/{usage.pods_allocatable}", usage.pods)
    for resource in resources:
        requested, allocatable = usage.requested.get(resource, 0), usage.allocatable.get(resource, 0)
        if allocatable:
            of_all = f"{amount(resource, requested)}/{amount(resource, allocatable)}"
            yield Shown(f"{of_all} {percent(requested, allocatable):>4}", share=usage.share(resource))
        else:
            yield "-"
    yield from (usage.pods_allocatable, dict(usage.requested), dict(usage.allocatable))
