"""The page: summary, pools and zones, heat maps, timeline, pending pods, preemptions, explanations."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from trio_sched import __version__
from trio_sched.simulation.explanations import Explanation
from trio_sched.simulation.node_usage import NodeGroup, Usage, total_usage
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.outcome_page.heat_map import heat_maps
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.style import STYLE
from trio_sched.simulation.report.outcome_page.timeline import timeline
from trio_sched.simulation.units import amount, duration, label

_NAMES: Final = 20
"""Of pods or nodes that are listed in a cell."""
_ROWS: Final = 1000
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"


def outcome_as_page(outcome: Outcome) -> str:
    """*outcome* as a whole document."""
    title = f"{len(outcome.nodes)} nodes, {len(outcome.placements) + outcome.waiting_pods} pods: what becomes of them"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    body = element("body", element("main", element("h1", title), *_sections(outcome)))
    return f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n"


def _sections(outcome: Outcome) -> Iterator[Markup]:
    rest = "" if outcome.settled else " It had not come to rest."
    lasted = duration(outcome.simulated_seconds)
    yield element("p", f"Simulated by trio-sched {__version__}; {lasted} of the cluster's time.{rest}")
    yield _tiles(outcome)
    yield _section("Pools", _groups("Pool", outcome.pools, outcome.resources))
    if {zone.name for zone in outcome.zones} != {"-"}:
        yield _section("Zones", _groups("Zone", outcome.zones, outcome.resources))
    yield element(
        "p",
        "Fragmented is the share of what is free that lies on nodes without room for a typical pod: "
        "the median of the pods that request this resource.",
    )
    yield _section("Nodes", heat_maps(outcome))
    yield _section("Timeline", timeline(outcome))
    yield _section("Pending", _pending(outcome))
    if outcome.missing:
        yield _section("Could not be created", _missing(outcome))
    yield _section("Preemptions", _preemptions(outcome))
    yield from (_section(f"Why: {one.pod}", *_explanation(one)) for one in outcome.explanations)


def _section(title: str, *parts: str) -> Markup:
    return element("section", element("h2", title), *parts)


def _tiles(outcome: Outcome) -> Markup:
    usage, time = total_usage(node.usage for node in outcome.nodes), outcome.time_to_schedule
    facts = [
        ("nodes", str(len(outcome.nodes))),
        ("pods placed", str(len(outcome.placements))),
        ("pods pending", str(outcome.waiting_pods)),
        ("pods preempted", str(len(outcome.evictions))),
        ("CPU requested", f"{100 * usage.share('cpu'):.0f} %"),
        ("memory requested", f"{100 * usage.share('memory'):.0f} %"),
    ]
    if time is not None:
        facts += [("to schedule, p50", duration(time.p50)), ("to schedule, p99", duration(time.p99))]
    tiles = (element("div", element("b", value), element("span", name), class_="tile") for name, value in facts)
    return element("div", *tiles, class_="tiles")


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()) -> Markup:
    """A table; the columns at the positions *numbers* are aligned to the right."""

    def cell(kind: str, position: int, text: str) -> Markup:
        return element(kind, text, class_="number") if position in numbers else element(kind, text)

    head = element("tr", *(cell("th", position, name) for position, name in enumerate(columns)))
    body = [element("tr", *(cell("td", position, text) for position, text in enumerate(row))) for row in rows]
    found = element("table", element("thead", head), element("tbody", *body))
    return element("div", found, class_="wide")


def _groups(title: str, groups: Sequence[NodeGroup], resources: Sequence[str]) -> Markup:
    def row(group: NodeGroup) -> list[str]:
        usage = group.usage
        shares = (group.fragmentation.get(name) for name in resources)
        known = (
            f"{label(name)} {100 * share:.0f} %"
            for name, share in zip(resources, shares, strict=True)
            if share is not None
        )
        pods = f"{usage.pods}/{usage.pods_allocatable}"
        name = "all nodes" if len(groups) == 1 and group.name == "-" else group.name
        return [name, str(group.nodes), pods, *(_use(usage, one) for one in resources), ", ".join(known) or "–"]

    columns = [title, "Nodes", "Pods", *map(label, resources), "Fragmented"]
    return _table(columns, map(row, groups), numbers=(1, 2))


def _use(usage: Usage, resource: str) -> Markup:
    allocatable = usage.allocatable.get(resource, 0)
    if not allocatable:
        return Markup("–")
    share = usage.share(resource)
    requested = amount(resource, usage.requested.get(resource, 0))
    bar = element("i", style=f"width:{min(100 * share, 100):.1f}%", class_="over" if share > 1 else "within")
    text = f"{requested} of {amount(resource, allocatable)}, {100 * share:.0f} %"
    return join(text, element("span", bar, class_="bar"))


def _pending(outcome: Outcome) -> Markup:
    if not outcome.waiting:
        return element("p", "No pod is pending.")
    rows = [[str(len(one.pods)), one.reason, one.message, _some(one.pods)] for one in outcome.waiting[:_ROWS]]
    table = _table(["Pods", "Reason", "Why", "Which"], rows, numbers=(0,))
    return join(table, _more(len(outcome.waiting), "reasons"))


def _missing(outcome: Outcome) -> Markup:
    rows = [
        [one.namespace, f"{one.kind} {one.workload}", str(one.pods), one.message] for one in outcome.missing[:_ROWS]
    ]
    table = _table(["Namespace", "Workload", "Pods", "Why"], rows, numbers=(2,))
    return join(table, _more(len(outcome.missing), "workloads"))


def _preemptions(outcome: Outcome) -> Markup:
    if not outcome.evictions:
        return element("p", "No pod had to make room.")
    rows = [[duration(one.at_seconds), one.pod, one.by, one.node] for one in outcome.evictions[:_ROWS]]
    table = _table(["After", "Pod", "Made room for", "On node"], rows, numbers=(0,))
    return join(table, _more(len(outcome.evictions), "preemptions"))


def _explanation(one: Explanation) -> Iterator[Markup]:
    of = one.of
    yield element("p", f"It is on node {one.node}; this is without it there." if one.node else "It is pending.")
    if of.rejected is not None:
        yield element("p", f"{of.rejected.plugin} rejects it at {of.rejected_at}: {of.rejected.message}")
    if of.left_out:
        yield element("p", f"{', '.join(of.narrowed_by)} left out: {_some(of.left_out)}")
    if of.nominated:
        yield element("p", f"Kept for pods that are nominated there: {_some(of.nominated)}")
    if of.error:
        yield element("p", f"A plugin failed: {of.error}")
    rows: list[list[str]] = []
    for verdict in of.verdicts:
        if verdict.is_skipped:
            continue
        if verdict.error or not verdict.rejections:
            rows.append([verdict.plugin, str(verdict.passed), "0", verdict.error, ""])
        for group in verdict.rejections:
            rejected = [str(len(group.nodes)), group.status.message or group.status.code.label, _some(group.nodes)]
            rows.append([verdict.plugin, str(verdict.passed), *rejected])
    if rows:
        yield _table(["Filter", "Pass", "Rejected", "Why", "Nodes"], rows, numbers=(1, 2))
    if skipped := [verdict.plugin for verdict in of.verdicts if verdict.is_skipped]:
        yield element("p", f"Nothing to check for this pod: {', '.join(skipped)}.")
    if of.best:
        columns = ["Node", "Total", *(f"{plugin} × {weight}" for plugin, weight in of.weights.items())]
        scores = ([best.node, str(best.total), *(str(best.scores[name]) for name in of.weights)] for best in of.best)
        yield _table(columns, scores, numbers=range(1, len(columns)))


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _more(count: int, what: str) -> Markup:
    return element("p", f"and {count - _ROWS} more {what}") if count > _ROWS else Markup()
