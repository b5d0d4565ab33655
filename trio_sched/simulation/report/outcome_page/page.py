"""The page of one simulation: what was simulated, what is pending, when what happened, the nodes as a map, the rest."""

from collections.abc import Iterator, Sequence
from typing import Final

from trio_sched import __version__
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.explanation import explanation_parts
from trio_sched.simulation.report.outcome_page.document import (
    MOST_NAMES,
    MOST_ROWS,
    document,
    drawn_section,
    section,
    table,
    terms,
    tiles,
)
from trio_sched.simulation.report.outcome_page.heat_map import heat_maps
from trio_sched.simulation.report.outcome_page.markup import Markup, element, join
from trio_sched.simulation.report.outcome_page.timeline import timeline
from trio_sched.simulation.report.sections import Section, facts, report_sections
from trio_sched.simulation.units import duration

_WIDTH: Final = 120
"""Columns of the text of explanations."""
PROBLEMS: Final = ("pending", "notCreated")
"""The sections that a reader looks for first."""


def outcome_as_page(outcome: Outcome, inputs: Sequence[tuple[str, str]] = ()) -> str:
    """*outcome* as a whole document; *inputs* say what was simulated, as names and values."""
    title = f"{len(outcome.nodes)} nodes, {len(outcome.placements) + outcome.waiting_pods} pods: what becomes of them"
    return document(title, _parts(outcome, inputs), choices=len(outcome.resources) + 1)


def simulated(outcome: Outcome) -> Markup:
    """By what, and for how long."""
    return element(
        "p", f"Simulated by trio-sched {__version__}; {duration(outcome.simulated_seconds)} of the cluster's time."
    )


def _parts(outcome: Outcome, inputs: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    yield simulated(outcome)
    yield terms(inputs)
    yield tiles(facts(outcome))
    shown = [one for one in report_sections(outcome, most_rows=MOST_ROWS, every_node=True) if one.is_shown]
    yield from (drawn_section(one) for key in PROBLEMS for one in shown if one.key == key)
    yield section("Timeline", timeline(outcome))
    for one in shown:
        if one.key not in PROBLEMS:
            yield drawn_section(one, drawn=heat_maps(outcome) if one.key == "nodes" else None)
    for explained in outcome.explanations:
        yield section(f"Why: {explained.pod}", *map(_part, explanation_parts(explained, MOST_NAMES, _WIDTH)))


def _part(part: str | Section) -> Markup:
    return element("pre", part) if isinstance(part, str) else join(element("h3", part.title), table(part))
