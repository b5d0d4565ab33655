"""The page of a comparison: what differs, which pods have moved and why, and what is pending on each side."""

from collections.abc import Iterator, Sequence
from typing import Final

from trio_sched.simulation.comparison import Comparison
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.comparison_sections import VERDICTS, comparison_sections, only_on_one_side
from trio_sched.simulation.report.outcome_page.document import MOST_ROWS, document, drawn_section, section, terms
from trio_sched.simulation.report.outcome_page.heat_map import heat_maps
from trio_sched.simulation.report.outcome_page.markup import Markup, element
from trio_sched.simulation.report.outcome_page.page import PROBLEMS, simulated
from trio_sched.simulation.report.sections import report_sections

_ONLY: Final = 200
"""Pods of one side that are listed."""


def comparison_as_page(comparison: Comparison, names: tuple[str, str], inputs: Sequence[tuple[str, str]] = ()) -> str:
    """*comparison* as a whole document.

    Args:
        comparison: what to show.
        names: what each side is, in words.
        inputs: what was simulated, as names and values.
    """
    title = f"{VERDICTS[comparison.verdict]} {len(comparison.moves)} have moved."
    choices = 1 + max(len(side.resources) for side in (comparison.first, comparison.second))
    return document(title, _parts(comparison, names, inputs), choices=choices)


def _parts(comparison: Comparison, names: tuple[str, str], inputs: Sequence[tuple[str, str]]) -> Iterator[Markup]:
    yield simulated(comparison.second)
    yield terms(inputs)
    for one in comparison_sections(comparison, names, most_rows=MOST_ROWS):
        if one.is_shown:
            yield drawn_section(one)
    yield from (element("p", text) for text in only_on_one_side(comparison, _ONLY))
    for side, name in ((comparison.first, "first"), (comparison.second, "second")):
        yield from _problems(side, name)
    for side, name in ((comparison.first, "first"), (comparison.second, "second")):
        if side.nodes:
            yield section(f"Nodes of the {name} (requested of allocatable)", heat_maps(side, group=name))


def _problems(side: Outcome, name: str) -> Iterator[Markup]:
    for one in report_sections(side, most_rows=MOST_ROWS, every_node=True):
        if one.key in PROBLEMS and one.is_shown:
            yield drawn_section(one, f"{one.title} at the end of the {name}")
