"""The sections of the report of a `Comparison`, from which the tables, the page and the data are drawn."""

from collections.abc import Iterator
from typing import Any, Final

from trio_sched.simulation.comparison import Comparison, Verdict
from trio_sched.simulation.report.sections import Section, Shown, facts
from trio_sched.simulation.units import heading

VERDICTS: Final = {
    Verdict.SAME: "Every pod is where it was.",
    Verdict.DIFFERENT: "Pods are elsewhere; no fewer are placed.",
    Verdict.WORSE: "Fewer pods are placed.",
}
_SIDES: Final = ("First", "Second")


def comparison_sections(comparison: Comparison, names: tuple[str, str], *, most_rows: int | None) -> Iterator[Section]:
    """The sections, in order.

    Args:
        comparison: what to report.
        names: what each side is, in words.
        most_rows: how many pods that have moved there are at most; None: all.
    """
    yield Section(
        "sideBySide",
        "Side by side",
        heads=("What", *_SIDES),
        keys=(),
        rows=[("", *names), *_facts(comparison), *_pools(comparison)],
    )
    moves = comparison.moves
    more = 0 if most_rows is None else len(moves) - most_rows
    yield Section(
        "moved",
        f"Moved: {len(moves)} pods",
        heads=("Pod", *_SIDES, "Why"),
        keys=("pod", "first", "second", "why"),
        rows=[
            (
                move.pod,
                Shown(move.first or "pending", move.first or None),
                Shown(move.second or "pending", move.second or None),
                Shown(move.why or "-", move.why or None),
            )
            for move in moves[:most_rows]
        ],
        left_out=f"and {more} more" if more > 0 else "",
        option="--pods shows all of them",
    )


def only_on_one_side(comparison: Comparison, most: int) -> Iterator[str]:
    """Sentences about pods that are only there at the end of one side, with so many names *most*."""
    for pods, side in ((comparison.only_first, "first"), (comparison.only_second, "second")):
        if pods:
            yield f"Only at the end of the {side}: {', '.join(pods[:most])}{', …' if len(pods) > most else ''}"


def _facts(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    for (what, first), (_what, second) in zip(facts(comparison.first), facts(comparison.second), strict=True):
        yield what, first, second


def _pools(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    pools = [{pool.name: pool for pool in side.pools} for side in (comparison.first, comparison.second)]
    for name in sorted(pools[0].keys() | pools[1].keys()):
        for resource in ("cpu", "memory"):
            shares = [f"{100 * of[name].usage.share(resource):.1f}%" if name in of else "-" for of in pools]
            yield f"pool {name}: {heading(resource)} requested", *shares
            stranded = [of[name].fragmentation.get(resource) if name in of else None for of in pools]
            if any(stranded):
                texts = ("-" if share is None else f"{100 * share:.1f}%" for share in stranded)
                yield f"pool {name}: {heading(resource)} fragmented", *texts
