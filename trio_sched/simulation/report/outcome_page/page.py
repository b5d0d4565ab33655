"""The page: the summary, the timeline, the sections of the report with heat maps in place of nodes, explanations."""

from collections.abc import Iterator
from typing import Any, Final

from trio_sched import __version__
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.explanation import explanation_parts
from trio_sched.simulation.report.outcome_page.heat_map import heat_maps
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.style import STYLE
from trio_sched.simulation.report.outcome_page.timeline import timeline
from trio_sched.simulation.report.sections import Names, Section, Shown, facts, report_sections
from trio_sched.simulation.units import duration

_NAMES: Final = 20
"""How many pods or nodes are listed in a cell."""
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
    lasted = duration(outcome.simulated_seconds)
    yield element("p", f"Simulated by trio-sched {__version__}; {lasted} of the cluster's time.")
    tiles = (
        element("div", element("b", value), element("span", name), class_="tile") for name, value in facts(outcome)
    )
    yield element("div", *tiles, class_="tiles")
    yield _section("Timeline", timeline(outcome))
    for section in report_sections(outcome, most_rows=_ROWS, every_node=True):
        if section.is_shown:
            drawn = heat_maps(outcome) if section.key == "nodes" else _table(section)
            texts = (element("p", text) for text in (section.left_out, section.note) if text)
            yield _section(section.title, drawn, *texts)
    for one in outcome.explanations:
        yield _section(f"Why: {one.pod}", *map(_part, explanation_parts(one, _NAMES)))


def _section(title: str, *parts: str) -> Markup:
    return element("section", element("h2", title), *parts)


def _part(part: str | Section) -> Markup:
    return element("p", part) if isinstance(part, str) else join(element("h3", part.title), _table(part))


def _table(section: Section) -> Markup:
    heads = list(filter(None, section.heads))
    classes = [{"class_": "number"} if head in section.numbers else {} for head in heads]

    def row(kind: str, cells: list[Any]) -> Markup:
        return element("tr", *(element(kind, _cell(cell), **more) for cell, more in zip(cells, classes, strict=True)))

    head = element("thead", row("th", heads))
    body = element("tbody", *(row("td", cells) for cells in section.shown_rows()))
    return element("div", element("table", head, body), class_="wide")


def _cell(cell: Any) -> str:
    if isinstance(cell, Names):
        more = len(cell.all) - _NAMES
        return ", ".join(cell.all[:_NAMES]) + (f" and {more} more" if more > 0 else "")
    if isinstance(cell, Shown):
        if cell.share is None:
            return cell.text
        width, style = f"width:{min(100 * cell.share, 100):.1f}%", "over" if cell.share > 1 else "within"
        return join(cell.text, element("span", element("i", style=width, class_=style), class_="bar"))
    return join(*(element("div", line) for line in cell)) if isinstance(cell, list) else cell
