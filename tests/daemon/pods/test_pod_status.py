from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from holders import reachable
from msgspec.structs import replace
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.pods.pod_status import PodStatusWriter, condition_patch, status_patch
from trio_sched.daemon.writes.work_pool import WorkPool
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import NotFound
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.simulator import ApiServer
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster

NOW = "2026-01-01T00:00:00Z"


def patch_of(p: Pod, *, message: str = "no room", nominated: str | None = None) -> dict[str, Any]:
    return status_patch(p, reason="Unschedulable", message=message, nominated_node_name=nominated, now=NOW)


def said(*, message: str = "no room", status: str = "False", moment: str = "2025-12-31T23:00:00Z") -> PodCondition:
    return PodCondition(
        type="PodScheduled", status=status, reason="Unschedulable", message=message, last_transition_time=moment
    )


def with_conditions(*conditions: PodCondition, nominated: str = "") -> Pod:
    p = pod("p", nominated_node_name=nominated)
    return replace(p, status=replace(p.status, conditions=conditions))


def test_a_pod_without_conditions_gets_the_whole_condition() -> None:
    assert patch_of(pod("p")) == {
        "conditions": [
            {
                "lastProbeTime": None,
                "lastTransitionTime": NOW,
                "message": "no room",
                "reason": "Unschedulable",
                "status": "False",
                "type": "PodScheduled",
            }
        ]
    }


def test_the_observed_generation_is_written() -> None:
    p = pod("p")
    patch = patch_of(replace(p, metadata=replace(p.metadata, generation=3)))
    assert patch["conditions"][0]["observedGeneration"] == 3


def test_an_unchanged_condition_is_not_patched() -> None:
    assert patch_of(with_conditions(said())) == {}


def test_a_message_of_megabytes_is_cut_and_then_counts_as_unchanged() -> None:
    """The API server would refuse it, and the pod would have no condition at all."""
    message = "no röom, " * 1_000_000
    (entry,) = patch_of(pod("p"), message=message)["conditions"]
    shown = entry["message"]
    assert len(shown.encode()) in range(32765, 32769)
    assert shown.endswith(" ...")
    assert message.startswith(shown.removesuffix(" ..."))
    assert patch_of(with_conditions(said(message=shown)), message=message) == {}
    whole = "ö" * 16384
    assert patch_of(pod("p"), message=whole)["conditions"][0]["message"] == whole


def test_a_new_message_keeps_the_last_transition_time() -> None:
    patch = patch_of(with_conditions(said(message="before")))
    assert patch["conditions"][0]["lastTransitionTime"] == "2025-12-31T23:00:00Z"
    assert patch["conditions"][0]["message"] == "no room"


def test_a_changed_status_sets_the_last_transition_time() -> None:
    patch = patch_of(with_conditions(said(status="True")))
    assert patch["conditions"][0]["lastTransitionTime"] == NOW


def test_other_conditions_keep_their_order() -> None:
    other = PodCondition(type="Ready", status="False")
    last = patch_of(with_conditions(other))
    assert last["$setElementOrder/conditions"] == [{"type": "Ready"}, {"type": "PodScheduled"}]
    first = patch_of(with_conditions(said(message="x"), other))
    assert first["$setElementOrder/conditions"] == [{"type": "PodScheduled"}, {"type": "Ready"}]


@pytest.mark.parametrize(
    ("before", "nominated", "expected"),
    [
        ("", None, {}),
        ("n1", None, {}),
        ("n1", "n1", {}),
        ("", "n1", {"nominatedNodeName": "n1"}),
        ("n2", "n1", {"nominatedNodeName": "n1"}),
        ("n1", "", {"nominatedNodeName": None}),
        ("", "", {}),
    ],
)
def test_a_nomination_is_set_cleared_or_left_alone(
    before: str, nominated: str | None, expected: dict[str, Any]
) -> None:
    assert patch_of(with_conditions(said(), nominated=before), nominated=nominated) == expected


def target(status: str = "True") -> PodCondition:
    return PodCondition(
        type="DisruptionTarget", status=status, reason="Old", last_transition_time="2025-01-01T00:00:00Z"
    )


@pytest.mark.parametrize(
    ("conditions", "since"), [((), NOW), ((target("False"),), NOW), ((target("True"),), "2025-01-01T00:00:00Z")]
)
def test_the_time_of_a_condition_is_when_it_got_its_status(conditions: tuple[PodCondition, ...], since: str) -> None:
    (condition,) = condition_patch(with_conditions(*conditions), replace(target(), reason="New"), now=NOW)["conditions"]
    assert condition["lastTransitionTime"] == since


def test_the_order_of_conditions_is_sent_unless_there_were_none() -> None:
    # So does kube-scheduler, which makes its patches out of the old and the new status.
    new = replace(target(), reason="New")
    assert "$setElementOrder/conditions" not in condition_patch(pod("p"), new, now=NOW)
    alone = condition_patch(with_conditions(target()), new, now=NOW)
    assert alone["$setElementOrder/conditions"] == [{"type": "DisruptionTarget"}]
    added = condition_patch(with_conditions(said()), new, now=NOW)
    assert added["$setElementOrder/conditions"] == [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}]


