"""An `Explanation` as text and a section, from which tables and the page are drawn, and as plain data."""

from collections.abc import Iterator, Sequence

from trio_sched.documents.json_values import Json
from trio_sched.engine.evaluation.pod_explanation import PodExplanation
from trio_sched.explanation.text import Layout, explanation_text
from trio_sched.simulation.explanations import Explanation
from trio_sched.simulation.report.sections import Section


def explanation_parts(one: Explanation, most_names: int | None, width: int) -> Iterator[str | Section]:
    """*one* as text and a section with what every plugin says, with *most_names* nodes for each reason."""
    yield explanation_text(one.why, Layout(width=width, every_node=most_names is None)).rstrip()
    if one.of.verdicts:
        yield _verdicts(one.of, most_names)
    if one.of.error:
        yield f"A plugin failed: {one.of.error}"


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
        "why": one.why,
    }
