"""SchedulingGates: pods with scheduling gates are not scheduled."""

from collections.abc import Iterable
from functools import partial
from typing import Any, ClassVar

from trio_sched.plugin_api import (
    Action,
    BoolArray,
    Change,
    Clause,
    EventRegistration,
    Handle,
    Hint,
    Pod,
    Resource,
    Status,
    edit_pod,
    hookimpl,
    on,
    replace_fields,
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
    def clauses(self, pod: Pod) -> Iterable[Clause]:
        """Each gate."""
        for gate in pod.spec.scheduling_gates or ():
            yield Clause(
                reason="SchedulingGated",
                title=f"scheduling gate {gate.name}",
                cause=f"the scheduling gate {gate.name} is there; whoever has set it removes it",
                changes=partial(_without_gate, pod, gate.name),
            )

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """The gates of the pod itself are removed."""
        return [on(Resource.POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _gates_of_this_pod_eliminated)]


def _without_gate(pod: Pod, name: str, _nodes: BoolArray) -> Iterable[Change]:
    def removed(one: Pod) -> Pod:
        gates = tuple(gate for gate in one.spec.scheduling_gates or () if gate.name != name)
        return replace_fields(one, spec=replace_fields(one.spec, scheduling_gates=gates or None))

    yield Change(title=f"remove the scheduling gate {name}", edits=(edit_pod(pod, removed),))


def _gates_of_this_pod_eliminated(pod: Pod, old: Any, new: Any) -> Hint:
    return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
