"""A `Comparison` as tables, and as plain data; ``docs/reference/comparison.schema.json`` describes these."""

from collections.abc import Iterator
from typing import Final

from rich.console import RenderableType

from trio_sched.documents.json_values import Json
from trio_sched.simulation.comparison import Comparison
from trio_sched.simulation.report.comparison_sections import VERDICTS, comparison_sections, only_on_one_side
from trio_sched.simulation.report.outcome_data import outcome_as_data
from trio_sched.simulation.report.outcome_text import section_as_table
from trio_sched.simulation.tables import line

VERSION: Final = 1
"""The version of the data, which grows like that of outcomes."""
_ROWS: Final = 50


def comparison_as_tables(
    comparison: Comparison, names: tuple[str, str], *, every_pod: bool
) -> Iterator[RenderableType]:
    """*comparison* side by side, then what has moved.

    Args:
        comparison: what to show.
        names: what each side is, in words.
        every_pod: show all pods that have moved, however many.
    """
    for section in comparison_sections(comparison, names, most_rows=None if every_pod else _ROWS):
        yield from section_as_table(section)
    yield from map(line, only_on_one_side(comparison, _ROWS))
    yield line(VERDICTS[comparison.verdict])


def comparison_as_data(comparison: Comparison) -> Json:
    """*comparison* for JSON and YAML, both outcomes included."""
    sections = comparison_sections(comparison, ("", ""), most_rows=None)
    return {
        "version": VERSION,
        "verdict": comparison.verdict.value,
        **{section.key: section.data() for section in sections if section.keys},
        "onlyFirst": list(comparison.only_first),
        "onlySecond": list(comparison.only_second),
        "first": outcome_as_data(comparison.first),
        "second": outcome_as_data(comparison.second),
    }
