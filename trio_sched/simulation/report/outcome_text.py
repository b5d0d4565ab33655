"""An `Outcome` as tables for the terminal; large clusters are summarised."""

from collections.abc import Iterator
from typing import Any, Final

from rich.console import RenderableType

from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.explanation import explanation_parts
from trio_sched.simulation.report.sections import Names, Section, Shown, report_sections
from trio_sched.simulation.tables import line, table
from trio_sched.simulation.units import duration

_EXAMPLES: Final = 3
_EXPLAINED_NODES: Final = 5
_WIDTH: Final = 100
_ROWS: Final = 50
"""The most rows of workloads, reasons and preemptions."""


def outcome_as_tables(
    outcome: Outcome, *, every_pod: bool, every_node: bool, width: int = _WIDTH
) -> Iterator[RenderableType]:
    """*outcome* as tables: nodes, placements, evictions and so on.

    Args:
        outcome: what to show.
        every_pod: also list where each pod is, instead of summing them up by workload only.
        every_node: list all nodes, however many there are.
        width: columns after which the lines of explanations break.
    """
    for section in report_sections(outcome, most_rows=_ROWS, every_pod=every_pod, every_node=every_node):
        yield from section_as_table(section)
    for one in outcome.explanations:
        yield line("")
        for part in explanation_parts(one, None if every_node else _EXPLAINED_NODES, width):
            if isinstance(part, str):
                yield from map(line, part.splitlines())
            else:
                yield _table(part)
    yield from _summary(outcome)


def section_as_table(section: Section) -> Iterator[RenderableType]:
    """*section* with a line about what is left out; nothing if it is not to be shown."""
    if section.is_shown:
        yield _table(section)
        if section.left_out:
            yield line("; ".join(filter(None, (section.left_out, section.option))))


def _table(section: Section) -> RenderableType:
    heads = {head: head if "/" in head else head.upper() for head in section.heads if head}
    found = table(section.title, *heads.values(), right=tuple(heads[head] for head in section.numbers if head))
    for cells in section.shown_rows():
        found.add_row(*map(_cell, cells))
    return found


def _cell(cell: Any) -> Any:
    if isinstance(cell, Names):
        return [*cell.all[:_EXAMPLES], *(["…"] if len(cell.all) > _EXAMPLES else [])]
    return cell.text if isinstance(cell, Shown) else cell


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
