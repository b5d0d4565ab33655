import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import (
    Action,
    EventRegistration,
    Hint,
    NodeView,
    Pod,
    PostFilterResult,
    Resource,
    Status,
    failure,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


async def test_a_plugin_that_fails_at_pre_enqueue_is_named_in_the_log(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Stumbling(PluginBase):
        @hookimpl
        def pre_enqueue(self, pod: Pod) -> None:
            raise RuntimeError("cannot tell")

    async with virtual_cluster(nodes=1, plugins=[Stumbling]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(5)
        text = "plugin Stumbling failed at pre_enqueue: pre_enqueue raised RuntimeError: cannot tell"
        assert caplog.text.count(text) == 1


async def test_a_failing_hint_is_logged_and_the_pod_is_requeued(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Hinting(PluginBase):
        @hookimpl
        def filter_node(self, node: NodeView) -> Status | None:
            return None if node.name == "good" else unschedulable("not good")

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            def hint(pod: Pod, old: object, new: object) -> Hint:
                raise RuntimeError("no idea")

            return [on(Resource.NODE, Action.ADD, hint)]

    async with virtual_cluster(nodes=1, plugins=[Hinting]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(3)
        await cluster.create(node("good"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "good"
        assert "plugin Hinting failed at hint: hint raised RuntimeError: no idea" in caplog.text


async def test_a_terminating_pod_is_not_scheduled(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, scheduler=False) as cluster:
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "finalizers": ["example.com/wait"]},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        }
        await cluster.create(manifest)
        await cluster.delete(manifest)
        await cluster.start_scheduler()
        await cluster.settle()
        assert cluster.pod("p").node_name == ""
        (event,) = cluster.events(about="p")
        assert (event.reason, event.message) == ("FailedScheduling", "skip schedule deleting pod: default/p")


async def test_post_filter_plugins_are_called_in_order_until_one_succeeds(autojump_clock: MockClock) -> None:
    class First(PluginBase):
        @hookimpl
        async def post_filter(self, pod: Pod) -> PostFilterResult:
            await trio.sleep(1)
            self.log.append("first")
            return PostFilterResult(unschedulable("First sees no way"))

    class Second(PluginBase):
        @hookimpl
        def post_filter(self, pod: Pod) -> PostFilterResult:
            self.log.append("second")
            return PostFilterResult(unschedulable("nor does Second"))

    async with virtual_cluster(nodes=1, plugins=[First, Second]) as cluster:
        await cluster.create(pod("p", cpu=64))
        await cluster.settle()
        assert (First.log, Second.log) == (["first"], ["second"])
        (event,) = cluster.events("FailedScheduling")
        preemption = "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        assert event.message == (
            "0/1 nodes are available: 1 Insufficient cpu. "
            f"no new claims to deallocate, {preemption}, First sees no way, nor does Second"
        )


WITHOUT_PREEMPTION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}
"""


async def test_a_nomination_is_written_and_its_resources_are_kept_free(autojump_clock: MockClock) -> None:
    class Nominating(PluginBase):
        @hookimpl
        def post_filter(self, pod: Pod) -> PostFilterResult:
            return PostFilterResult(nominated_node_name="node-1")

    async with virtual_cluster(nodes=1, plugins=[Nominating], config=WITHOUT_PREEMPTION) as cluster:
        lodger = await cluster.create(pod("lodger", cpu=3))
        await trio.sleep(3)
        await cluster.create(pod("important", cpu=3, priority=10))
        await trio.sleep(3)
        assert cluster.pod("important").nominated_node_name == "node-1"
        await cluster.create(pod("upstart", cpu=3, priority=1))
        await cluster.delete(lodger)
        await cluster.settle()
        assert cluster.placements() == {"default/important": "node-1", "default/upstart": ""}
        assert cluster.pod("important").nominated_node_name == ""


async def test_a_failing_post_filter_ends_the_phase(autojump_clock: MockClock) -> None:
    class Raising(PluginBase):
        @hookimpl
        async def post_filter(self, pod: Pod) -> PostFilterResult:
            raise RuntimeError("out of order")

    class Never(PluginBase):
        @hookimpl
        def post_filter(self, pod: Pod) -> PostFilterResult:
            self.log.append("asked")
            return PostFilterResult(failure("never"))

    async with virtual_cluster(nodes=1, plugins=[Raising, Never]) as cluster:
        await cluster.create(pod("p", cpu=64))
        await cluster.settle()
        assert Never.log == []
        (event,) = cluster.events("FailedScheduling")
        problem = 'running PostFilter plugin "Raising": post_filter raised RuntimeError: out of order'
        assert event.message == f"0/1 nodes are available: 1 Insufficient cpu. {problem}"


async def test_a_pod_deleted_during_post_filter_is_not_queued_again(autojump_clock: MockClock) -> None:
    class Thinker(PluginBase):
        @hookimpl
        async def post_filter(self, pod: Pod) -> None:
            self.log.append(pod.name)
            await trio.sleep(5)

    async with virtual_cluster(nodes=1, plugins=[Thinker]) as cluster:
        doomed = await cluster.create(pod("p", cpu=64))
        await trio.sleep(2)
        await cluster.delete(doomed)
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(1)
        await cluster.create(node("n", cpu=64))
        await cluster.settle()
        assert Thinker.log == ["p"]
        assert cluster.pod("p").node_name


async def test_slow_decisions_leave_time_to_other_tasks(autojump_clock: MockClock) -> None:
    class Slow(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod) -> None:
            self.log.append(pod.name)
            autojump_clock.jump(1.0)

    Slow.log.clear()
    async with virtual_cluster(nodes=1, plugins=[Slow]) as cluster:
        for number in range(20):
            await cluster.create(pod(f"p{number}", labels={"n": str(number)}))
        while not Slow.log:
            await trio.lowlevel.checkpoint()
        for _turn in range(20):  # like a request that renews the lease
            await trio.lowlevel.checkpoint()
        assert len(Slow.log) <= 2
        await cluster.settle()
        assert all(one.node_name for one in cluster.pods())