@define(eq=False)
class Writing:
    """A writer of one pod's status, and the versions that the API server stored."""

    store: Store
    writer: PodStatusWriter
    pod: Pod
    versions: list[dict[str, Any]] = field(factory=list)

    def say(self, message: str, nominated: str | None = None) -> None:
        self.writer.write(self.pod, reason="Unschedulable", message=message, nominated_node_name=nominated)

    @property
    def messages(self) -> list[str]:
        """The messages written, in order."""
        return [status["conditions"][0]["message"] for status in self.versions]


@pytest.fixture
async def writing(store: Store, client: KubeClient, api: ApiServer, nursery: trio.Nursery) -> Writing:
    writer = PodStatusWriter(client=client, pool=WorkPool(8), wall_clock=api.now, random=Random(1))
    made = Writing(store, writer, await store.create_pod(pod("p")))
    api.store.collection("pods").listen(lambda change: made.versions.append(change.current.fields["status"]))
    nursery.start_soon(writer.pool.run)
    return made


async def test_a_patch_is_written(writing: Writing, autojump_clock: MockClock) -> None:
    writing.say("no room", nominated="n1")
    await writing.writer.pool.drained()
    status = writing.store.pod("p")["status"]
    assert status["nominatedNodeName"] == "n1"
    assert status["conditions"][0]["lastTransitionTime"] == NOW


@pytest.mark.parametrize(("code", "reason"), [(500, "InternalError"), (409, "Conflict")])
async def test_failed_patches_are_retried(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, code: int, reason: str
) -> None:
    api.faults.fail_next(3, verb="patch", code=code, reason=reason)
    writing.say("no room")
    await writing.writer.pool.drained()
    assert writing.messages == ["no room"]
    assert 0.31 <= trio.current_time() <= 0.341  # 10, 50 and 250 ms, up to a tenth more


