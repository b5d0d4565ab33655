from collections.abc import Callable
from typing import Any

import pytest
import trio
from kind_handlers import handler_of
from msgspec.structs import replace
from stage import MakeStage, Stage, picky_plugin
from trio.testing import MockClock

from trio_sched.daemon.wake_up import WakeUp
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.unassigned_pods import UnassignedPods
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Action, Resource
from trio_sched.testing import node, pod


def picky(name: str, **fields: Any) -> Pod:
    return pod(name, labels={"picky": "yes"}, **fields)


PICKY = picky("waiting")


def on_node(one: Pod, name: str) -> Pod:
    return replace(one, spec=replace(one.spec, node_name=name))


def nominated(one: Pod, name: str) -> Pod:
    return replace(one, status=replace(one.status, nominated_node_name=name))


def deleting(one: Pod) -> Pod:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


def labelled(thing: Pod, **labels: str) -> Pod:
    return replace(thing, metadata=replace(thing.metadata, labels={**(thing.metadata.labels or {}), **labels}))


# --- added pods -----------------------------------------------------------------------------------------------------


async def test_the_first_list_fills_cache_and_queue(stage: Stage, autojump_clock: MockClock) -> None:
    stage.delivery.nodes_changed(Listed([node("n")], "1"))
    stage.delivery.pods_changed(Listed([pod("runs", cpu=1, node_name="n"), pod("waits")], "1"))
    assert stage.cpu("n") == 1000
    assert stage.where(pod("waits")) == "active"
    assert len(stage.unassigned) == 1


async def test_a_pod_without_a_node_is_queued_and_pending(stage: Stage, autojump_clock: MockClock) -> None:
    (added,) = stage.add(pod("p"))
    assert stage.where(added) == "active"
    assert stage.unassigned.get("default/p") is added
    assert stage.cache.get(added.uid) is None


async def test_a_pod_of_another_scheduler_is_ignored_until_it_has_a_node(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("n"))
    (foreign,) = stage.add(pod("p", cpu=1, scheduler_name="somebody-else"))
    foreign = stage.update(foreign, labelled(foreign, a="b"))
    assert (stage.where(foreign), len(stage.unassigned), stage.cpu("n")) == ("", 0, 0)
    foreign = stage.update(foreign, on_node(foreign, "n"))
    assert stage.cpu("n") == 1000
    stage.delete(foreign)
    assert stage.cpu("n") == 0


async def test_deleting_an_unbound_pod_of_another_scheduler_changes_nothing(
    stage: Stage, autojump_clock: MockClock
) -> None:
    (foreign,) = stage.add(pod("p", scheduler_name="somebody-else"))
    (ours,) = stage.add(pod("q"))
    stage.delete(foreign)
    assert (stage.where(ours), len(stage.unassigned)) == ("active", 1)


async def test_a_new_bound_pod_is_cached_and_requeues_pods_that_wait_for_assigned_pods(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.ADD)))
    stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    stage.add(pod("another-without"))
    assert stage.where(waiting) == "unschedulable"
    stage.add(pod("friend", cpu=2, node_name="n"))
    assert stage.where(waiting) == "backoff"
    assert stage.cpu("n") == 2000


