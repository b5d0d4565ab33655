"""What became of comparing one decision of the other scheduler: a class, and what led to it."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.objects.pod import Pod

MAX_LISTED: Final = 1000
"""So many of the decisions that are not the same are kept, the newest."""


class JudgementClass(StrEnum):
    """How the two decisions relate."""

    SAME = "same"
    """There is no other best node, or both find none."""
    TIE = "tie"
    """Several nodes are best, and the other's is one of them."""
    SAMPLING = "sampling"
    """The better nodes may be among those that kube-scheduler does not look at in a cluster of this size."""
    STALE = "stale"
    """The same, a tie or sampling once changes count that crossed the decision, or do not count."""
    DIFFERS = "differs"
    """Nothing of that explains it."""
    UNJUDGED = "unjudged"
    """It was not compared: a plugin failed, too much waited, or states were missed."""


class DecisionKind(StrEnum):
    """What the other scheduler did with a pod."""

    BINDING = "binding"
    """It chose a node on which the pod fits."""
    PREEMPTION = "preemption"
    """It nominated the pod to a node, for whose pods of lower priority there is no room any more."""
    REFUSAL = "refusal"
    """It found no node."""


@frozen(kw_only=True)
class OtherDecision:
    """A decision of the other scheduler, as a watch has shown it."""

    kind: DecisionKind
    pod: Pod
    """As it was before: on no node."""
    node_name: str = ""
    """The node that was chosen; empty if none was."""
    message: str = ""
    """Why none was."""
    is_expected: bool = False
    """The pod is not bound yet: it is nominated to the node while something is prepared there."""


@frozen(kw_only=True)
class Judgement:
    """A decision with its class."""

    decision: OtherDecision
    judged: JudgementClass
    own_nodes: tuple[str, ...] = ()
    """The best nodes, some of them; none if no node fits."""
    total: int | None = None
    """The score of the other's node; None if the pod does not fit there, or nothing is scored."""
    own_total: int | None = None
    """The score of the best nodes."""
    scores: Mapping[str, int] = field(factory=dict)
    """Plugin → its weighted score of the other's node."""
    own_scores: Mapping[str, int] = field(factory=dict)
    """Plugin → its weighted score of the first of the best nodes."""
    plugin: str = ""
    """The plugin that decides: it rejects the other's node, or prefers the best node the most."""
    crossed: tuple[str, ...] = ()
    """The changes that crossed the decision, in words."""
    stale_views: tuple[str, ...] = ()
    """The views that they were missing from: ``other``, ``shadow``."""
    detail: str = ""
    """What else there is to say."""

    def as_fields(self) -> dict[str, Any]:
        """For a log line, the page and the report; what is empty is left out."""
        decision = self.decision
        found: dict[str, Any] = {
            "pod": decision.pod.key,
            "profile": decision.pod.scheduler_name,
            "decision": str(decision.kind),
            "class": str(self.judged),
            "node": decision.node_name,
            "shadowNodes": list(self.own_nodes),
            "score": self.total,
            "shadowScore": self.own_total,
            "plugin": self.plugin,
            "scores": dict(self.scores),
            "shadowScores": dict(self.own_scores),
            "staleViews": list(self.stale_views),
            "crossed": list(self.crossed),
            "condition": decision.message,
            "detail": self.detail,
        }
        return {name: value for name, value in found.items() if value not in ("", None, [], {})}


@define(eq=False)
class Judgements:
    """Counts all judgements, and keeps the last of those that are not the same."""

    counts: Counter[tuple[str, DecisionKind, JudgementClass]] = field(factory=Counter)
    """(profile, kind, class) → decisions."""
    listed: deque[Judgement] = field(factory=lambda: deque(maxlen=MAX_LISTED))

    def add(self, judgement: Judgement) -> None:
        """Count *judgement*."""
        decision = judgement.decision
        self.counts[decision.pod.scheduler_name, decision.kind, judgement.judged] += 1
        if judgement.judged is not JudgementClass.SAME:
            self.listed.append(judgement)

    def count(self, classes: Iterable[JudgementClass]) -> int:
        """How many decisions are of one of *classes*."""
        wanted = set(classes)
        return sum(count for (_profile, _kind, judged), count in self.counts.items() if judged in wanted)

    def by_class(self, kind: DecisionKind) -> dict[JudgementClass, int]:
        """The decisions of *kind* in every class."""
        found = dict.fromkeys(JudgementClass, 0)
        for (_profile, counted, judged), count in self.counts.items():
            if counted is kind:
                found[judged] += count
        return found

    def counted(self) -> dict[str, Any]:
        """The counts, for the page and the report."""
        return {
            "decisions": sum(self.counts.values()),
            "classes": {str(one): self.count([one]) for one in JudgementClass},
            "byDecision": {
                str(kind): {str(judged): count for judged, count in self.by_class(kind).items()}
                for kind in DecisionKind
            },
        }
