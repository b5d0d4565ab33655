"""Pods and nodes as objects, pods that are pending, and events about anything."""

from typing import Any, ClassVar

import pytest
import trio
from msgspec import Struct
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import (
    ApiRequestFailed,
    CustomResource,
    EventRegistration,
    Handle,
    Input,
    NodeView,
    ObjectGone,
    ObjectMeta,
    OutcomeUnknown,
    Pod,
    QueueState,
    Status,
    Wait,
    WriteConflict,
    hookimpl,
    unschedulable,
)
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import FakeHandle, make_table, node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster


class Widget(Struct, frozen=True):
    metadata: ObjectMeta


WIDGET = CustomResource("example.com", "v1", "Widget", type=Widget)


class Curious(PluginBase):
    """Rejects, gates or holds pods as their labels say."""

    watches: ClassVar = (WIDGET, "Namespace")
    handles: ClassVar[list[Handle]] = []

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        type(self).handles.append(handle)

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("gated") if "gate" in pod.labels else None

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return unschedulable("rejected") if "reject" in pod.labels else None

    @hookimpl
    def permit(self, pod: Pod) -> Wait | None:
        return Wait(1000) if "hold" in pod.labels else None

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return []


@pytest.fixture(autouse=True)
def _forget() -> None:
    Curious.handles.clear()


def handle() -> Handle:
    return Curious.handles[-1]


def state_of(name: str) -> QueueState | None:
    found = handle().pending_pod("default", name)
    return None if found is None else found.state


async def test_pending_pods_with_what_the_queue_knows(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Curious]) as cluster:
        began = trio.current_time()
        for name in ("gate", "reject", "hold", "none"):
            await cluster.create(pod(name, labels={name: ""}))
        await cluster.create(pod("foreign", scheduler_name="another"))
        await trio.sleep(20)
        found = {one.pod.name: one for one in handle().pending_pods()}
        assert {name: one.state for name, one in found.items()} == {
            "gate": QueueState.GATED,
            "reject": QueueState.UNSCHEDULABLE,
            "hold": QueueState.IN_FLIGHT,
        }
        assert all(one.added_at == pytest.approx(began, abs=1) for one in found.values())
        assert [found[name].attempts for name in ("gate", "reject", "hold")] == [0, 1, 1]
        assert found["gate"].first_attempt_at is None
        assert found["reject"].first_attempt_at == pytest.approx(began, abs=1)
        assert [found[name].rejected_by for name in ("gate", "reject", "hold")] == [{"Curious"}, {"Curious"}, set()]
        assert {one.backoff_ends_at for one in found.values()} == {None}
        handle().waiting_pods()[found["hold"].pod.uid].allow("Curious")
        await trio.sleep(1)
        assert handle().pending_pod("default", "hold") is None
        assert cluster.scheduler.assembly is not None
        assert cluster.scheduler.assembly.scheduler.queue.popped == {}


async def test_a_pod_in_backoff_says_until_when_and_one_that_is_bound_is_in_flight(autojump_clock: MockClock) -> None:
    gates = {"SchedulerPopFromBackoffQ": False}
    async with virtual_cluster(nodes=1, plugins=[Curious], gates=gates, bind_latency_seconds=5) as cluster:
        rejected = await cluster.create(pod("reject", labels={"reject": ""}))
        await cluster.create(pod("p"))
        await trio.sleep(0.2)
        assert state_of("p") is QueueState.IN_FLIGHT
        handle().retry_after(rejected, 0)
        await trio.sleep(0.2)
        found = handle().pending_pod("default", "reject")
        assert found is not None
        assert found.state is QueueState.BACKOFF
        assert found.backoff_ends_at == pytest.approx(trio.current_time() + 0.6, abs=0.3)
        await trio.sleep(10)
        assert state_of("p") is None
        assert state_of("reject") is QueueState.UNSCHEDULABLE


async def test_pods_and_nodes_are_read_as_objects(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, plugins=[Curious]) as cluster:
        await cluster.create(pod("placed"))
        await cluster.create(pod("foreign", scheduler_name="another"))
        await trio.sleep(1)
        assert {one.name for one in handle().objects("Node")} == {"node-1", "node-2"}
        assert {one.name: bool(one.node_name) for one in handle().objects("Pod")} == {"placed": True, "foreign": False}
        found = handle().object("Pod", "placed", "default")
        assert found is not None
        assert found.node_name == cluster.pod("placed").node_name
        assert handle().object("Node", "node-2") is not None
        assert handle().object("Node", "node-3") is None
        before = handle().version("Node")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.patch, node("node-1"), {"metadata": {"labels": {"a": "b"}}})
            assert await handle().changed("Node", "node-1", timeout_seconds=5)
        assert handle().version("Node") > before
        one = handle().object("Node", "node-1")
        assert one is not None
        assert one.labels["a"] == "b"


