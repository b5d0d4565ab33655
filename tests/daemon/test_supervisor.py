import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins.background_tasks import PluginTaskFailed
from trio_sched.daemon.supervisor import EVENT_FLUSH_SECONDS, SHUTDOWN_GRACE_SECONDS
from trio_sched.engine.hooks.plugin_errors import PluginError
from trio_sched.plugin_api import Handle, NodeView, Pod, Wait, hookimpl
from trio_sched.simulator.storage.object_store import Change as StoreChange
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.verbosity import V3

LEASES = "leases.coordination.k8s.io"


async def test_nothing_is_scheduled_before_the_first_lists_are_complete(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)], scheduler=False) as cluster:
        await cluster.create(pod("there", cpu=1, node_name="n"))
        await cluster.create(pod("new", cpu=1))
        cluster.api.faults.set_latency(20, verb="list", resource="pods")
        await cluster.start_scheduler()
        assert trio.current_time() == pytest.approx(20)
        await cluster.settle()
        assert cluster.placements() == {"default/new": "", "default/there": "n"}


@pytest.mark.parametrize("delay_cache", ["false", "true"])
@pytest.mark.parametrize("leader_elect", [False, True])
async def test_it_can_be_stopped_while_the_api_server_has_not_answered_yet(
    autojump_clock: MockClock, leader_elect: bool, delay_cache: str
) -> None:
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
delayCacheUntilActive: {delay_cache}
"""
    async with virtual_cluster(scheduler=False, leader_elect=leader_elect, config=config) as cluster:
        cluster.api.stop()
        scheduler = await cluster.start_scheduler(wait=False)
        await trio.sleep(5)
        assert scheduler.running
        with trio.fail_after(1):
            await scheduler.stop()


async def test_a_stop_during_the_first_lists_releases_the_lease(autojump_clock: MockClock) -> None:
    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
delayCacheUntilActive: true
"""
    async with virtual_cluster(leader_elect=True, config=config, scheduler=False) as cluster:
        cluster.api.faults.set_latency(1000, verb="list", resource="nodes")
        scheduler = await cluster.start_scheduler()
        await trio.sleep(5)
        (lease,) = cluster.api.store.collection(LEASES).objects.values()
        assert lease.fields["spec"]["holderIdentity"] == "scheduler-1"
        await scheduler.stop()
        (lease,) = cluster.api.store.collection(LEASES).objects.values()
        assert lease.fields["spec"]["holderIdentity"] == ""


async def test_binds_under_way_are_finished_before_it_stops(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, bind_latency_seconds=5) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        began = trio.current_time()
        await cluster.stop_scheduler()
        assert trio.current_time() - began == pytest.approx(4)
        assert cluster.pod("p").node_name == "node-1"
        assert len(cluster.events("Scheduled")) == 1


async def test_pods_created_after_the_stop_are_not_scheduled(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, bind_latency_seconds=5) as cluster:
        await cluster.create(pod("before"))
        await trio.sleep(1)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.stop_scheduler)
            await trio.sleep(0.5)
            await cluster.create(pod("after"))
        await cluster.settle()
        assert cluster.placements() == {"default/before": "node-1", "default/after": ""}


