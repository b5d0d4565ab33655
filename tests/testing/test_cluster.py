"""What a virtual cluster says when a test, or a plugin in it, goes wrong."""

import gc
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import trio
import trio.lowlevel
from attrs import define
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import CustomResource, ObjectMeta, Pod, Wait, hookimpl
from trio_sched.testing import Refused, UnknownNode, custom_resource_definition, metadata, namespace, node, pod
from trio_sched.testing.cluster import NotSettled, _is_frozen_by_others, virtual_cluster
from trio_sched.testing.real_time_limit import RealTimeExceeded


async def test_a_pod_on_a_node_that_does_not_exist_is_an_error_that_names_both(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        with pytest.raises(UnknownNode, match="pod default/p is on node 'node-11', but there is no such node"):
            await cluster.create(pod("p", node_name="node-11"))
        await cluster.create(pod("p", node_name="node-11"), check_node=False)
        await cluster.create(node("node-3"))
        await cluster.create(pod("q", node_name="node-3"))


async def test_a_namespace_that_is_missing_is_named_with_the_mend(autojump_clock: MockClock) -> None:
    async with virtual_cluster(scheduler=False) as cluster:
        with pytest.raises(Refused, match=r'namespaces "b" not found; make it first: .*create\(namespace\(\'b\'\)\)'):
            await cluster.create(pod("p", namespace="b"))
        await cluster.create(namespace("b"))
        await cluster.create(pod("p", namespace="b"))


class Seat(msgspec.Struct, frozen=True):
    """A custom resource."""

    row: int = 0
    metadata: ObjectMeta = ObjectMeta()


SEAT = CustomResource("example.com", "v1", "Seat", type=Seat)


async def test_objects_of_what_plugins_declare_are_created_once_it_is_defined(autojump_clock: MockClock) -> None:
    class Seats(PluginBase):
        watches = (SEAT,)

        @hookimpl
        def reserve(self) -> None: ...

    one = Seat(row=3, metadata=metadata("one", "default"))
    async with virtual_cluster(plugins=[Seats]) as cluster:
        with pytest.raises(Refused, match="no resource of kind Seat"):
            await cluster.create(one)
        await cluster.create(custom_resource_definition(SEAT))
        assert (await cluster.create(one)).row == 3
    async with virtual_cluster(scheduler=False) as cluster:
        with pytest.raises(TypeError, match=r"what kind Seat is of is not known: .* name it in custom_resources="):
            await cluster.create(one)


async def test_why_the_scheduler_has_ended_is_told_where_a_pod_is_looked_for(autojump_clock: MockClock) -> None:
    class Ending(PluginBase):
        @hookimpl
        async def run(self) -> None:
            await trio.sleep(1)
            raise ValueError("no more seats")

    ended = "no scheduler runs: .* has ended with: background task of plugin 'Ending' failed: ValueError: no more seats"

    async def look() -> None:
        async with virtual_cluster(nodes=1, plugins=[Ending]) as cluster:
            await trio.sleep(2)
            await cluster.create(pod("p"))
            cluster.assert_scheduled("p")

    with pytest.raises(AssertionError, match=ended):
        await look()


@define
class CountingClock:
    """A clock that goes on by a hundredth of a second each time it is read."""

    readings: int = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.readings / 100


def spinning(name: str, spin: Callable[[Any], Any]) -> type[Any]:
    class Spinning(PluginBase):
        @hookimpl
        async def run(self) -> None:
            await spin(self)

        @hookimpl
        def reserve(self, pod: Pod) -> None: ...

    Spinning.name = name
    return Spinning


async def settle_with(plugin: type[Any], obj: Any) -> None:
    async with virtual_cluster(
        nodes=1, plugins=[plugin], real_seconds=10, real_clock=CountingClock(), scheduler=False
    ) as cluster:
        await cluster.create(obj)
        await cluster.start_scheduler()
        await cluster.settle()


async def test_a_task_that_never_lets_time_pass_ends_the_test_and_is_named(autojump_clock: MockClock) -> None:
    async def spin(_plugin: Any) -> None:
        await trio.sleep(5)
        while True:
            await trio.lowlevel.checkpoint()

    with pytest.raises(RealTimeExceeded) as caught:
        await settle_with(spinning("Spinner", spin), pod("p"))
    text = str(caught.value)
    assert text.startswith("the cluster was busy for 10 s of real time, and the test still waits at 5.0 s of its clock")
    assert "most steps were those of background task of plugin Spinner (" in text
    assert "test_cluster.py:" in text


async def test_a_plugin_that_changes_the_cluster_for_ever_ends_the_test(autojump_clock: MockClock) -> None:
    async def spin(plugin: Any) -> None:
        while True:
            await trio.sleep(0.001)
            patch = {"metadata": {"annotations": {"time": str(trio.current_time())}}}
            await plugin.handle.patch("PersistentVolumeClaim", "c", patch, namespace="default")

    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "c", "namespace": "default"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    with pytest.raises(RealTimeExceeded, match="background task of plugin Changer"):
        await settle_with(spinning("Changer", spin), claim)


async def test_what_takes_long_in_several_calls_of_the_test_is_fine(autojump_clock: MockClock) -> None:
    clock = CountingClock()
    async with virtual_cluster(nodes=1, real_seconds=5, real_clock=clock) as cluster:
        for number in range(20):
            await cluster.create(pod(f"p{number}", cpu="1m"))
            await cluster.settle()
    assert clock() > 5


async def test_the_garbage_collector_of_the_test_process_is_left_as_it_was(autojump_clock: MockClock) -> None:
    gc.unfreeze()  # whatever other tests have left
    _is_frozen_by_others.cache_clear()
    async with virtual_cluster(nodes=1):
        assert gc.get_freeze_count() > 0  # as in a scheduler
    assert gc.get_freeze_count() == 0


async def test_a_cluster_that_never_settles_says_what_happened_last(autojump_clock: MockClock) -> None:
    class Waits(PluginBase):
        @hookimpl
        def permit(self, pod: Pod) -> Wait:
            return Wait(5)

    async with virtual_cluster(nodes=1, plugins=[Waits]) as cluster:
        await cluster.create(pod("p"))
        with pytest.raises(NotSettled, match=r"FailedScheduling about p: .* timeout after waiting 5s at plugin Waits"):
            await cluster.settle(within_seconds=300)
