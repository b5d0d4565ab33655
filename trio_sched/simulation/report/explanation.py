"""An `Explanation` as sentences and sections, from which tables and the page are drawn, and as plain data."""

from collections.abc import Iterator, Sequence
from typing import Any

from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.simulation.explanations import Explanation
from trio_sched.simulation.report.sections import Section

Json = dict[str, Any]


def explanation_parts(one: Explanation, most_names: int | None) -> Iterator[str | Section]:
    """*one* as sentences, the title first, and sections; with *most_names* nodes for each reason."""
    of = one.of
    where = f"is on node {one.node}; this is what plugins say without it there" if one.node else "is pending"
    yield f"Pod {one.pod} {where}"
    if of.rejected is not None:
        yield f"{of.rejected.plugin} rejects it at {of.rejected_at}, for all nodes: {of.rejected.message}"
    if of.narrowed_by and of.left_out:
        yield f"{', '.join(of.narrowed_by)} left out at PreFilter: {_some(of.left_out, most_names)}"
    if of.verdicts:
        yield _verdicts(of, most_names)
    if of.nominated:
        yield f"Kept for pods that are nominated there: {_some(of.nominated, most_names)}"
    if of.best:
        yield _scores(one)
    if of.error:
        yield f"A plugin failed: {of.error}"


def _verdicts(of: PodExplanation, most_names: int | None) -> Section:
    rows: list[tuple[str, str, str | list[str]]] = []
    for verdict in of.verdicts:
        if verdict.is_skipped:
            rows.append((verdict.plugin, "all", "nothing to check for this pod"))
            continue
        lines = [
            f"{len(one.nodes)} {one.status.message or one.status.code.label}: {_some(one.nodes, most_names)}"
            for one in verdict.rejections
        ]
        if verdict.error:
            lines.append(f"failed: {verdict.error}")
        rows.append((verdict.plugin, str(verdict.passed), lines or "-"))
    title = f"Filters ({of.feasible} of {of.nodes} nodes pass all)"
    return Section("filters", title, ("Plugin", "Pass", "Rejected"), ("",) * 3, rows, numbers=("Pass",))


def _scores(one: Explanation) -> Section:
    of = one.of
    rows: list[tuple[str, int, str]] = []
    for score in of.best:
        parts = ", ".join(f"{plugin} {points}×{of.weights[plugin]}" for plugin, points in score.scores.items())
        rows.append((f"{score.node} *" if score.node == one.node else score.node, score.total, parts))
    title = f"Scores of the best {len(of.best)} of {of.feasible} nodes (score × weight)"
    return Section("best", title, ("Node", "Total", "Scores"), ("",) * 3, rows, numbers=("Total",))


def _some(nodes: Sequence[str], most_names: int | None) -> str:
    shown = nodes[:most_names]
    return ", ".join(shown) + (", …" if len(shown) < len(nodes) else "")


def explanation_as_data(one: Explanation) -> Json:
    """*one* for JSON and YAML."""
    of = one.of
    return {
        "pod": one.pod,
        "node": one.node or None,
        "rejected": None
        if of.rejected is None
        else {"plugin": of.rejected.plugin, "extensionPoint": of.rejected_at, "reasons": list(of.rejected.all_reasons)},
        "leftOut": {"plugins": list(of.narrowed_by), "nodes": list(of.left_out)},
        "filters": [
            {
                "plugin": verdict.plugin,
                "skipped": verdict.is_skipped,
                "passed": verdict.passed,
                "rejected": [
                    {
                        "reasons": list(group.status.all_reasons),
                        "code": group.status.code.label,
                        "nodes": list(group.nodes),
                    }
                    for group in verdict.rejections
                ],
                "error": verdict.error or None,
            }
            for verdict in of.verdicts
        ],
        "nominated": list(of.nominated),
        "feasible": of.feasible,
        "best": [
            {
                "node": score.node,
                "total": score.total,
                "scores": [
                    {"plugin": plugin, "score": points, "weight": of.weights[plugin]}
                    for plugin, points in score.scores.items()
                ],
            }
            for score in of.best
        ],
        "error": of.error or None,
    }
