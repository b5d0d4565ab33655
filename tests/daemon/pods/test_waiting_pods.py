import trio
from trio.testing import MockClock

from trio_sched.daemon.pods.waiting_pods import WaitingPods
from trio_sched.plugin_api.status import Code
from trio_sched.testing import pod

POD = pod("p")


def waiting(**timeouts: float) -> WaitingPods:
    pods = WaitingPods()
    pods.add(POD, timeouts)
    return pods


async def test_a_pod_that_does_not_wait_is_allowed_at_once() -> None:
    assert await WaitingPods().wait_on_permit("nobody") is None


async def test_a_pod_is_allowed_when_the_last_plugin_allows_it(
    nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    pods = waiting(A=60, B=60)
    one = pods.by_uid[POD.uid]

    async def allow() -> None:
        await trio.sleep(1)
        one.allow("A")
        assert one.pending_plugins == {"B"}
        await trio.sleep(1)
        one.allow("B")

    nursery.start_soon(allow)
    assert await pods.wait_on_permit(POD.uid) is None
    assert trio.current_time() == 2.0
    assert not pods.by_uid


async def test_one_plugin_that_rejects_is_enough(nursery: trio.Nursery) -> None:
    pods = waiting(A=60, B=60)
    one = pods.by_uid[POD.uid]
    one.allow("A")
    assert one.reject("B", "not today")
    status = await pods.wait_on_permit(POD.uid)
    assert status is not None
    assert (status.code, status.plugin, status.message) == (Code.UNSCHEDULABLE, "B", "not today")


async def test_the_first_decision_is_final() -> None:
    pods = waiting(A=60)
    one = pods.by_uid[POD.uid]
    one.allow("A")
    assert not one.reject("A", "too late")
    assert not one.preempt("A", "too late")
    assert await pods.wait_on_permit(POD.uid) is None


async def test_the_shortest_timeout_rejects_in_the_name_of_its_plugin(autojump_clock: MockClock) -> None:
    status = await waiting(A=90, B=1.5, C=60).wait_on_permit(POD.uid)
    assert status is not None
    assert trio.current_time() == 1.5
    assert (status.plugin, status.message) == ("B", "rejected due to timeout after waiting 1.5s at plugin B")


async def test_a_plugin_that_has_allowed_it_times_out_no_more(autojump_clock: MockClock) -> None:
    pods = waiting(A=1, B=3)
    pods.by_uid[POD.uid].allow("A")
    status = await pods.wait_on_permit(POD.uid)
    assert status is not None
    assert (status.plugin, trio.current_time()) == ("B", 3.0)


async def test_timeouts_count_from_permit_and_not_from_the_first_wait(autojump_clock: MockClock) -> None:
    pods = waiting(A=5)
    await trio.sleep(4)
    await pods.wait_on_permit(POD.uid)
    assert trio.current_time() == 5.0


async def test_allowing_for_a_plugin_that_does_not_wait_changes_nothing(autojump_clock: MockClock) -> None:
    pods = waiting(A=5)
    pods.by_uid[POD.uid].allow("B")
    assert await pods.wait_on_permit(POD.uid) is not None


async def test_a_preempted_waiting_pod_fails_with_an_error() -> None:
    pods = waiting(A=5)
    assert pods.by_uid[POD.uid].preempt("DefaultPreemption", "preempted")
    status = await pods.wait_on_permit(POD.uid)
    assert status is not None
    assert (status.code, status.message, status.plugin) == (Code.ERROR, "preempted", "DefaultPreemption")


async def test_a_deleted_pod_stops_waiting() -> None:
    pods = waiting(A=5)
    assert pods.reject_deleted(POD.uid)
    assert not pods.reject_deleted("another")
    status = await pods.wait_on_permit(POD.uid)
    assert status is not None
    assert status.message == "removed"


async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    pods = waiting(A=5)
    with trio.CancelScope() as scope:
        scope.cancel()
        await pods.wait_on_permit(POD.uid)
    assert not pods.by_uid