@pytest.mark.parametrize(("bind_seconds", "released_after"), [(6, 5), (25, SHUTDOWN_GRACE_SECONDS)])
async def test_nothing_is_bound_after_the_lease_is_released(
    bind_seconds: float, released_after: float, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A bind after the release could overcommit a node that the next leader has already used."""
    async with virtual_cluster(nodes=2, leader_elect=True, kubelets=False) as cluster:
        bound: list[float] = []
        released: list[float] = []

        def see_pod(change: StoreChange) -> None:
            if change.current.fields["spec"].get("nodeName"):
                bound.append(trio.current_time())

        def see_lease(change: StoreChange) -> None:
            if not change.current.fields["spec"]["holderIdentity"]:
                released.append(trio.current_time())

        cluster.api.store.collection("pods").listen(see_pod)
        cluster.api.store.collection(LEASES).listen(see_lease)
        await trio.sleep(5)
        cluster.api.faults.set_latency(bind_seconds, verb="bind", resource="pods")
        cluster.api.faults.set_latency(25, verb="create", resource="events")
        for number in range(100):  # three times what is bound at once
            await cluster.create(pod(f"p{number}"))
        await trio.sleep(7)
        stopped = trio.current_time()
        await cluster.stop_scheduler()
        assert released == [pytest.approx(stopped + released_after)]
        assert len(bound) < 100
        assert max(bound, default=0.0) <= released[0]
        is_given_up = "binds still under way after 10 s are given up" in caplog.text
        assert is_given_up == (bind_seconds > SHUTDOWN_GRACE_SECONDS)


async def test_a_stop_waits_for_events_only_up_to_its_limit(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        cluster.api.faults.set_latency(1000, verb="create", resource="events")
        await cluster.create(pod("p"))
        await trio.sleep(1)
        began = trio.current_time()
        await cluster.stop_scheduler()
        assert trio.current_time() - began == pytest.approx(EVENT_FLUSH_SECONDS)
        assert cluster.events("Scheduled") == []


async def test_waiting_pods_do_not_delay_a_stop(autojump_clock: MockClock) -> None:
    class Gate(PluginBase):
        @hookimpl
        def permit(self, pod: Pod) -> Wait:
            return Wait(600)

    async with virtual_cluster(nodes=1, plugins=[Gate]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        began = trio.current_time()
        await cluster.stop_scheduler()
        assert trio.current_time() == began
        assert cluster.pod("p").node_name == ""


async def test_background_tasks_of_plugins_run_from_the_first_list_to_the_stop(autojump_clock: MockClock) -> None:
    class Ticker(PluginBase):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

        @hookimpl
        async def run(self) -> None:
            self.log.append(f"starts with {len(self.handle.nodes)} nodes")
            try:
                await trio.sleep_forever()
            finally:
                self.log.append("ends")

    async with virtual_cluster(nodes=3, plugins=[Ticker]) as cluster:
        await trio.sleep(1)
        assert Ticker.log == ["starts with 3 nodes"]
        await cluster.stop_scheduler()
        assert Ticker.log[1:] == ["ends"]


async def test_a_background_task_that_ends_is_no_failure(autojump_clock: MockClock) -> None:
    class Once(PluginBase):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

        @hookimpl
        async def run(self) -> None:
            self.log.append("ran")

    async with virtual_cluster(nodes=1, plugins=[Once]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert (Once.log, cluster.pod("p").node_name) == (["ran"], "node-1")


async def test_a_failing_background_task_ends_the_scheduler_and_names_its_plugin(autojump_clock: MockClock) -> None:
    class Doomed(PluginBase):
        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(3)
            raise OSError("no such device")

    async with virtual_cluster(nodes=1, plugins=[Doomed], leader_elect=True) as cluster:
        failure = await cluster.scheduler.failed()
        assert trio.current_time() == pytest.approx(3)
        assert isinstance(failure, PluginTaskFailed)
        assert str(failure) == "background task of plugin 'Doomed' failed: OSError: no such device"
        assert isinstance(failure.__cause__, OSError)
        (lease,) = cluster.api.store.collection(LEASES).objects.values()
        assert lease.fields["spec"]["holderIdentity"] == ""


async def test_a_plugin_whose_constructor_raises_keeps_the_scheduler_from_starting(autojump_clock: MockClock) -> None:
    class Broken(PluginBase):
        def __init__(self, args: None, handle: Handle) -> None:
            raise ValueError("I need a GPU")

        @hookimpl
        def score_node(self, node: NodeView) -> int:
            return 0

    with pytest.raises(PluginError, match="I need a GPU"):
        async with virtual_cluster(nodes=1, plugins=[Broken]):
            pass


async def test_the_log_says_when_the_lists_are_complete(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(V3, "trio_sched.daemon.supervisor")
    async with virtual_cluster(nodes=1):
        assert [r.message for r in caplog.records if r.name.endswith("supervisor")] == ["Handlers synced"]
