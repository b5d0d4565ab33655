"""PodGroupPodsCount: prefers placements that more pods of the group fit in."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from trio_sched.plugin_api import (
    CycleState,
    Handle,
    Int64Array,
    PlacementAssignments,
    PodGroupInfo,
    Status,
    failure,
    hookimpl,
)

NAME = "PodGroupPodsCount"


class PodGroupPodsCount:
    """Scores a placement by the pods of the group that have a node, those of this attempt included."""

    name: ClassVar[str] = NAME

    def __init__(self, args: object, handle: Handle) -> None:
        self._handle = handle

    @hookimpl
    def placement_score(self, group: PodGroupInfo, placement: PlacementAssignments, state: CycleState) -> int | Status:
        """How many pods have a node."""
        states = [self._handle.pod_group_state(group.namespace, name) for name in group.group_names]
        known = [state for state in states if state is not None]
        if not known:
            return failure(f"pod group state not found for pod group {group.key}")
        return sum(state.scheduled_count for state in known) + len(placement.assignments)

    @hookimpl
    def normalize_placement_score(
        self, group: PodGroupInfo, scores: Int64Array, state: CycleState
    ) -> Int64Array | Status:
        """Relative to the placement with the most pods, which gets 100."""
        highest = int(np.max(scores, initial=0))
        if highest == 0:
            return failure("no pods from pod group are assigned to any of the candidate placements")
        normalized: Int64Array = scores * 100 // highest
        return normalized
