"""Nodes as cells, by zone and pool: the darker on a light page, or the lighter on a dark one, the more is requested."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from trio_sched.simulation.node_usage import NodeReport, Usage
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.style import step_of
from trio_sched.simulation.units import amount, label

_SMALL_CELLS: Final = 400
"""So many nodes have smaller cells."""

Share = Callable[[Usage], tuple[float, str] | None]
"""The share that is requested, and what it is in words; None if there is nothing to request."""


def heat_maps(outcome: Outcome) -> Markup:
    """A map for each resource, and one for the number of pods."""
    maps = [_map(label(name), outcome.nodes, _share_of(name)) for name in outcome.resources]
    scale = element("div", "0 %", *(element("i", class_=f"h{i}") for i in range(10)), "100 %", class_="scale")
    return join(
        element("p", "One cell is one node; its colour is the share of its allocatable amount that pods request."),
        scale,
        *maps,
        _map("Pods", outcome.nodes, _pods),
    )


def _pods(usage: Usage) -> tuple[float, str] | None:
    if not usage.pods_allocatable:
        return None
    return usage.pods / usage.pods_allocatable, f"{usage.pods} of {usage.pods_allocatable} pods"


def _share_of(resource: str) -> Share:
    def share(usage: Usage) -> tuple[float, str] | None:
        requested, allocatable = usage.requested.get(resource, 0), usage.allocatable.get(resource, 0)
        if not allocatable:
            return None
        return usage.share(resource), f"{amount(resource, requested)} of {amount(resource, allocatable)} {resource}"

    return share


def _map(title: str, nodes: Sequence[NodeReport], share: Share) -> Markup:
    rows: dict[tuple[str, str], list[NodeReport]] = {}
    for node in sorted(nodes, key=lambda node: (node.zone, node.pool, node.name)):
        rows.setdefault((node.zone, node.pool), []).append(node)
    small = " small" if len(nodes) > _SMALL_CELLS else ""
    parts: list[Markup] = []
    for (zone, pool), members in rows.items():
        cells = list(_cells(members, share))
        if cells:
            name = " / ".join(part for part in (zone, pool) if part != "-") or "all nodes"
            parts += (element("div", name, class_="name"), element("div", *cells, class_=f"cells{small}"))
    return join(element("h3", title), element("div", *parts, class_="map")) if parts else Markup()


def _cells(nodes: Sequence[NodeReport], share: Share) -> Iterator[Markup]:
    for node in nodes:
        found = share(node.usage)
        if found is not None:
            used, words = found
            yield element("i", class_=f"h{step_of(used)}", title=f"{node.name}: {words}, {100 * used:.0f} %")
