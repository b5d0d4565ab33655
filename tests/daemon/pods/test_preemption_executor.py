from functools import partial
from typing import Any

import msgspec
import pytest
import trio
from attrs import define, field
from msgspec.structs import replace
from reporting import ReportingAssembly
from stage import Assemble
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.limits import MAX_PARALLEL_PREEMPTORS
from trio_sched.daemon.pods.preemption_executor import Loss, PreemptionExecutor
from trio_sched.kube_client.pods import patch_pod_status
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.plugin_api import Code, Status
from trio_sched.simulator.storage.object_store import Change as StoreChange
from trio_sched.testing import pod

GRAND = pod("grand", cpu=2, priority=100)
PLUGIN = "DefaultPreemption"


@define(eq=False)
class Preempting(ReportingAssembly):
    """PreemptionExecutor from one node through an API server, and the changes of pods that the server saw."""

    moves: list[tuple[float, str, str]] = field(factory=list)
    """(time, pod, what happened): condition, deletion, removal."""

    def __attrs_post_init__(self) -> None:
        self.store.api.store.collection("pods").listen(self._note)

    def _note(self, change: StoreChange) -> None:
        now, name = round(trio.current_time(), 3), change.current.fields["metadata"]["name"]
        if change.type == "DELETED":
            self.moves.append((now, name, "removal"))
        elif change.type == "MODIFIED":
            before, after = (msgspec.convert(one.fields, Pod) for one in (change.previous, change.current))
            if before.metadata.deletion_timestamp != after.metadata.deletion_timestamp:
                self.moves.append((now, name, "deletion"))
            elif before.status.conditions != after.status.conditions:
                self.moves.append((now, name, "condition"))

    @property
    def executor(self) -> PreemptionExecutor:
        return self.assembly.preemption_executor

    async def running(self, *names: str, seen: bool = True, **more: Any) -> list[Pod]:
        made = [await self.store.create_pod(pod(name, node_name="n", **more)) for name in names]
        for one in made if seen else ():
            self.show("ADDED", None, one)
        return made

    async def preempt(self, *victims: Pod, in_background: bool = True, preemptor: Pod = GRAND) -> Status | None:
        return await self.executor.preempt(preemptor, victims, "n", PLUGIN, Loss(), in_background=in_background)

    async def preempted(self, *victims: Pod) -> None:
        """Evict in the background, and wait until that is done and reported."""
        assert await self.preempt(*victims) is None
        await self.executor.pool.drained()
        await self.reported()

    def going(self, one: Pod) -> Pod:
        """Let the watch of pods show that *one* is terminating."""
        metadata = replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z", resource_version="99")
        changed = replace(one, metadata=metadata)
        self.show("MODIFIED", one, changed)
        return changed

    def what(self) -> list[tuple[str, str]]:
        return [(name, what) for _when, name, what in self.moves]

    def notes(self) -> list[tuple[str, str]]:
        return [(event["involvedObject"]["name"], event["message"]) for event in self.store.events()]


@pytest.fixture
async def preempting(assembled: Assemble, store: Store, nursery: trio.Nursery) -> Preempting:
    made = Preempting(assembled(), store)
    await made.start(nursery)
    nursery.start_soon(made.executor.pool.run)
    return made


# --- through the API server -----------------------------------------------------------------------------------------