async def test_a_pod_added_before_its_node_counts_once_the_node_is_added(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(pod("early", cpu=1, node_name="n"))
    stage.add(node("n"))
    assert stage.cpu("n") == 1000


async def test_a_pod_added_twice_counts_once_and_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.add(node("n"))
    stage.add(pod("p", cpu=1, node_name="n"), pod("p", cpu=1, node_name="n"))
    assert stage.cpu("n") == 1000
    assert "Scheduler cache: pod uid-of-default/p(default/p) was already in added state" in caplog.text


async def is_set(wake_up: WakeUp) -> bool:
    with trio.move_on_after(1) as patience:
        await wake_up.wait()
    return not patience.cancelled_caught


def empty_batches(stage: Stage) -> list[Callable[[], None]]:
    return [
        lambda: stage.delivery.nodes_changed(Listed([], "1")),
        lambda: stage.delivery.pods_changed(Listed([], "1")),
        lambda: handler_of(stage.delivery, "CSINode", Resource.CSI_NODE, Action.ADD)(Listed([], "1")),
    ]


async def test_every_batch_wakes_the_scheduler_while_a_pod_is_queued(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(pod("p"))
    assert await is_set(stage.assembly.pods_available)
    for happens in empty_batches(stage):
        happens()
        assert await is_set(stage.assembly.pods_available)


async def test_a_batch_that_brings_no_pod_into_the_queue_leaves_the_scheduler_asleep(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("n"))
    (runs,) = stage.add(pod("runs", node_name="n"))
    stage.update(runs, runs)
    for happens in empty_batches(stage):
        happens()
    assert not await is_set(stage.assembly.pods_available)


async def test_a_failure_of_a_plugin_wakes_the_scheduler_which_logs_it(stage: Stage, autojump_clock: MockClock) -> None:
    hook = BoundHook("Broken", "pre_enqueue", lambda: None)
    stage.queue.plugin_failures.add(HookFailed(hook, "it is broken"))
    stage.delivery.pods_changed(Listed([], "1"))
    assert await is_set(stage.assembly.pods_available)


async def test_the_timer_is_woken_while_pods_back_off_that_only_it_takes_out(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.ADD)), gates={"SchedulerPopFromBackoffQ": False})
    stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    assert await is_set(stage.assembly.backoff_changed)
    stage.add(node("m"))
    assert not await is_set(stage.assembly.backoff_changed)
    stage.add(pod("runs", node_name="n"))
    assert stage.where(waiting) == "backoff"
    assert await is_set(stage.assembly.backoff_changed)


# --- updates of pods without a node ---------------------------------------------------------------------------------


async def test_an_updated_pending_pod_is_queued_in_its_newest_version(stage: Stage, autojump_clock: MockClock) -> None:
    (old,) = stage.add(pod("p"))
    new = stage.update(old, labelled(old, a="b"))
    queued = stage.queue.find(new.key)
    assert queued is not None
    assert queued.pod is new
    assert stage.unassigned.get(new.key) is new


async def test_an_update_of_a_pod_that_is_not_queued_queues_it(stage: Stage, autojump_clock: MockClock) -> None:
    old, new = stage.stamp(pod("p")), stage.stamp(pod("p"))
    stage.delivery.pods_changed(Changes([Change("MODIFIED", old, new)], "1"))
    assert stage.where(new) == "active"


async def test_an_update_to_the_same_version_does_not_queue_a_pod_in_flight(
    stage: Stage, autojump_clock: MockClock
) -> None:
    (old,) = stage.add(pod("p"))
    info = stage.queue.pop()
    assert info is not None
    stage.queue.done(info.uid)
    stage.delivery.pods_changed(Changes([Change("MODIFIED", old, old)], "1"))
    assert stage.where(old) == ""


async def test_an_assumed_pod_that_is_confirmed_counts_once(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n"))
    assumed = stage.assume(pod("p", cpu=1))
    assert stage.cpu("n") == 1000
    stage.update(assumed, on_node(assumed, "n"))
    assert not stage.cache.is_assumed(assumed.uid)
    assert (stage.cpu("n"), len(stage.unassigned), stage.where(assumed)) == (1000, 0, "")


async def test_an_assumed_pod_bound_to_another_node_counts_on_that_node(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("ours"))
    assumed = stage.assume(pod("p", cpu=1))
    stage.add(node("theirs"))
    stage.update(assumed, on_node(assumed, "theirs"))
    assert (stage.cpu("ours"), stage.cpu("theirs")) == (0, 1000)
    assert not stage.cache.is_assumed(assumed.uid)


async def test_a_queued_pod_bound_by_another_client_leaves_the_queue(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n"))
    (refused,) = stage.refuse(pod("big", cpu=64))
    (active,) = stage.add(pod("next", cpu=1))
    for each in (refused, active):
        stage.update(each, on_node(each, "n"))
    assert [stage.where(each) for each in (refused, active)] == ["", ""]
    assert (len(stage.unassigned), stage.cpu("n")) == (0, 65_000)


async def test_a_pod_that_is_bound_requeues_pods_that_wait_for_assigned_pods(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.ADD)))
    stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    (other,) = stage.add(pod("other"))
    stage.update(other, on_node(other, "n"))
    assert stage.where(waiting) == "backoff"


