import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.engine.evaluation.hook_steps import group_pre_binds
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.plugin_api import CycleState, EventRegistration, Pod, PreFlight, Status, Wait, hookimpl, unschedulable
from trio_sched.plugin_api.status import SKIP
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


def hooks(names: str) -> list[BoundHook]:
    return [BoundHook(name, "pre_bind", lambda: None) for name in names]


@pytest.mark.parametrize(
    ("plugins", "skipped", "parallel", "expected"),
    [
        ("abc", "", "", ["a", "b", "c"]),
        ("abc", "b", "", ["a", "c"]),
        ("abc", "", "abc", ["abc"]),
        ("abcd", "", "bc", ["a", "bc", "d"]),
        ("abcd", "", "ad", ["a", "b", "c", "d"]),
        ("abcd", "b", "abc", ["ac", "d"]),
        ("abcd", "c", "ad", ["a", "b", "d"]),
        ("ab", "ab", "ab", []),
    ],
)
def test_consecutive_plugins_that_allow_parallel_pre_bind_form_a_group(
    plugins: str, skipped: str, parallel: str, expected: list[str]
) -> None:
    groups = group_pre_binds(hooks(plugins), frozenset(skipped), frozenset(parallel))
    assert ["".join(hook.plugin for hook in group) for group in groups] == expected


async def test_a_failing_pre_flight_removes_the_pod_from_the_waiting_pods(autojump_clock: MockClock) -> None:
    class Cautious(PluginBase):
        @hookimpl
        def permit(self) -> Wait | None:
            return None if self.log else Wait(60)

        @hookimpl
        def pre_bind_pre_flight(self) -> None:
            self.log.append("asked")
            if len(self.log) == 1:
                raise RuntimeError("not ready")

        @hookimpl
        def pre_bind(self) -> None: ...

    async with virtual_cluster(nodes=1, plugins=[Cautious]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(10)
        assert cluster.pod("p").node_name == "node-1"
        (event,) = cluster.events("FailedScheduling")
        assert (
            event.message == 'running PreBindPreFlight "Cautious": pre_bind_pre_flight raised RuntimeError: not ready'
        )


async def test_a_pre_flight_may_return_success_or_skip_only(autojump_clock: MockClock) -> None:
    class Confused(PluginBase):
        @hookimpl
        def pre_bind_pre_flight(self) -> Status:
            return unschedulable("what?")

        @hookimpl
        def pre_bind(self) -> None: ...

    async with virtual_cluster(nodes=1, plugins=[Confused]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(0.5)
        (event,) = cluster.events("FailedScheduling")
        assert event.message == (
            'PreBindPreFlight Confused returned "Unschedulable", which is unsupported. '
            "It is supposed to return Success, Skip, or Error status"
        )


async def test_pre_bind_is_not_called_after_pre_flight_skips(autojump_clock: MockClock) -> None:
    class Idle(PluginBase):
        @hookimpl
        def pre_bind_pre_flight(self) -> Status:
            return SKIP

        @hookimpl
        def pre_bind(self) -> None:
            self.log.append("prepared")

    async with virtual_cluster(nodes=1, plugins=[Idle]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert (cluster.pod("p").node_name, Idle.log) == ("node-1", [])


async def test_the_first_failing_pre_bind_of_a_group_cancels_the_others(autojump_clock: MockClock) -> None:
    class Slow(PluginBase):
        @hookimpl
        def pre_bind_pre_flight(self) -> PreFlight:
            return PreFlight(allow_parallel=True)

        @hookimpl
        async def pre_bind(self) -> None:
            try:
                await trio.sleep(1000)
            except trio.Cancelled:
                self.log.append("cancelled")
                raise

    class Failing(PluginBase):
        @hookimpl
        def pre_bind_pre_flight(self) -> PreFlight:
            return PreFlight(allow_parallel=True)

        @hookimpl
        async def pre_bind(self) -> Status:
            await trio.sleep(1)
            return unschedulable("no disk")

    async with virtual_cluster(nodes=1, plugins=[Slow, Failing]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1.5)
        assert Slow.log == ["cancelled"]
        (event,) = cluster.events("FailedScheduling")
        assert event.message == "no disk"


async def test_a_failed_binding_cycle_requeues_pods_that_wait_for_its_resources(autojump_clock: MockClock) -> None:
    class Unwilling(PluginBase):
        @hookimpl
        async def pre_bind(self, pod: Pod) -> Status | None:
            await trio.sleep(5)
            return unschedulable("changed my mind") if pod.name == "first" else None

    nodes = [node("n", cpu=1)]
    async with virtual_cluster(nodes=nodes, plugins=[Unwilling], kubelets=False) as cluster:
        await cluster.create(pod("first", cpu=1))
        await trio.sleep(1)
        await cluster.create(pod("second", cpu=1))
        await trio.sleep(12)
        assert cluster.placements() == {"default/first": "", "default/second": "n"}


async def test_pods_to_activate_are_moved_after_a_slow_post_bind(autojump_clock: MockClock) -> None:
    class Door(PluginBase):
        is_open = False

        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            if pod.name == "behind" and not self.is_open:
                self.behind = pod
                return unschedulable("the door is shut")
            return None

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return []

        @hookimpl
        async def post_bind(self, pod: Pod, state: CycleState) -> None:
            await trio.sleep(5)
            self.is_open = True
            if pod.name == "key":
                state.pods_to_activate["default/behind"] = self.behind

    async with virtual_cluster(nodes=1, plugins=[Door], kubelets=False) as cluster:
        await cluster.create(pod("behind"))
        await trio.sleep(1)
        await cluster.create(pod("key"))
        await trio.sleep(6)
        assert cluster.pod("behind").node_name == "node-1"


async def test_a_post_bind_that_fails_is_logged_and_the_pod_stays_bound(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Sorry(PluginBase):
        @hookimpl
        async def post_bind(self) -> None:
            raise RuntimeError("too late")

    async with virtual_cluster(nodes=1, plugins=[Sorry]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
        assert "plugin Sorry failed at post_bind: post_bind raised RuntimeError: too late" in caplog.text
        assert cluster.events("FailedScheduling") == []


async def test_a_plugin_can_allow_its_waiting_pod_from_a_background_task(autojump_clock: MockClock) -> None:
    class Timer(PluginBase):
        @hookimpl
        def permit(self) -> Wait:
            return Wait(60)

        @hookimpl
        def score_node(self) -> int:
            return 0

        @hookimpl
        async def run(self) -> None:
            await trio.sleep(20)
            for waiting in list(self.handle.waiting_pods().values()):
                assert waiting.pending_plugins == {"Timer"}
                waiting.allow("Timer")

    async with virtual_cluster(nodes=1, plugins=[Timer]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(19)
        assert cluster.pod("p").node_name == ""
        assert cluster.pod("p").nominated_node_name == "node-1"
        await trio.sleep(1.1)
        assert cluster.pod("p").node_name == "node-1"
        assert cluster.pod("p").nominated_node_name == ""
