import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.pods.pods_in_pre_bind import PodsInPreBind
from trio_sched.plugin_api import Pod, PreFlight, Wait, hookimpl
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


async def test_a_pod_in_pre_bind_can_be_cancelled_once() -> None:
    pods = PodsInPreBind()
    entered = pods.add("uid")
    assert pods.cancel("uid", "preempted by DefaultPreemption")
    assert entered.scope.cancel_called
    assert entered.cause == "preempted by DefaultPreemption"
    assert pods.cancel("uid", "preempted by another")
    assert entered.cause == "preempted by DefaultPreemption"


async def test_a_pod_past_pre_bind_cannot_be_cancelled() -> None:
    pods = PodsInPreBind()
    entered = pods.add("uid")
    entered.is_done = True
    assert not pods.cancel("uid", "too late")
    assert not entered.scope.cancel_called
    assert entered.cause is None


def test_a_pod_that_is_bound_or_has_failed_is_not_in_pre_bind() -> None:
    pods = PodsInPreBind()
    pods.add("uid")
    pods.remove("uid")
    pods.remove("never there")
    assert not pods.cancel("uid", "too late")
    assert not pods.cancel("never there", "who?")


# --- in a cluster ---------------------------------------------------------------------------------------------------


class Preparing(PluginBase):
    """Its pre_bind of pods named modest takes a minute."""

    @hookimpl
    def pre_bind_pre_flight(self, pod: Pod) -> PreFlight | None:
        return PreFlight()

    @hookimpl
    async def pre_bind(self, pod: Pod) -> None:
        if pod.name != "modest":
            return
        try:
            await trio.sleep(60)
        except trio.Cancelled:
            self.log.append("stopped")
            raise


class Doorman(PluginBase):
    """Lets pods named modest wait for a minute in permit."""

    @hookimpl
    def permit(self, pod: Pod) -> Wait | None:
        return Wait(60) if pod.name == "modest" else None


@pytest.mark.parametrize(
    ("plugin", "failure"),
    [
        (Preparing, 'running PreBind plugin "Preparing": preempted by DefaultPreemption'),
        (Doorman, "waiting on permit for pod: preempted"),
    ],
)
async def test_preempting_a_pod_in_its_binding_cycle_does_not_delete_it(
    plugin: type[PluginBase], failure: str, autojump_clock: MockClock
) -> None:
    Preparing.log.clear()
    async with virtual_cluster(nodes=[node("n", cpu=3)], plugins=[plugin]) as cluster:
        modest = await cluster.create(pod("modest", cpu=2, priority=0))
        await trio.sleep(5)
        assert cluster.pod("modest").node_name == ""
        await cluster.create(pod("grand", cpu=2, priority=100))
        await trio.sleep(20)
        assert cluster.pod("grand").node_name == "n"
        there = cluster.pod("modest")
        assert (there.uid, there.node_name, there.metadata.deletion_timestamp) == (modest.uid, "", None)
        assert not [one for one in there.status.conditions or () if one.type == "DisruptionTarget"]
        (event,) = cluster.events("Preempted")
        grand = cluster.pod("grand")
        assert event.message == f"Preempted by pod {grand.uid} on node n (in kube-scheduler memory)."
        assert event.involved_object.name == "modest"
        assert failure in [one.message for one in cluster.events("FailedScheduling", about="modest")]
    assert Preparing.log == (["stopped"] if plugin is Preparing else [])


async def test_a_pod_preempted_in_its_binding_cycle_is_scheduled_again(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=3)], plugins=[Preparing]) as cluster:
        await cluster.create(pod("modest", cpu=2, priority=0))
        await trio.sleep(5)
        await cluster.create(pod("grand", cpu=2, priority=100))
        await trio.sleep(20)
        await cluster.create(node("second", cpu=3))
        await cluster.settle()
        assert cluster.placements() == {"default/grand": "n", "default/modest": "second"}
