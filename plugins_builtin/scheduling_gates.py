"""SchedulingGates: pods with scheduling gates are not scheduled."""

from collections.abc import Iterable
from typing import Any, ClassVar

from trio_sched.plugin_api import (
    Action,
    EventRegistration,
    Handle,
    Hint,
    Pod,
    Resource,
    Status,
    hookimpl,
    on,
    unresolvable,
)


class SchedulingGates:
    """Gates a pod until its ``spec.schedulingGates`` are removed."""

    name: ClassVar[str] = "SchedulingGates"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Reject a pod that has gates."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """The gates of the pod itself are removed."""
        return [on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_of_this_pod_eliminated)]


def _gates_of_this_pod_eliminated(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
