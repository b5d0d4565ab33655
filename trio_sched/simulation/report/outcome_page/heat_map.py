"""Nodes as cells, by zone and pool: the darker on a light page, or the lighter on a dark one, the more is requested."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from trio_sched.simulation.node_usage import NodeReport, Usage
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.style import STEPS, step_of
from trio_sched.simulation.units import amount, label, percent

_LARGE_CELLS: Final = 150
"""So many nodes have cells with names."""
_SMALL_CELLS: Final = 1000
"""More than so many have small ones."""

Share = Callable[[Usage], tuple[int, int, str]]
"""What is requested, of how much, and both in words."""


def heat_maps(outcome: Outcome, group: str = "map") -> Markup:
    """A map for each resource and one for the number of pods, of which the reader chooses one.

    Args:
        outcome: with the nodes.
        group: begins the ids of the choice; another one for each on a page.
    """
    maps = [(label(name), _map(outcome.nodes, _share_of(name))) for name in outcome.resources]
    maps.append(("Pods", _map(outcome.nodes, _pods)))
    there = [(title, map_) for title, map_ in maps if map_]
    choice: list[Markup] = []
    for number, (title, _) in enumerate(there):
        checked = {} if number else {"checked": "checked"}
        choice.append(element("input", type="radio", name=group, id=f"{group}-{number}", **checked))
        choice.append(element("label", title, for_=f"{group}-{number}"))
    return join(
        element("p", "One cell is one node; its colour is the share of its allocatable amount that pods request."),
        _scale(),
        element("div", *choice, *(map_ for _title, map_ in there), class_="choice"),
    )


def _scale() -> Markup:
    steps = (element("i", class_=f"h{step}") for step in range(STEPS))
    return element(
        "div", "0%", *steps, "100%", element("i", class_=f"h{STEPS} beyond"), "more than 100%", class_="scale"
    )


def _pods(usage: Usage) -> tuple[int, int, str]:
    return usage.pods, usage.pods_allocatable, f"{usage.pods} of {usage.pods_allocatable} pods"


def _share_of(resource: str) -> Share:
    def share(usage: Usage) -> tuple[int, int, str]:
        requested, allocatable = usage.requested.get(resource, 0), usage.allocatable.get(resource, 0)
        return requested, allocatable, f"{amount(resource, requested)} of {amount(resource, allocatable)} {resource}"

    return share


def _map(nodes: Sequence[NodeReport], share: Share) -> Markup:
    rows: dict[tuple[str, str], list[NodeReport]] = {}
    for node in sorted(nodes, key=lambda node: (node.zone, node.pool, node.name)):
        rows.setdefault((node.zone, node.pool), []).append(node)
    is_large = len(nodes) <= _LARGE_CELLS
    size = " large" if is_large else " small" if len(nodes) > _SMALL_CELLS else ""
    parts: list[Markup] = []
    for (zone, pool), members in rows.items():
        cells = list(_cells(members, share, is_large=is_large))
        if cells:
            name = " / ".join(part for part in (zone, pool) if part != "-") or "all nodes"
            parts += (element("div", name, class_="name"), element("div", *cells, class_=f"cells{size}"))
    return element("div", *parts, class_="map") if parts else Markup()


def _cells(nodes: Sequence[NodeReport], share: Share, *, is_large: bool) -> Iterator[Markup]:
    for node in nodes:
        used, whole, words = share(node.usage)
        if whole:
            shown = percent(used, whole)
            content = (element("b", node.name), shown) if is_large else ()
            title = f"{node.name}: {words}, {shown}"
            yield element("i", *content, class_=f"h{step_of(used / whole)}", title=title)