async def test_a_patch_is_dropped_after_four_failures(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.fail_next(4, verb="patch")
    writing.say("no room")
    await writing.writer.pool.drained()
    assert writing.messages == []
    assert "Error updating pod: " in caplog.text
    writing.say("still no room")
    await writing.writer.pool.drained()
    assert writing.messages == ["still no room"]


async def test_a_patch_is_kept_while_the_server_is_away(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.drop_next(1_000, verb="patch")
    writing.say("no room")
    await trio.sleep(20)
    assert writing.writer.pool.unfinished == 1
    writing.say("still no room")
    api.faults.clear()
    await writing.writer.pool.drained()
    assert writing.messages[-1] == "still no room"
    assert caplog.text == ""


async def test_a_patch_that_waits_for_the_server_is_tried_when_it_answers_somebody(
    writing: Writing, client: KubeClient, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.drop_next(1_000, verb="patch")
    writing.say("no room")
    await trio.sleep(60)
    api.faults.clear()
    client.reachability.answered()
    answered_at = trio.current_time()
    await writing.writer.pool.drained()
    assert trio.current_time() - answered_at < 0.5


async def test_a_withdrawal_does_not_wait_for_a_server_that_is_away(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.drop_next(1_000, verb="patch")
    writing.say("no room")
    await trio.sleep(50)
    began = trio.current_time()
    await writing.writer.withdraw(writing.pod.uid)
    assert trio.current_time() == began


async def test_a_rejected_patch_is_not_retried(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.fail_next(1, verb="patch", code=403, reason="Forbidden", message="not you")
    writing.say("no room")
    await writing.writer.pool.drained()
    assert (writing.messages, trio.current_time()) == ([], 0.0)
    assert "not you" in caplog.text


async def test_a_patch_of_a_deleted_pod_is_dropped(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.fail_next(1, verb="patch", code=404, reason="NotFound")
    writing.say("no room")
    await writing.writer.pool.drained()
    assert caplog.text == ""


async def test_patches_of_one_pod_are_written_in_order(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.set_latency(5, verb="patch")
    writing.say("first")
    await trio.sleep(1)
    api.faults.set_latency(0.1, verb="patch")
    writing.say("second")
    await writing.writer.pool.drained()
    assert writing.messages == ["first", "second"]


async def test_patches_queued_behind_a_running_one_are_merged(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.set_latency(5, verb="patch")
    writing.say("first")
    await trio.sleep(1)
    writing.say("second", nominated="n1")
    writing.say("third")
    await writing.writer.pool.drained()
    assert writing.messages == ["first", "third"]
    assert writing.versions[-1]["nominatedNodeName"] == "n1"


async def test_a_failed_patch_is_replaced_by_a_newer_one(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.fail_next(1, verb="patch")
    api.faults.set_latency(1, verb="patch")
    writing.say("first", nominated="n1")
    await trio.sleep(0.5)
    writing.say("second")
    await writing.writer.pool.drained()
    assert writing.messages == ["second"]
    assert writing.versions[-1]["nominatedNodeName"] == "n1"


@pytest.mark.parametrize("under_way", [False, True], ids=["queued", "being sent"])
async def test_a_nomination_that_was_not_sent_yet_can_be_cleared(
    writing: Writing, autojump_clock: MockClock, api: ApiServer, under_way: bool
) -> None:
    api.faults.set_latency(1, verb="patch")
    writing.writer.write_nomination(writing.pod, "n1")
    if under_way:
        await trio.sleep(0.5)
    writing.writer.write_nomination(writing.pod, "")
    await writing.writer.pool.drained()
    assert not writing.store.pod("p")["status"].get("nominatedNodeName")


async def test_a_message_that_returns_while_another_is_on_its_way_is_written(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    writing.say("no room")
    await writing.writer.pool.drained()
    writing.pod = await verbs.get(writing.store.client, POD_KIND, "p", namespace="default")
    api.faults.set_latency(1, verb="patch")
    writing.say("no ports")
    await trio.sleep(0.5)
    writing.say("no room")
    await writing.writer.pool.drained()
    assert writing.messages == ["no room", "no ports", "no room"]


async def test_what_is_on_its_way_already_is_not_sent_again(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.set_latency(1, verb="patch")
    writing.say("no room", nominated="n1")
    await trio.sleep(0.5)
    writing.say("no room", nominated="n1")
    await writing.writer.pool.drained()
    assert writing.messages == ["no room"]


async def test_a_queued_patch_can_be_withdrawn(writing: Writing, autojump_clock: MockClock) -> None:
    writing.say("obsolete")
    await writing.writer.withdraw(writing.pod.uid)
    await writing.writer.pool.drained()
    assert writing.messages == []
    writing.say("news")
    await writing.writer.pool.drained()
    assert writing.messages == ["news"]


async def test_a_withdrawal_waits_for_the_patch_under_way(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.set_latency(5, verb="patch")
    writing.say("sent")
    await trio.sleep(1)
    writing.say("obsolete")
    await writing.writer.withdraw(writing.pod.uid)
    assert trio.current_time() == 5.0
    await writing.writer.pool.drained()
    assert writing.messages == ["sent"]


async def test_a_failed_patch_is_not_retried_once_withdrawn(
    writing: Writing, autojump_clock: MockClock, api: ApiServer
) -> None:
    api.faults.fail_next(1, verb="patch")
    api.faults.set_latency(5, verb="patch")
    writing.say("obsolete")
    await trio.sleep(1)
    await writing.writer.withdraw(writing.pod.uid)
    await writing.writer.pool.drained()
    assert (writing.messages, trio.current_time()) == ([], 5.0)


async def test_a_withdrawal_of_nothing_returns_at_once(writing: Writing, autojump_clock: MockClock) -> None:
    with trio.fail_after(1):
        await writing.writer.withdraw("nobody")
    assert trio.current_time() == 0


async def test_a_late_condition_does_not_overwrite_that_the_pod_is_bound(autojump_clock: MockClock) -> None:
    async with virtual_cluster(kubelets=False) as cluster:
        cluster.api.faults.set_latency(5, verb="patch", resource="pods")
        await cluster.create(pod("p"))
        await trio.sleep(1.5)
        await cluster.create(node("n"))
        await cluster.settle()
        (condition,) = cluster.pod("p").status.conditions or ()
        assert (condition.type, condition.status) == ("PodScheduled", "True")


async def test_a_nomination_is_written_before_the_call_returns(writing: Writing, autojump_clock: MockClock) -> None:
    writing.store.api.faults.fail_next(2, verb="patch", resource="pods")
    await writing.writer.nominate(writing.pod, "n1")
    assert writing.store.pod("p")["status"]["nominatedNodeName"] == "n1"


async def test_what_waits_to_be_written_is_dropped_for_a_nomination(
    writing: Writing, autojump_clock: MockClock
) -> None:
    writing.say("no room", nominated="n2")
    await writing.writer.nominate(writing.pod, "n1")
    await writing.writer.pool.drained()
    assert writing.store.pod("p")["status"]["nominatedNodeName"] == "n1"


async def test_a_nomination_of_a_pod_that_is_gone_is_told(writing: Writing, autojump_clock: MockClock) -> None:
    gone = replace(writing.pod, metadata=replace(writing.pod.metadata, name="gone"))
    with pytest.raises(NotFound):
        await writing.writer.nominate(gone, "n1")


async def test_patches_that_wait_keep_no_pod(writing: Writing, autojump_clock: MockClock, api: ApiServer) -> None:
    api.faults.set_latency(100, verb="patch")
    for number in range(20):
        large = pod(f"p-{number}", annotations={"large": "x" * 100_000})
        writing.writer.write(large, reason="Unschedulable", message="no room", nominated_node_name="n1")
    await trio.sleep(1)
    assert writing.writer.pool.unfinished == 20
    found = [held.value for held in reachable({"writer": writing.writer})]
    assert not any(isinstance(one, Pod) for one in found)
    assert max(len(one) for one in found if isinstance(one, str | bytes)) < 10_000
