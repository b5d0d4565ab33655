"""The outcome of a scheduling cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from attrs import frozen

from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.fit_error import NO_NODES_AVAILABLE, fit_error
from trio_sched.plugin_api.status import Code, Status
from trio_sched.plugin_api.verdicts import Diagnosis

if TYPE_CHECKING:
    from trio_sched.engine.registry.profile import Profile


UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of the condition of a pod that plugins have rejected."""


@frozen(eq=False)
class ScheduleResult:
    """A node was found."""

    node_name: str
    state: CycleState
    evaluated_nodes: int
    feasible_nodes: int
    profile: Profile
    """Its hooks see the attempt through to its end, even if the profiles are exchanged meanwhile."""


@frozen(eq=False)
class SchedulingFailure:
    """No node was found, or the cycle failed.

    *diagnosis* is there if plugins said no; its plugins decide which events bring the pod back. Without it the pod is
    tried again after its backoff.
    """

    status: Status
    diagnosis: Diagnosis | None = None
    nominated_node_name: str | None = ""
    """The pod's nomination from now on: None leaves it, "" clears it."""
    state: CycleState | None = None
    """The cycle state, for post_filter."""

    @property
    def message(self) -> str:
        """The text of the pod's condition and event."""
        return self.status.message

    @property
    def reason(self) -> str:
        """The reason of the pod's condition."""
        return UNSCHEDULABLE if self.status.is_rejected else "SchedulerError"


Decision = ScheduleResult | SchedulingFailure


def no_nodes() -> SchedulingFailure:
    """The cluster is empty."""
    return SchedulingFailure(Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=RuntimeError(NO_NODES_AVAILABLE)))


def fit_failure(
    diagnosis: Diagnosis, *, code: Code = Code.UNSCHEDULABLE, nominated_node_name: str | None = ""
) -> SchedulingFailure:
    """No node fits, for the reasons in *diagnosis*."""
    return SchedulingFailure(Status(code, (fit_error(diagnosis),)), diagnosis, nominated_node_name)
