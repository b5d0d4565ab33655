"""Turns the three plugins that scored nodes by their resources into the scoring strategy of NodeResourcesFit."""

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from trio_sched.config.legacy.changes import Changes, listed
from trio_sched.config.legacy.profile_draft import ProfileDraft

FIT: Final = "NodeResourcesFit"


@frozen
class Strategy:
    """One way of scoring by resources in a document."""

    path: str
    """Where it does so; empty if it is a default."""
    name: str
    """What it was called: a plugin or a priority."""
    type: str
    weight: int
    given: Mapping[str, Any]
    """Its ``resources`` and ``shape``, where given."""


def set_scoring_strategy(strategies: list[Strategy], draft: ProfileDraft, changes: Changes) -> None:
    """Set the scoring strategy of NodeResourcesFit; more than one in *strategies* is a problem."""
    if len(strategies) > 1:
        names = listed([strategy.name for strategy in strategies])
        path = next(strategy.path for strategy in reversed(strategies) if strategy.path)
        why = f"{names} are one plugin today, NodeResourcesFit, which scores in one way only; disable all but one"
        changes.refuse(path, why)
    for strategy in strategies[:1]:
        draft.enable("score", FIT, strategy.weight or 1)
        arguments = _scoring_strategy(strategy)
        if arguments is not None:
            draft.arguments_of(FIT)["scoringStrategy"] = arguments
        if strategy.path:
            became = f"{strategy.name} is scoringStrategy.type {strategy.type} of NodeResourcesFitArgs now"
            changes.note(strategy.path, became)


def _scoring_strategy(strategy: Strategy) -> dict[str, Any] | None:
    """The strategy as v1 has it; None if it is the default one."""
    fields: dict[str, Any] = {"type": strategy.type}
    if resources := strategy.given.get("resources"):
        fields["resources"] = [dict(resource) for resource in resources]
    if strategy.type == "RequestedToCapacityRatio":
        # A point may leave out a coordinate that is 0; the converted text always has both.
        points = [
            {"utilization": point.get("utilization", 0), "score": point.get("score", 0)}
            for point in strategy.given.get("shape") or ()
        ]
        fields["requestedToCapacityRatio"] = {"shape": points}
    return None if fields == {"type": "LeastAllocated"} else fields