async def test_an_update_of_an_assumed_pod_does_not_queue_it(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n"))
    assumed = stage.assume(pod("p", cpu=1))
    newer = stage.update(assumed, labelled(assumed, a="b"))
    assert stage.where(assumed) == ""
    assert stage.cache.is_assumed(assumed.uid)
    assert stage.unassigned.get(assumed.key) is newer


async def test_an_assumed_pod_being_deleted_frees_its_resources_once(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.add(node("n", cpu=1))
    assumed = stage.assume(pod("p", cpu=1))
    (waiting,) = stage.refuse(pod("waiting", cpu=1))
    going = stage.update(assumed, deleting(assumed))
    assert (stage.cpu("n"), stage.where(waiting)) == (0, "backoff")
    going = stage.update(going, labelled(going, a="b"))
    stage.delete(going)
    assert (stage.cache.get(going.uid), stage.where(going), len(stage.unassigned)) == (None, "", 1)
    assert caplog.text == ""


async def test_a_waiting_pod_being_deleted_is_rejected_and_forgotten_by_its_binding_cycle(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.DELETE)))
    stage.add(node("n", cpu=1))
    assumed = stage.assume(pod("p", cpu=1))
    stage.assembly.binding.waiting.add(assumed, {"Picky": 60.0})
    (waiting,) = stage.refuse(PICKY)
    going = stage.update(assumed, deleting(assumed))
    stage.update(going, labelled(going, a="b"))
    refusal = await stage.assembly.binding.waiting.wait_on_permit(assumed.uid)
    assert refusal is not None
    assert refusal.message == "removed"
    assert stage.cache.is_assumed(assumed.uid)
    assert stage.where(waiting) == "backoff"


@pytest.mark.parametrize("elsewhere", ["", "other"])
async def test_a_removed_nomination_requeues_pods_of_the_same_or_lower_priority(
    staged: MakeStage, elsewhere: str, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.DELETE)))
    stage.add(node("n"))
    (preemptor,) = stage.refuse(picky("preemptor", priority=5, nominated_node_name="n"))
    waiting = stage.refuse(*(picky(f"p{priority}", priority=priority) for priority in (4, 5, 6)))
    renamed = stage.update(preemptor, labelled(preemptor, a="b"))
    assert {stage.where(each) for each in waiting} == {"unschedulable"}
    stage.update(renamed, nominated(renamed, elsewhere))
    assert [stage.where(each) for each in waiting] == ["backoff", "backoff", "unschedulable"]


# --- updates of bound pods ------------------------------------------------------------------------------------------


async def test_new_labels_of_a_running_pod_requeue_pods_that_wait_for_label_updates(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.UPDATE_POD_LABEL)))
    stage.add(node("n"))
    (running,) = stage.add(pod("running", cpu=1, node_name="n"))
    (waiting,) = stage.refuse(PICKY)
    running = stage.update(running, replace(running, status=replace(running.status, phase="Running")))
    assert stage.where(waiting) == "unschedulable"
    running = stage.update(running, labelled(running, app="friend"))
    assert stage.where(waiting) == "backoff"
    cached = stage.cache.get(running.uid)
    assert cached is not None
    assert cached.pod is running


async def test_a_running_pod_that_scales_down_requeues_pods_that_wait_for_resources(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("n", cpu=4))
    (running,) = stage.add(pod("running", cpu=4, node_name="n"))
    (waiting,) = stage.refuse(pod("waiting", cpu=2))
    stage.update(running, pod("running", cpu=1, node_name="n"))
    assert (stage.cpu("n"), stage.where(waiting)) == (1000, "backoff")


async def test_an_update_of_an_unknown_running_pod_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.update(pod("p", node_name="n"), pod("p", node_name="n"))
    assert "pod uid-of-default/p(default/p) is not added to scheduler cache, so cannot be updated" in caplog.text


