"""One pod on the nodes as they are: which are best, and what the node is worth that the other scheduler chose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import field, frozen

from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.host_selection import best_positions
from trio_sched.engine.evaluation.scheduling_cycle import FeasibleNodes
from trio_sched.engine.evaluation.scoring import Scores
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status

MAX_BEST: Final = 32
"""So many of the best nodes are named."""


@frozen(kw_only=True)
class Evaluation:
    """What the plugins say of a pod."""

    best: tuple[str, ...] = ()
    """The nodes with the highest score, `MAX_BEST` at most; none if no node fits."""
    is_best: bool = False
    """Whether the node in question is one of them."""
    ties: int = 0
    """How many nodes have the highest score."""
    own_total: int | None = None
    """That score; None if only one node fits: it is not scored."""
    total: int | None = None
    """The score of the node in question; None if the pod does not fit there."""
    better: int = 0
    """How many nodes have a higher one."""
    feasible: int = 0
    candidates: int = 0
    """The nodes that were filtered."""
    scores: Mapping[str, int] = field(factory=dict)
    own_scores: Mapping[str, int] = field(factory=dict)
    rejection: Status | None = None
    """Why the pod does not fit on the node in question; None if it does, or nothing was found out about it."""
    unplaced: SchedulingFailure | None = None
    """Why no node fits."""

    @property
    def gap(self) -> float:
        """How far the node in question is from being one of the best; 0 if it is."""
        if self.is_best:
            return 0
        return float("inf") if self.total is None or self.own_total is None else self.own_total - self.total

    @property
    def plugin(self) -> str:
        """The plugin that decides against the node in question."""
        if self.total is None:
            return "" if self.rejection is None else self.rejection.plugin
        against = {name: score - self.scores.get(name, 0) for name, score in self.own_scores.items()}
        return max(against, key=lambda name: against[name], default="")


def evaluate(scheduler: Scheduler, pod: Pod, node_name: str) -> Evaluation:
    """Evaluate *pod*, which is on no node, with the node *node_name* in question, or none.

    Raises:
        HookFailed: a plugin failed.
    """
    cycle = scheduler.trial_cycle(pod)
    found = cycle.find_feasible()
    if isinstance(found, SchedulingFailure):
        rejection = None
        if node_name and found.diagnosis is not None:
            rejection = found.diagnosis.statuses.get(node_name)
        return Evaluation(
            rejection=rejection, unplaced=SchedulingFailure(found.status, found.diagnosis, state=cycle.state)
        )
    nodes = found.nodes
    position = nodes.position(node_name)
    candidates = len(found.outcome.nodes)
    if len(nodes) == 1:
        return Evaluation(
            best=(nodes.name(0),),
            is_best=position == 0,
            ties=1,
            feasible=1,
            candidates=candidates,
            rejection=None if position == 0 else _rejection(found, node_name),
        )
    scores = cycle.prioritize(nodes)
    best = best_positions(scores.totals)
    own_total = int(scores.totals[best[0]])
    total = None if position is None else int(scores.totals[position])
    return Evaluation(
        best=tuple(map(nodes.name, best[:MAX_BEST].tolist())),
        is_best=total == own_total,
        ties=len(best),
        own_total=own_total,
        total=total,
        better=0 if total is None else int((scores.totals > total).sum()),
        feasible=len(nodes),
        candidates=candidates,
        scores={} if position is None else _of_plugins(scores, position),
        own_scores=_of_plugins(scores, int(best[0])),
        rejection=_rejection(found, node_name) if position is None and node_name else None,
    )


def _of_plugins(scores: Scores, position: int) -> dict[str, int]:
    return {name: int(of[position]) * scores.weights[name] for name, of in scores.normalized.items()}


def _rejection(found: FeasibleNodes, node_name: str) -> Status | None:
    position = found.outcome.nodes.position(node_name)
    return found.statuses.absent if position is None else found.outcome.status(position)
