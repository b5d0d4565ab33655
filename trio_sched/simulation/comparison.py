"""Two outcomes of the same pods: which of them are elsewhere, and why."""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import partial
from typing import Final

from attrs import evolve, frozen

from trio_sched.engine.evaluation.pod_explanation import NodeScore, PodExplanation
from trio_sched.simulation.explanations import Explanation
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.simulated_run import Plan

EXPLAINED: Final = 200
"""So many pods that have moved are explained at most."""


class Verdict(Enum):
    """How the second outcome compares with the first."""

    SAME = "same"
    DIFFERENT = "different"
    """Pods are elsewhere, but no fewer have a node."""
    WORSE = "worse"
    """Fewer pods have a node."""


@frozen(kw_only=True)
class Move:
    """A pod that is not where it was."""

    pod: str
    """``namespace/name``."""
    first: str
    """The node; empty if it was pending."""
    second: str
    why: str
    """Empty if it is not explained, because many have moved."""


@frozen(kw_only=True)
class Comparison:
    """What differs between two outcomes."""

    first: Outcome
    second: Outcome
    moves: tuple[Move, ...]
    only_first: tuple[str, ...]
    """Pods that exist only at the end of the first."""
    only_second: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """How the second compares with the first."""
        if len(self.second.placements) < len(self.first.placements):
            return Verdict.WORSE
        return Verdict.DIFFERENT if self.moves or self.only_first or self.only_second else Verdict.SAME


def nodes_of_pods(outcome: Outcome) -> dict[str, str]:
    """``namespace/name`` → its node, or empty."""
    nodes = {pod: "" for group in outcome.waiting for pod in group.pods}
    return nodes | {f"{placement.namespace}/{placement.pod}": placement.node for placement in outcome.placements}


def moved_pods(first: Outcome, second: Outcome) -> dict[str, tuple[str, str]]:
    """The pods of both that are elsewhere → their nodes; those that have lost theirs come first."""
    before, after = nodes_of_pods(first), nodes_of_pods(second)
    moved = {pod: (node, after[pod]) for pod, node in before.items() if pod in after and after[pod] != node}
    return dict(sorted(moved.items(), key=lambda item: (bool(item[1][1]), item[0])))


def compare_plans(first: Plan, second: Plan, run: Callable[[Plan], Outcome]) -> Comparison:
    """Simulate both with *run*; the pods that have moved are explained at the end of the second."""
    outcome = run(first)
    return compare_outcomes(
        outcome, run(evolve(second, explained=partial(_to_explain, outcome), explains_placements=True))
    )


def _to_explain(first: Outcome, second: Outcome) -> dict[str, tuple[str, ...]]:
    """The pods to explain at the end of the second run, with their nodes; none of schedulers that are not simulated."""
    others = {pod for group in second.waiting if group.reason == "OtherScheduler" for pod in group.pods}
    moved = [(pod, nodes) for pod, nodes in moved_pods(first, second).items() if pod not in others]
    return {pod: tuple(node for node in nodes if node) for pod, nodes in moved[:EXPLAINED]}


def compare_outcomes(first: Outcome, second: Outcome) -> Comparison:
    """What differs, with the reasons that the explanations of *second* give."""
    explanations = {one.pod: one for one in second.explanations}
    nodes = frozenset(report.name for report in second.nodes)
    before, after = nodes_of_pods(first), nodes_of_pods(second)
    messages = _messages(first), _messages(second)
    moves = (
        Move(pod=pod, first=old, second=new, why=_why(pod, old, new, nodes, messages, explanations.get(pod)))
        for pod, (old, new) in moved_pods(first, second).items()
    )
    return Comparison(
        first=first,
        second=second,
        moves=tuple(moves),
        only_first=tuple(sorted(before.keys() - after.keys())),
        only_second=tuple(sorted(after.keys() - before.keys())),
    )


def _messages(outcome: Outcome) -> dict[str, str]:
    return {pod: group.message or group.reason for group in outcome.waiting for pod in group.pods}


def _why(
    pod: str,
    old: str,
    new: str,
    nodes: frozenset[str],
    messages: tuple[Mapping[str, str], Mapping[str, str]],
    explanation: Explanation | None,
) -> str:
    if not old:
        return f"was pending: {messages[0].get(pod, '')}"
    if old not in nodes:
        gone = f"there is no node {old}"
        return gone if new else f"{gone}; {messages[1].get(pod, '')}"
    if explanation is None:
        return "" if new else messages[1].get(pod, "")
    found = list(rejections(explanation.of, old))
    if found:
        return f"{old}: {'; '.join(found)}"
    return score_difference(explanation.of, old, new) if new else messages[1].get(pod, "")


def rejections(of: PodExplanation, node: str) -> Iterator[str]:
    """Why the pod cannot be on *node*."""
    if of.error:
        yield f"a plugin failed: {of.error}"
    if of.rejected is not None:
        yield f"{of.rejected.plugin} rejects it everywhere: {of.rejected.message}"
    if node in of.left_out:
        yield f"left out by {', '.join(of.narrowed_by)}"
    for verdict in of.verdicts:
        if verdict.error:
            yield f"{verdict.plugin} failed: {verdict.error}"
        for group in verdict.rejections:
            if node in group.nodes:
                yield f"{verdict.plugin}: {group.status.message or group.status.code.label}"
    if node in of.nominated:
        yield "kept for a pod that is nominated there"


def score_difference(of: PodExplanation, old: str, new: str) -> str:
    """Why *new* is better than *old*, or was; empty if the score of one is not known."""
    scores = {score.node: score for score in of.others}
    if old not in scores or new not in scores:
        return ""
    before, after = scores[old], scores[new]
    if before.total == after.total:
        return f"{old} and {new} have the same score, {after.total}; one of the best is drawn"
    differences = ", ".join(_differences(of, before, after))
    if after.total > before.total:
        return f"{new} scores {after.total}, {old} {before.total}: {differences}"
    return f"was placed at another moment; now {old} would score {before.total}, {new} {after.total}: {differences}"


def _differences(of: PodExplanation, before: NodeScore, after: NodeScore) -> Iterator[str]:
    """Plugin by plugin, the largest difference first."""
    weighted = {name: (after.scores[name] - before.scores[name]) * weight for name, weight in of.weights.items()}
    for name, difference in sorted(weighted.items(), key=lambda item: -abs(item[1])):
        if difference:
            yield f"{name} {difference:+}"