async def test_results_that_depend_on_pods_read_as_objects_are_not_cached_too_long(autojump_clock: MockClock) -> None:
    class AtMostOne(PluginBase):
        depends_on: ClassVar[frozenset[Any]] = frozenset()

        @hookimpl
        def sign(self, pod: Pod) -> str:
            return "same"

        @hookimpl
        def pre_filter(self) -> Status | None:
            taken = [one for one in self.handle.objects("Pod") if one.node_name]
            return unschedulable("one is enough") if taken else None

    async with virtual_cluster(nodes=1, plugins=[AtMostOne]) as cluster:
        for name in "abc":
            await cluster.create(pod(name))
            await trio.sleep(5)
        assert [cluster.pod(name).node_name for name in "abc"] == ["node-1", "", ""]


async def test_pods_and_nodes_are_written(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Curious]) as cluster:
        container = {"name": "c", "image": "i"}
        made = await handle().create(
            "Pod", {"metadata": {"name": "made"}, "spec": {"containers": [container]}}, namespace="default"
        )
        assert isinstance(made, Pod)
        await handle().patch("Pod", "made", {"metadata": {"labels": {"a": "b"}}}, namespace="default")
        assert (await handle().read("Pod", "made", namespace="default")).labels == {"a": "b"}
        await handle().delete("Pod", "made", namespace="default")
        await handle().patch("Node", "node-1", {"spec": {"unschedulable": True}})
        assert cluster.object("Node", "node-1").spec.unschedulable
        await handle().delete("Node", "node-1")
        with pytest.raises(LookupError):
            cluster.object("Node", "node-1")


async def test_pods_are_evicted_unless_a_budget_protects_them(autojump_clock: MockClock) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "safe"}}},
    }
    async with virtual_cluster(nodes=1, plugins=[Curious]) as cluster:
        await cluster.create(budget)
        await cluster.create(pod("safe", labels={"app": "safe"}))
        await cluster.create(pod("other"))
        await trio.sleep(20)
        await handle().evict(cluster.pod("other"))
        with pytest.raises(WriteConflict, match="violate the pod's disruption budget"):
            await handle().evict(cluster.pod("safe"))
        with pytest.raises(ObjectGone):
            await handle().evict(pod("never was"))
        with pytest.raises(TypeError, match="takes a pod, not str"):
            await handle().evict("safe")  # type: ignore[arg-type]  # that is the mistake
        await trio.sleep(60)
        assert [one.name for one in cluster.pods()] == ["safe"]


async def test_results_are_computed_again_when_a_plugin_says_so(autojump_clock: MockClock) -> None:
    class DataOfOthers(PluginBase):
        depends_on: ClassVar[frozenset[Any]] = frozenset({Input.NODE})
        allowed = "node-1"

        @hookimpl
        def sign(self, pod: Pod) -> str:
            return "same"

        @hookimpl
        def filter_node(self, node: NodeView) -> Status | None:
            self.handle.shared(list).append(node.name)
            if type(self).log:
                self.handle.invalidate()  # from inside of an evaluation: harmless
            return None if node.name == self.allowed else unschedulable("not now")

    async with virtual_cluster(nodes=2, plugins=[DataOfOthers]) as cluster:
        await cluster.create(pod("a"))
        await trio.sleep(1)
        assert cluster.scheduler.assembly is not None
        (profile,) = cluster.scheduler.assembly.scheduler.profiles.values()
        plugin = profile.plugins["DataOfOthers"]
        plugin.allowed = "node-2"
        await cluster.create(pod("b"))
        await trio.sleep(1)
        assert cluster.pod("b").node_name == "node-1"  # it was cached
        plugin.handle.invalidate()
        await cluster.create(pod("c"))
        await trio.sleep(1)
        assert cluster.pod("c").node_name == "node-2"
        plugin.allowed = "node-3"
        plugin.handle.invalidate()
        await cluster.create(pod("rejected"))
        await trio.sleep(30)
        assert cluster.pod("rejected").node_name == ""
        plugin.allowed = "node-2"
        plugin.handle.invalidate()
        plugin.handle.activate([cluster.pod("rejected")])  # at once, with no old result
        await trio.sleep(1)
        assert cluster.pod("rejected").node_name == "node-2"
        DataOfOthers.log.append("invalidates always")
        for name in "def":
            await cluster.create(pod(name))
        await trio.sleep(1)
        assert [cluster.pod(name).node_name for name in "def"] == ["node-2"] * 3


def said(cluster: VirtualCluster, about: str) -> list[tuple[str, str, str, str]]:
    return [
        (one.involved_object.api_version, one.involved_object.kind, one.reason, one.message)
        for one in cluster.events("Noted", about=about)
    ]


