"""A pod that is pending at the end and fits a node by then: the outcome says so, and whose events did not move it."""

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve
from plans import plan_with
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.config.feature_gates import resolve_feature_gates
from trio_sched.plugin_api import (
    Action,
    CycleState,
    EventRegistration,
    NodeView,
    Pod,
    Resource,
    Status,
    Wait,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.simulation.outcome import Waiting
from trio_sched.simulation.report.outcome_data import outcome_as_data
from trio_sched.simulation.report.outcome_page import outcome_as_page
from trio_sched.simulation.simulated_run import run_simulation


class OpensLater(PluginBase):
    """Rejects in the first five seconds, for a reason that no event ends."""

    @property
    def is_closed(self) -> bool:
        return self.handle.wall_seconds() % 3600 < 5

    @hookimpl
    def events_to_register(self) -> Sequence[EventRegistration]:
        return [on(Resource.STORAGE_CLASS, Action.ADD)]


class FilterOpensLater(OpensLater):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return unschedulable("closed") if self.is_closed else None


class GateOpensLater(OpensLater):
    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("closed") if self.is_closed else None


class NeverFits(OpensLater):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return unschedulable("closed for ever")


class PermitRefuses(OpensLater):
    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        return unschedulable("not permitted")


class PermitWaits(OpensLater):
    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Any:
        return Wait(3000.0)


class Fails(OpensLater):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        raise ValueError("boom")


class AsksForAnotherTime(OpensLater):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        if self.is_closed:
            self.handle.retry_after(pod, 2000.0)
            return unschedulable("closed")
        return None


async def waiting(plugin: type[PluginBase], *, for_seconds: float | None = 100.0) -> Waiting:
    plan = evolve(plan_with(plugin), for_seconds=for_seconds)
    outcome = await run_simulation(plan, lambda _decided, _all: None)
    (one,) = outcome.waiting
    assert outcome_as_data(outcome)["pending"] == [
        {"reason": one.reason, "message": one.message, "note": one.note, "pods": list(one.pods)}
    ]
    assert one.note in outcome_as_page(outcome)
    return one


@pytest.mark.parametrize("for_seconds", [None, 100.0])
async def test_a_filter_that_passes_now_and_registered_no_event_for_that_is_named(
    for_seconds: float | None, autojump_clock: MockClock
) -> None:
    found = await waiting(FilterOpensLater, for_seconds=for_seconds)
    assert found.message.startswith("0/1 nodes are available: 1 closed.")
    assert found.note == (
        "fits n now; FilterOpensLater rejected it, and no event that FilterOpensLater registered has moved it since; "
        "it is tried again 300 s after the last attempt"
    )


async def test_a_gate_that_is_open_now_is_named(autojump_clock: MockClock) -> None:
    found = await waiting(GateOpensLater)
    assert found.reason == "Gated"
    assert found.note == (
        "GateOpensLater lets it into the queue now, but no event that GateOpensLater registered has moved it since"
    )


@pytest.mark.parametrize("plugin", [NeverFits, PermitRefuses, PermitWaits, Fails, AsksForAnotherTime])
async def test_pods_that_do_not_fit_or_wait_for_something_else_have_no_such_note(
    plugin: type[PluginBase], autojump_clock: MockClock
) -> None:
    assert (await waiting(plugin)).note == ""


async def test_members_of_a_gang_wait_for_each_other(autojump_clock: MockClock) -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 2}}},
    }
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "3"}}}
    spec = {"containers": [container], "schedulingGroup": {"podGroupName": "g"}}
    members = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
        for name in ("one", "two")
    ]
    gates = resolve_feature_gates(["GenericWorkload=true", "GangScheduling=true"])
    outcome = await run_simulation(plan_with(None, group, *members, gates=gates), lambda _decided, _all: None)
    assert sorted((one.pods, one.note) for one in outcome.waiting) == [(("default/one",), ""), (("default/two",), "")]