# --- deleted pods ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_last_state_known", [True, False])
async def test_a_deleted_running_pod_requeues_pods_that_wait_for_resources(
    stage: Stage, is_last_state_known: bool, autojump_clock: MockClock
) -> None:
    stage.add(node("n", cpu=1))
    (running,) = stage.add(pod("running", cpu=1, node_name="n"))
    (waiting,) = stage.refuse(pod("waiting", cpu=1))
    stage.delete(running, running if is_last_state_known else None)
    assert (stage.cpu("n"), stage.where(waiting), len(stage.cache)) == (0, "backoff", 0)


async def test_the_deletion_of_an_unknown_running_pod_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.delete(pod("p", node_name="n"))
    assert "pod uid-of-default/p is not found in scheduler cache" in caplog.text


async def test_deleted_queued_pods_leave_the_queue_and_requeue_no_others(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("n"))
    refused, other = stage.refuse(pod("refused", cpu=64), pod("other", cpu=64))
    (active,) = stage.add(pod("active"))
    stage.delete(refused)
    stage.delete(active, active)
    assert [stage.where(each) for each in (refused, active, other)] == ["", "", "unschedulable"]
    assert len(stage.unassigned) == 1


async def test_a_queued_pod_bound_and_deleted_between_two_lists_leaves_the_queue(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.add(node("n"))
    (queued,) = stage.add(pod("p", cpu=1))
    stage.delete(queued, on_node(queued, "n"))
    assert (stage.where(queued), len(stage.unassigned), stage.cpu("n")) == ("", 0, 0)
    assert caplog.text == ""


async def test_a_deleted_assumed_pod_frees_its_resources(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n", cpu=1))
    assumed = stage.assume(pod("p", cpu=1))
    (waiting,) = stage.refuse(pod("waiting", cpu=1))
    stage.delete(assumed)
    assert (stage.cpu("n"), stage.where(waiting), stage.cache.get(assumed.uid)) == (0, "backoff", None)


async def test_a_deleted_nominated_pod_requeues_pods_of_the_same_or_lower_priority(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.DELETE)))
    stage.add(node("n"))
    (preemptor,) = stage.refuse(picky("preemptor", priority=5, nominated_node_name="n"))
    waiting = stage.refuse(*(picky(f"p{priority}", priority=priority) for priority in (4, 5, 6)))
    stage.delete(preemptor)
    assert [stage.where(each) for each in waiting] == ["backoff", "backoff", "unschedulable"]
    assert not stage.queue.nominator.nodes.get("n")


async def test_a_deleted_pod_whose_nomination_no_status_shows_requeues_them_too(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.ASSIGNED_POD, Action.DELETE)))
    stage.add(node("n"))
    (preemptor,) = stage.refuse(picky("preemptor", priority=5))
    stage.queue.nominator.add(preemptor, "n")
    waiting = stage.refuse(*(picky(f"p{priority}", priority=priority) for priority in (4, 5, 6)))
    stage.delete(preemptor)
    assert [stage.where(each) for each in waiting] == ["backoff", "backoff", "unschedulable"]


async def test_a_pod_recreated_under_the_same_name_is_another_pod(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n", cpu=1))
    (refused,) = stage.refuse(pod("p", cpu=64, uid="first"))
    (running,) = stage.add(pod("q", cpu=1, uid="first-q", node_name="n"))
    again, also = stage.stamp(pod("p", uid="second")), stage.stamp(pod("q", uid="second-q", node_name="n"))
    changes = [
        Change("DELETED", refused, None),
        Change("DELETED", running, None),
        Change("ADDED", None, again),
        Change("ADDED", None, also),
    ]
    stage.delivery.pods_changed(Changes(changes, "9", relisted=True))
    assert stage.where(again) == "active"
    assert stage.unassigned.get("default/p") is again
    assert {cached.pod.uid for cached in stage.cache} == {"second-q"}
    assert stage.cpu("n") == 0


async def test_deleting_an_earlier_pod_of_the_same_name_does_not_remove_the_pending_one() -> None:
    unassigned, second = UnassignedPods(), pod("p", uid="second")
    unassigned.put(second)
    unassigned.drop(pod("p", uid="first"))
    assert unassigned.get("default/p") is second
    unassigned.drop(second)
    unassigned.drop(second)
    assert len(unassigned) == 0
