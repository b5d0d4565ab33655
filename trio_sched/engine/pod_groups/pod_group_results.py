"""What an attempt to schedule a pod group came to, for each pod and as a whole, and what follows for each pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from attrs import define, evolve, field, frozen

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.pod_groups import Placement
from trio_sched.plugin_api.status import Code, Status, failure

WAITING_ON_PREEMPTION = "pod group is waiting for preemption to complete"


class PodGroupUnschedulable(Exception):
    """The reason of every pod of a group that is not scheduled as a whole."""

    def __str__(self) -> str:
        return "pod group is unschedulable"


def group_unschedulable(*reasons: str) -> Status:
    """The status of a group that is not scheduled."""
    return Status(Code.UNSCHEDULABLE, reasons, PodGroupUnschedulable())


def other_pod_failed(status: Status) -> Status:
    """The status of a group of which a pod failed with *status*, an Error."""
    return failure(f"failed to schedule other pod from a pod group: {error_text(status)}")


def error_text(status: Status) -> str:
    """The text of a status as an error: its reasons count only if it has no error."""
    return status.message if status.error is None else str(status.error)


@frozen(eq=False)
class PodResult:
    """One pod of the group; *placed*, *failed*, or both: then it needs the preemption that was started for it."""

    info: QueuedPodInfo
    placed: ScheduleResult | None = None
    """Where it would run."""
    failed: SchedulingFailure | None = None
    """Why it was not scheduled."""
    wait: PermitWait | None = None
    """What its permit returned, if that was Wait."""

    @property
    def succeeded(self) -> bool:
        """Whether it was placed and needs no preemption."""
        return self.failed is None

    @property
    def permit_message(self) -> str:
        """The text of the status of permit."""
        if self.wait is None:
            return ""
        reasons = [self.wait.message] if self.wait.message else []
        return ", ".join([*reasons, "one or more plugins asked to wait and no plugin rejected pod"])


@frozen(kw_only=True)
class PlacementResult:
    """A placement that the group does not fit in."""

    name: str
    fitting: int
    """How many of its pods fit there at once."""
    shortage: str
    """What the next one lacked."""


@define(eq=False)
class GroupResult:
    """The group as a whole."""

    status: Status | None
    """None: its feasible pods are to be bound."""
    pods: list[PodResult] = field(factory=list)
    """In the order of the attempt; of a group that failed there can be fewer than it has."""
    waiting_on_preemption: bool = False
    """Unschedulable until victims have left."""
    nominations: Mapping[str, str] | None = None
    """While it waits on a preemption for the whole group: UID → node, where its pods will fit; others keep theirs."""
    victims: Sequence[Pod] = ()
    """What is evicted for the whole group."""
    tells_members: bool = False
    """Whether pods that fit are told why the group is not scheduled, and not only what permit has said."""
    placement: Placement = field(factory=Placement)
    shortage: str = ""
    """What the first pod lacked that fits nowhere; empty if all pods fit."""
    fitting: int = 0
    """How many pods fit there at once."""
    tried: tuple[PlacementResult, ...] = ()
    """The placements that were tried, if there is one at least and the group fits in none."""

    @property
    def is_error(self) -> bool:
        """Whether it failed, as opposed to having been rejected."""
        return self.status is not None and not self.status.is_rejected


@define(eq=False)
class TreeResult(GroupResult):
    """A composite group as a whole; *fitting* counts pods of the children that are schedulable."""

    children: list[GroupResult] = field(factory=list)
    """The results of its child groups, in their order; fewer than it has if the others were not tried."""


@frozen(eq=False)
class GroupPart:
    """What an attempt came to for one pod group of it."""

    key: str
    """``namespace/name``."""
    infos: list[QueuedPodInfo]
    """Its pods."""
    result: GroupResult


def completed(result: GroupResult, infos: Sequence[QueuedPodInfo]) -> GroupResult:
    """*result*, not a success, with the status of the group for each pod of *infos* that was not tried."""
    assert result.status is not None
    untried = infos[len(result.pods) :]
    failed = SchedulingFailure(result.status, nominated_node_name=None)
    return evolve(result, pods=[*result.pods, *(PodResult(info, failed=failed) for info in untried)])


@frozen(eq=False)
class PodToBind:
    """To be assumed, reserved and permitted for real, and bound."""

    info: QueuedPodInfo
    placed: ScheduleResult


@frozen(eq=False)
class PodToRequeue:
    """To be put back into the queue."""

    info: QueuedPodInfo
    outcome: SchedulingFailure


def outcomes(infos: list[QueuedPodInfo], result: GroupResult) -> Iterator[PodToBind | PodToRequeue]:
    """What follows for each pod of the attempt.

    Args:
        infos: the pods of the attempt.
        result: what it came to.

    Source: the table of outcomes of the pod group cycle of kube-scheduler 1.36.
    """
    group = result.status
    for position, info in enumerate(infos):
        pod = result.pods[position] if position < len(result.pods) else None
        if group is None:
            assert pod is not None, "a group that succeeds has a result for each pod"
            if pod.failed is None and pod.placed is not None:
                yield PodToBind(info, pod.placed)
            elif pod.failed is not None:
                yield PodToRequeue(info, pod.failed)
        else:
            yield PodToRequeue(info, _why(info, group, result, pod))


def _why(info: QueuedPodInfo, group: Status, result: GroupResult, pod: PodResult | None) -> SchedulingFailure:
    """Why the pod of a group that is not scheduled is not."""
    failed = None if pod is None else pod.failed
    if result.is_error:
        is_own = failed is not None and not failed.status.is_rejected
        return evolve(failed, nominated_node_name="") if failed is not None and is_own else SchedulingFailure(group)
    if result.nominations is not None:
        known = result.nominations.get(info.uid)
        own = failed or SchedulingFailure(group, nominated_node_name=None)
        return own if known is None else evolve(own, nominated_node_name=known)
    if pod is None:
        return SchedulingFailure(group, nominated_node_name=None)
    if pod.placed is None or (failed is not None and result.waiting_on_preemption):
        assert failed is not None
        return failed
    if result.waiting_on_preemption:
        return SchedulingFailure(group, nominated_node_name=pod.placed.node_name)
    return SchedulingFailure(group if result.tells_members else group_unschedulable(pod.permit_message))
