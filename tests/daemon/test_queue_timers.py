from itertools import pairwise

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import EventRegistration, Handle, NodeView, Pod, Status, hookimpl, unschedulable
from trio_sched.simulator.storage.object_store import Change as StoreChange
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


class Choosy:
    """Rejects every pod while ``refuses`` is set, and registers for no event."""

    name = "Choosy"
    refuses = True

    def __init__(self, args: None, handle: Handle) -> None:
        self.attempts: list[float] = []

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("I do not feel like it") if Choosy.refuses else None

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return []


async def bound_at(cluster: VirtualCluster, name: str, *, within_seconds: float) -> float:
    """When the pod got its node."""
    bound = trio.Event()

    def see(change: StoreChange) -> None:
        fields = change.current.fields
        if fields["metadata"]["name"] == name and fields["spec"].get("nodeName"):
            bound.set()

    stop_listening = cluster.api.store.collection("pods").listen(see)
    with trio.fail_after(within_seconds):
        await bound.wait()
    stop_listening()
    return trio.current_time()


@pytest.mark.parametrize("pops_from_backoff", [True, False])
async def test_a_pod_requeued_in_backoff_is_scheduled_when_the_backoff_ends(
    autojump_clock: MockClock, pops_from_backoff: bool
) -> None:
    async with virtual_cluster(gates={"SchedulerPopFromBackoffQ": pops_from_backoff}, nodes=1) as cluster:
        await cluster.create(pod("p", cpu=8))
        await trio.sleep(0.3)
        await cluster.create(node("big", cpu=8))
        moment = await bound_at(cluster, "p", within_seconds=25)
        # With the gate it is taken at once, because nothing else is ready.
        assert moment < 0.5 if pops_from_backoff else 1.0 <= moment < 2.5


async def test_the_backoff_doubles_with_each_failure(autojump_clock: MockClock) -> None:
    failures: list[float] = []

    class Failing(PluginBase):
        @hookimpl
        def reserve(self, pod: Pod) -> None:
            failures.append(trio.current_time())
            raise RuntimeError("again")

    async with virtual_cluster(nodes=1, plugins=[Failing]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(40)
    pauses = [later - earlier for earlier, later in pairwise(failures)]
    # The window of a second in which backoffs end together rounds each of them up.
    for pause, nominal in zip(pauses, (1, 2, 4, 8, 10), strict=False):
        assert nominal <= pause <= nominal + 1.1
    assert len(failures) >= 5


async def test_an_unschedulable_pod_is_retried_after_five_minutes(autojump_clock: MockClock) -> None:
    Choosy.refuses = True
    async with virtual_cluster(nodes=1, plugins=[Choosy]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(60)
        Choosy.refuses = False
        await cluster.create(node("another"))
        await trio.sleep(230)
        assert cluster.pod("p").node_name == ""
        assert 300 < await bound_at(cluster, "p", within_seconds=60) <= 331
