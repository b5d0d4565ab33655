"""A `Comparison` as tables, and as plain data; ``docs/reference/comparison.schema.json`` describes these."""

from collections.abc import Iterator
from typing import Any, Final

from attrs import asdict
from rich.console import RenderableType
from rich.table import Table

from trio_sched.simulation.comparison import Comparison, Verdict
from trio_sched.simulation.report.outcome_data import outcome_as_data
from trio_sched.simulation.report.sections import facts
from trio_sched.simulation.tables import line, table
from trio_sched.simulation.units import heading

Json = dict[str, Any]

VERSION: Final = 1
"""The version of the data, which grows like that of outcomes."""
_ROWS: Final = 50
_SENTENCES: Final = {
    Verdict.SAME: "Every pod is where it was.",
    Verdict.DIFFERENT: "Pods are elsewhere; no fewer are placed.",
    Verdict.WORSE: "Fewer pods are placed.",
}


def comparison_as_tables(
    comparison: Comparison, names: tuple[str, str], *, every_pod: bool
) -> Iterator[RenderableType]:
    """*comparison* side by side, then what has moved.

    Args:
        comparison: what to show.
        names: what each side is, in words.
        every_pod: show all pods that have moved, however many.
    """
    yield _side_by_side(comparison, names)
    if comparison.moves:
        yield from _moves(comparison, every_pod=every_pod)
    for pods, side in ((comparison.only_first, "first"), (comparison.only_second, "second")):
        if pods:
            some = ", ".join(pods[:_ROWS]) + (", …" if len(pods) > _ROWS else "")
            yield line(f"Only at the end of the {side}: {some}")
    yield line(_SENTENCES[comparison.verdict])


def _side_by_side(comparison: Comparison, names: tuple[str, str]) -> Table:
    rows = table("Side by side", "", "FIRST", "SECOND", right=("FIRST", "SECOND"))
    rows.add_row("", *names)
    for (what, first), (_what, second) in zip(facts(comparison.first), facts(comparison.second), strict=True):
        rows.add_row(what, first, second)
    pools = [{pool.name: pool for pool in side.pools} for side in (comparison.first, comparison.second)]
    for name in sorted(pools[0].keys() | pools[1].keys()):
        for resource in ("cpu", "memory"):
            shares = [f"{100 * of[name].usage.share(resource):.1f}%" if name in of else "-" for of in pools]
            rows.add_row(f"pool {name}: {heading(resource)} requested", *shares)
            stranded = [of[name].fragmentation.get(resource) if name in of else None for of in pools]
            if any(stranded):
                texts = ("-" if share is None else f"{100 * share:.1f}%" for share in stranded)
                rows.add_row(f"pool {name}: {heading(resource)} fragmented", *texts)
    return rows


def _moves(comparison: Comparison, *, every_pod: bool) -> Iterator[RenderableType]:
    rows = table(f"Moved: {len(comparison.moves)} pods", "POD", "FIRST", "SECOND", "WHY")
    shown = comparison.moves if every_pod else comparison.moves[:_ROWS]
    for move in shown:
        rows.add_row(move.pod, move.first or "pending", move.second or "pending", move.why or "-")
    yield rows
    if more := len(comparison.moves) - len(shown):
        yield line(f"and {more} more; --pods shows all of them")


def comparison_as_data(comparison: Comparison) -> Json:
    """*comparison* for JSON and YAML, both outcomes included."""
    moves = [asdict(move) | {"first": move.first or None, "second": move.second or None} for move in comparison.moves]
    return {
        "version": VERSION,
        "verdict": comparison.verdict.value,
        "moved": [move | {"why": move["why"] or None} for move in moves],
        "onlyFirst": list(comparison.only_first),
        "onlySecond": list(comparison.only_second),
        "first": outcome_as_data(comparison.first),
        "second": outcome_as_data(comparison.second),
    }
