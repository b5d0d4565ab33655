"""What would help, at the end of the message of a condition."""

import math
from itertools import pairwise

import trio
from trio.testing import MockClock

from trio_sched.daemon.pods.condition_remedies import MAX_PODS, MAX_WAITING, PAUSE_SECONDS, ConditionRemedies
from trio_sched.daemon.process_copy import CopyFailed
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
explainInCondition: {value}
"""


async def test_a_condition_ends_with_the_first_change_if_that_is_configured(autojump_clock: MockClock) -> None:
    nodes = [node("a", cpu=2)]
    async with virtual_cluster(nodes=nodes, config=CONFIG.format(value="true")) as cluster:
        remedies = cluster.scheduler.assembly.remedies
        assert remedies is not None
        found, find = trio.Event(), remedies.find

        async def find_and_tell(one: Pod) -> str:
            remedy = await find(one)
            found.set()
            return remedy

        remedies.find = find_and_tell
        autojump_clock.autojump_threshold = math.inf  # a process takes real time: the clock stands still until then
        await cluster.create(pod("huge", cpu=4))
        with trio.fail_after(1):
            await found.wait()
        autojump_clock.autojump_threshold = 0
        await trio.sleep(1)
        message = cluster.pod("huge").status.conditions[0].message
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert message.endswith(". Would run: request cpu ≤ 2.")


async def test_a_condition_ends_with_the_reasons_if_nothing_is_configured(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=2)], config=CONFIG.format(value="false")) as cluster:
        await cluster.create(pod("huge", cpu=4))
        await trio.sleep(60)
        assert "Would run" not in cluster.pod("huge").status.conditions[0].message


async def test_what_is_known_is_written_at_once_as_long_as_the_reasons_are_the_same(
    autojump_clock: MockClock,
) -> None:
    asked: list[str] = []
    written: list[tuple[str, str]] = []

    async def find(one: Pod) -> str:
        asked.append(one.name)
        if one.name == "broken":
            raise CopyFailed("no memory")
        return "" if one.name == "hopeless" else "uncordon a"

    remedies = ConditionRemedies(find, lambda one, message: written.append((one.name, message)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(remedies.run)
        for name in ("broken", "hopeless", "p"):
            assert remedies.message_for(pod(name), "refused.") == "refused."
        await trio.sleep(10)
        assert (asked, written) == (["broken", "hopeless", "p"], [("p", "refused. Would run: uncordon a.")])
        assert remedies.message_for(pod("p"), "refused.") == "refused. Would run: uncordon a."
        assert remedies.message_for(pod("hopeless"), "refused.") == "refused."
        assert remedies.message_for(pod("p"), "refused for another reason.") == "refused for another reason."
        await trio.sleep(10)
        assert asked == ["broken", "hopeless", "p", "p"]
        remedies.forget(set())
        assert remedies.message_for(pod("p"), "refused.") == "refused."
        nursery.cancel_scope.cancel()


async def test_it_pauses_after_explanations_that_failed_too(autojump_clock: MockClock) -> None:
    asked: list[float] = []

    async def find(_one: Pod) -> str:
        asked.append(trio.current_time())
        raise CopyFailed("no memory")

    remedies = ConditionRemedies(find, lambda _one, _message: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(remedies.run)
        for number in range(3):
            remedies.message_for(pod(f"p{number}"), "refused.")
        await trio.sleep(10)
        nursery.cancel_scope.cancel()
    assert [later - sooner for sooner, later in pairwise(asked)] == [PAUSE_SECONDS, PAUSE_SECONDS]


async def test_what_is_kept_is_bounded(autojump_clock: MockClock) -> None:
    async def find(_one: Pod) -> str:
        return "uncordon a"

    remedies = ConditionRemedies(find, lambda _one, _message: None)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(remedies.run)
        for start in range(0, MAX_PODS + 2 * MAX_WAITING, MAX_WAITING):
            for number in range(start, start + MAX_WAITING):
                remedies.message_for(pod(f"p{number}"), "no.")
            assert remedies.message_for(pod("one-more"), "no.") == "no."
            await trio.sleep(2 * MAX_WAITING)
        assert remedies.message_for(pod("p0"), "no.") == "no."  # forgotten
        last = MAX_PODS + 2 * MAX_WAITING - 1
        assert remedies.message_for(pod(f"p{last}"), "no.") == "no. Would run: uncordon a."
        nursery.cancel_scope.cancel()