async def test_events_are_about_anything(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, plugins=[Curious], custom_resources=[WIDGET]) as cluster:
        await cluster.create(pod("p"))
        head = {"apiVersion": "example.com/v1", "kind": "Widget"}
        await cluster.create({**head, "metadata": {"name": "w", "namespace": "default"}})
        await trio.sleep(1)
        widget = handle().object(WIDGET, "w", "default")
        subjects = [
            handle().object("Pod", "p", "default"),
            handle().object("Node", "node-1"),
            widget,
            handle().object("Namespace", "default"),
        ]
        for _ in range(3):
            for subject in subjects:
                handle().record_event(subject, "Normal", "Noted", "Noting", "well")
        await cluster.settle()
        assert said(cluster, "p") == [("v1", "Pod", "Noted", "well")]
        assert said(cluster, "node-1") == [("v1", "Node", "Noted", "well")]
        assert said(cluster, "w") == [("example.com/v1", "Widget", "Noted", "well")]
        assert said(cluster, "default") == [("v1", "Namespace", "Noted", "well")]
        (event,) = cluster.events("Noted", about="w")
        assert event.series is not None
        assert event.series.count == 3


@pytest.mark.parametrize(
    ("code", "error"), [(403, ApiRequestFailed), (422, ApiRequestFailed), (404, ObjectGone), (503, OutcomeUnknown)]
)
async def test_whatever_the_api_server_refuses_is_one_kind_of_error(
    code: int, error: type[ApiRequestFailed], autojump_clock: MockClock
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Curious]) as cluster:
        handle = cluster.plugin("Curious").handle
        one = pod("p")
        await cluster.create(one)
        requests = [
            lambda: handle.read("Pod", "p", namespace="default"),
            lambda: handle.patch("Pod", "p", {}, namespace="default"),
            lambda: handle.create("Pod", {"metadata": {"name": "q"}}, namespace="default"),
            lambda: handle.delete("Pod", "p", namespace="default"),
            lambda: handle.evict(one),
        ]
        for request in requests:
            cluster.api.faults.fail_next(20, resource="pods", code=code, message="not this time")
            with pytest.raises(ApiRequestFailed, match="not this time") as caught:
                await request()
            assert type(caught.value) is error
            cluster.api.faults.clear()


@pytest.mark.parametrize(
    ("args", "error", "problem"),
    [
        ((object(), "Normal", "R", "A", "n"), TypeError, "not object"),
        (("pod", "Normal", "R", "A", "n"), TypeError, "not str"),
        ((Widget(ObjectMeta(name="w")), "Normal", "R", "A", "n"), TypeError, "not Widget"),
        ((pod("p"), "Info", "R", "A", "n"), ValueError, "type must be 'Normal' or 'Warning', not 'Info'"),
        ((pod("p"), "Normal", "", "A", "n"), ValueError, "reason must be a word"),
        ((pod("p"), "Normal", "R", None, "n"), ValueError, "action must be a word"),
        ((pod("p"), "Normal", "R", "A", 7), ValueError, "note must be a text"),
    ],
)
def test_events_that_cannot_be_meant(args: Any, error: type[Exception], problem: str) -> None:
    fake = FakeHandle()
    with pytest.raises(error, match=problem):
        fake.record_event(*args)
    assert fake.events == []


async def test_a_fake_handle_has_them_too() -> None:
    fake = FakeHandle(pending={"default/q": pod("q")}, known_objects={WIDGET: [Widget(ObjectMeta(name="w"))]})
    fake.nodes = NodeColumns(make_table([node("n")], [pod("p", node_name="n")]))
    assert [one.name for one in fake.objects("Node")] == ["n"]
    assert [one.name for one in fake.objects("Pod")] == ["p", "q"]
    assert [one.state for one in fake.pending_pods()] == [QueueState.IN_FLIGHT]
    fake.record_event(fake.object(WIDGET, "w"), "Normal", "R", "A", "n")
    fake.record_event(fake.object("Node", "n"), "Normal", "R", "A", "n")
    assert [about.metadata.name for about, _, _ in fake.events] == ["w", "n"]
    made = await fake.create(WIDGET, {"metadata": {"name": "v"}}, namespace="ns")
    assert isinstance(made, Widget)
    patched = await fake.patch(WIDGET, "v", {"metadata": {"labels": {"a": "b"}}}, namespace="ns")
    assert patched.metadata.labels == {"a": "b"}
    assert fake.object(WIDGET, "v", "ns") is patched
    assert (await fake.patch("Node", "n", {"spec": {"unschedulable": True}})).spec.unschedulable
    await fake.delete(WIDGET, "v", namespace="ns")
    assert fake.deleted == [(WIDGET, "ns/v")]
    made = await fake.create("Pod", {"metadata": {"name": "made"}}, namespace="ns")
    assert {one.name for one in fake.objects("Pod")} == {"p", "q", "made"}
    assert fake.pending["ns/made"] is made
    await fake.delete("Pod", "p", namespace="default")
    assert fake.deleted[-1] == ("Pod", "default/p")
    await fake.evict(made)
    fake.invalidate()
    assert (fake.evicted, fake.invalidations) == ([made], 1)
    fake.retry_after(pod("p"), 5)
    assert [(one.name, seconds) for one, seconds in fake.retries] == [("p", 5)]