async def test_a_victim_gets_a_condition_and_is_deleted_and_an_event_names_the_preemptor(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    await preempting.preempted(low)
    assert preempting.what() == [("low", "condition"), ("low", "deletion")]
    (condition,) = [
        one for one in preempting.store.pod("low")["status"]["conditions"] if one["type"] == "DisruptionTarget"
    ]
    assert (condition["status"], condition["reason"]) == ("True", "PreemptionByScheduler")
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert preempting.notes() == [("low", f"Preempted by pod {GRAND.uid} on node n")]
    (event,) = preempting.store.events()
    assert (event["type"], event["reason"], event["action"]) == ("Normal", "Preempted", "Preempting")


async def test_in_the_background_victims_are_evicted_in_parallel_and_the_last_one_after_them(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    victims = await preempting.running("a", "b", "c")
    assert await preempting.preempt(*victims) is None
    assert trio.current_time() < 0.1  # the scheduling cycle goes on at once
    await preempting.executor.pool.drained()
    deletions = sorted((when, name) for when, name, what in preempting.moves if what == "deletion")
    assert [name for _when, name in deletions] == ["a", "b", "c"]
    times = [when for when, _name in deletions]
    assert times == pytest.approx([1.0, 1.0, 2.0], abs=0.05)
    marked = [when for when, name, what in preempting.moves if (name, what) == ("c", "condition")]
    assert marked == pytest.approx([1.0], abs=0.05)


async def test_in_the_cycle_all_victims_are_evicted_in_parallel_and_awaited(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    victims = await preempting.running("a", "b", "c")
    assert await preempting.preempt(*victims, in_background=False) is None
    assert trio.current_time() == pytest.approx(1.0, abs=0.05)
    assert sorted(name for name, what in preempting.what() if what == "deletion") == ["a", "b", "c"]


async def test_terminating_pods_are_not_evicted_again(preempting: Preempting, autojump_clock: MockClock) -> None:
    low, other = await preempting.running("low", "other")
    await preempting.preempted(preempting.going(low))
    assert preempting.moves == []
    assert not preempting.executor.is_preempting_for(GRAND.uid)
    await preempting.preempted(preempting.going(other), *await preempting.running("third"))
    assert {name for name, _what in preempting.what()} == {"third"}


async def test_a_victim_that_has_the_condition_is_only_deleted(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low", seen=False)
    message = "default-scheduler: preempting to accommodate a higher priority pod"
    condition = PodCondition(
        type="DisruptionTarget",
        status="True",
        reason="PreemptionByScheduler",
        message=message,
        observed_generation=low.metadata.generation or None,
    )
    low = replace(low, status=replace(low.status, conditions=(condition,)))
    preempting.show("ADDED", None, low)
    await preempting.preempted(low)
    assert preempting.what() == [("low", "deletion")]


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_victim_that_does_not_exist_is_no_failure_and_no_event(
    verb: str, preempting: Preempting, autojump_clock: MockClock
) -> None:
    gone, low = await preempting.running("gone", "low")
    preempting.store.api.faults.fail_next(verb=verb, resource="pods", code=404, reason="NotFound")
    await preempting.preempted(gone, low)
    assert [name for name, _text in preempting.notes()] == ["low"]
    assert ("low", "deletion") in preempting.what()


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_victim_that_does_not_exist_does_not_gate_the_preemptor(
    verb: str, preempting: Preempting, autojump_clock: MockClock
) -> None:
    """However long the watch shows it: an answer that is wrong must not gate the preemptor for ever."""
    (gone,) = await preempting.running("gone")
    preempting.store.api.faults.fail_next(verb=verb, resource="pods", code=404, reason="NotFound")
    await preempting.preempted(gone)
    assert not preempting.executor.is_preempting_for(GRAND.uid)
    assert not preempting.executor.is_preempting_on("n")
    await preempting.preempted(gone)
    assert ("gone", "deletion") in preempting.what()


async def test_parallelism_limits_how_many_victims_of_one_preemptor_are_evicted_at_once(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    assert preempting.executor.parallelism == 16
    victims = await preempting.running(*(f"v{number}" for number in range(20)))
    assert await preempting.preempt(*victims, in_background=False) is None
    deletions = sorted(when for when, _name, what in preempting.moves if what == "deletion")
    assert deletions == pytest.approx([1.0] * 16 + [2.0] * 4, abs=0.05)


async def test_more_preemptors_than_eviction_tasks_are_all_served(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    victims = await preempting.running(*(f"v{number}" for number in range(2 * MAX_PARALLEL_PREEMPTORS + 1)))
    for victim in victims:
        assert await preempting.preempt(victim, preemptor=pod(f"for-{victim.name}", priority=100)) is None
    await preempting.executor.pool.drained()
    deletions = sorted(when for when, _name, what in preempting.moves if what == "deletion")
    assert deletions == pytest.approx(sorted([1.0, 2.0] * MAX_PARALLEL_PREEMPTORS + [3.0]), abs=0.1)


# --- failures -------------------------------------------------------------------------------------------------------


def queued(preempting: Preempting, preemptor: Pod = GRAND) -> None:
    """Queue the preemptor as unschedulable."""
    queue = preempting.assembly.scheduler.queue
    preempting.show("ADDED", None, preemptor)
    info = queue.pop()
    assert info is not None
    decision = preempting.assembly.scheduler.decide(info)
    preempting.assembly.schedule_one.failure_handler.handle(info, decision)  # type: ignore[arg-type]


@pytest.mark.parametrize("verb", ["patch", "delete"])
async def test_a_failed_eviction_requeues_the_preemptor_and_spares_the_last_victim(
    verb: str, preempting: Preempting, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    low, last = await preempting.running("low", "last", cpu=2)
    queued(preempting)
    queue = preempting.assembly.scheduler.queue
    assert GRAND.key in queue.unschedulable
    await preempting.reported()
    preempting.store.api.faults.fail_next(verb=verb, resource="pods", code=403, reason="Forbidden", message="not you")
    assert await preempting.preempt(low, last) is None
    assert preempting.executor.is_preempting_for(GRAND.uid)
    await preempting.executor.pool.drained()
    assert not preempting.executor.is_preempting_for(GRAND.uid)
    assert GRAND.key in queue.active
    assert "last" not in {name for name, _what in preempting.what()}
    assert "Error occurred during async preemption" in caplog.text


@pytest.mark.parametrize("in_background", [True, False])
async def test_a_failed_eviction_requeues_every_preemptor_that_needs_one_of_its_victims(
    in_background: bool, preempting: Preempting, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    second, third = pod("second", cpu=2, priority=90), pod("third", cpu=2, priority=80)
    low, _other = await preempting.running("low", "other", cpu=2)
    for preemptor in (GRAND, second, third):
        queued(preempting, preemptor)
    await preempting.reported()
    queue = preempting.assembly.scheduler.queue
    preempting.store.api.faults.set_latency(1, verb="delete")
    preempting.store.api.faults.fail_next(
        verb="delete", resource="pods", code=403, reason="Forbidden", message="not you"
    )
    nursery.start_soon(partial(preempting.preempt, low, in_background=in_background))
    await trio.sleep(0.5)
    assert await preempting.preempt(low, preemptor=second) is None
    assert await preempting.preempt(low, preemptor=third) is None
    assert {second.key, third.key} <= {info.key for info in queue.unschedulable.values()}
    await trio.sleep(0.6)
    await preempting.executor.pool.drained()
    assert [preemptor.key in queue.unschedulable for preemptor in (second, third)] == [False, False]
    assert (GRAND.key in queue.unschedulable) is not in_background  # in the cycle it gets the failure as a status


async def test_a_failed_eviction_in_the_cycle_is_returned(preempting: Preempting, autojump_clock: MockClock) -> None:
    victims = await preempting.running("a", "b")
    preempting.store.api.faults.fail_next(
        verb="delete", resource="pods", code=403, reason="Forbidden", message="not you"
    )
    status = await preempting.preempt(*victims, in_background=False)
    assert status is not None
    assert status.code == Code.ERROR
    assert "not you" in status.message
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_setting_the_condition_is_retried(preempting: Preempting, autojump_clock: MockClock) -> None:
    (low,) = await preempting.running("low")
    preempting.store.api.faults.fail_next(3, verb="patch", resource="pods", code=409, reason="Conflict")
    await preempting.preempted(low)
    assert preempting.what() == [("low", "condition"), ("low", "deletion")]
    assert 0.31 <= preempting.moves[0][0] <= 0.341  # 10, 50 and 250 ms, each up to a tenth longer


async def test_an_eviction_fails_after_four_refusals(preempting: Preempting, autojump_clock: MockClock) -> None:
    (low,) = await preempting.running("low")
    preempting.store.api.faults.fail_next(4, verb="patch", resource="pods", code=409, reason="Conflict")
    status = await preempting.preempt(low, in_background=False)
    assert status is not None
    assert preempting.what() == []


# --- while victims terminate ----------------------------------------------------------------------------------------


async def test_the_preemptor_is_gated_until_every_victim_is_terminating(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    a, b = await preempting.running("a", "b")
    await preempting.preempt(a, b)
    assert preempting.executor.is_preempting_for(GRAND.uid)
    assert preempting.executor.is_preempting_on("n")
    assert not preempting.executor.is_preempting_on("another")
    assert not preempting.executor.is_preempting_for("another")
    await preempting.executor.pool.drained()
    preempting.going(a)
    assert preempting.executor.is_preempting_for(GRAND.uid)
    preempting.going(b)
    assert not preempting.executor.is_preempting_on("n")
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_a_deleted_victim_no_longer_gates_the_preemptor(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    await preempting.preempted(low)
    preempting.show("DELETED", low, None)
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_terminating_victims_do_not_open_the_gate_before_the_last_one_is_evicted(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    a, b = await preempting.running("a", "b")
    await preempting.preempt(a, b)
    preempting.going(a)
    preempting.going(b)
    await trio.sleep(0.5)
    assert preempting.executor.is_preempting_for(GRAND.uid)
    await preempting.executor.pool.drained()
    assert not preempting.executor.is_preempting_for(GRAND.uid)


# --- victims that are not bound yet ---------------------------------------------------------------------------------


async def test_a_waiting_victim_is_rejected_and_not_deleted(
    preempting: Preempting, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    (low,) = await preempting.running("low")
    waiting, outcomes = preempting.executor.waiting, []
    waiting.add(low, {"Doorman": 60.0})

    async def wait() -> None:
        outcomes.append(await waiting.wait_on_permit(low.uid))

    nursery.start_soon(wait)
    await preempting.preempted(low)
    await trio.testing.wait_all_tasks_blocked()
    (status,) = outcomes
    assert status is not None
    assert (status.code, status.message, status.plugin) == (Code.ERROR, "preempted", PLUGIN)
    assert preempting.moves == []
    assert preempting.notes() == [("low", f"Preempted by pod {GRAND.uid} on node n (in kube-scheduler memory).")]
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_a_victim_that_no_longer_waits_is_evicted_through_the_server(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    preempting.executor.waiting.add(low, {"Doorman": 60.0})
    preempting.executor.waiting.by_uid[low.uid].allow("Doorman")
    await preempting.preempted(low)
    assert preempting.what() == [("low", "condition"), ("low", "deletion")]


async def test_a_victim_in_pre_bind_is_cancelled_and_not_deleted(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    under_way = preempting.executor.pods_in_pre_bind.add(low.uid)
    await preempting.preempted(low)
    assert under_way.scope.cancel_called
    assert under_way.cause == "preempted by DefaultPreemption"
    assert preempting.moves == []
    assert preempting.notes() == [("low", f"Preempted by pod {GRAND.uid} on node n (in kube-scheduler memory).")]


async def test_a_victim_past_pre_bind_is_evicted_through_the_server(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    preempting.executor.pods_in_pre_bind.add(low.uid).is_done = True
    await preempting.preempted(low)
    assert ("low", "deletion") in preempting.what()


async def test_a_victim_that_was_rejected_a_moment_ago_is_not_deleted(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    """It leaves the node by itself, as soon as its task has run."""
    (low,) = await preempting.running("low")
    preempting.executor.waiting.add(low, {"Doorman": 60.0})
    preempting.executor.waiting.by_uid[low.uid].reject("Doorman", "no")
    await preempting.preempted(low)
    assert (preempting.moves, preempting.notes()) == ([], [])
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_a_victim_that_has_left_the_node_in_the_meantime_is_not_deleted(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    """It was waiting for its bind, and was rejected before the job began: it is a pending pod again."""
    low, last = await preempting.running("low", "last")
    assert await preempting.preempt(low, last) is None
    preempting.assembly.scheduler.cache.remove(low.uid)
    await preempting.executor.pool.drained()
    assert {name for name, _what in preempting.what()} == {"last"}
    preempting.going(last)
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_a_victim_that_is_on_another_node_gates_nobody(preempting: Preempting, autojump_clock: MockClock) -> None:
    """Its bind has failed while its deletion was being requested, and it was assumed elsewhere."""
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    (low,) = await preempting.running("low")
    assert await preempting.preempt(low) is None
    await trio.sleep(0.5)
    assert preempting.executor.is_preempting_for(GRAND.uid)
    preempting.assembly.scheduler.cache.remove(low.uid)
    preempting.assembly.scheduler.cache.assume(replace(low, spec=replace(low.spec, node_name="")), "other")
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_victims_on_other_nodes_are_evicted_too_and_keep_pods_waiting_that_are_nominated_there(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    (here,) = await preempting.running("here")
    there = await preempting.store.create_pod(pod("there", node_name="m"))
    preempting.show("ADDED", None, there)
    assert await preempting.preempt(here, there) is None
    assert [preempting.executor.is_preempting_on(name) for name in "nmo"] == [True, True, False]
    await preempting.executor.pool.drained()
    await preempting.reported()
    assert preempting.what()[-2:] == [("there", "condition"), ("there", "deletion")]
    assert {note for _name, note in preempting.notes()} == {f"Preempted by pod {GRAND.uid} on node n"}
    preempting.going(here)
    assert preempting.executor.is_preempting_for(GRAND.uid)
    preempting.going(there)
    assert not preempting.executor.is_preempting_for(GRAND.uid)


async def test_the_preemptor_is_tried_again_if_all_victims_left_while_it_was_gated(
    preempting: Preempting, autojump_clock: MockClock
) -> None:
    """The events about them did not move it; no other will come."""
    preempting.store.api.faults.set_latency(1.0, verb="delete", resource="pods")
    low, last = await preempting.running("low", "last", cpu=2)
    queued(preempting)
    queue = preempting.assembly.scheduler.queue
    assert await preempting.preempt(low, last) is None
    await trio.sleep(0.5)
    for victim in (low, last):
        preempting.show("DELETED", victim, None)
    assert GRAND.key in queue.unschedulable
    await preempting.executor.pool.drained()
    assert GRAND.key in queue.active


# --- nominations of other pods --------------------------------------------------------------------------------------


async def nominate(preempting: Preempting, name: str, priority: int, where: str) -> None:
    """A pending pod, nominated to the node *where*."""
    made = await preempting.store.create_pod(pod(name))
    status = {"nominatedNodeName": where}
    await patch_pod_status(preempting.store.client, namespace="default", name=name, status=status)
    shown = replace(
        made, spec=replace(made.spec, priority=priority), status=replace(made.status, nominated_node_name=where)
    )
    preempting.show("ADDED", None, shown)


def nominated_node(preempting: Preempting, name: str) -> str | None:
    return preempting.store.pod(name)["status"].get("nominatedNodeName")  # type: ignore[no-any-return]


@pytest.mark.parametrize("in_background", [True, False])
async def test_nominations_of_lower_priority_pods_to_the_node_are_cleared(
    in_background: bool, preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    for name, priority, where in (("modest", 5, "n"), ("equal", 100, "n"), ("elsewhere", 5, "other")):
        await nominate(preempting, name, priority, where)
    assert await preempting.preempt(low, in_background=in_background) is None
    await preempting.executor.pool.drained()
    await preempting.reported()
    assert {name: nominated_node(preempting, name) for name in ("modest", "equal", "elsewhere")} == {
        "modest": None,
        "equal": "n",
        "elsewhere": "other",
    }


@pytest.mark.parametrize(("in_background", "left"), [(True, "n"), (False, None)])
async def test_if_all_victims_are_terminating_nominations_are_cleared_only_within_the_cycle(
    in_background: bool, left: str | None, preempting: Preempting, autojump_clock: MockClock
) -> None:
    (low,) = await preempting.running("low")
    await nominate(preempting, "modest", 5, "n")
    assert await preempting.preempt(preempting.going(low), in_background=in_background) is None
    await preempting.executor.pool.drained()
    await preempting.reported()
    assert nominated_node(preempting, "modest") == left
