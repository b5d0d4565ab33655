"""Third-party plugins between the choice of a node and the binding: reserve, permit, pre_bind, bind."""

from typing import Any

import numpy as np
import pytest
import trio
from ledger import Ledger, check_nothing_left
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.plugin_api import (
    Action,
    CycleState,
    EventRegistration,
    Input,
    Int64Array,
    NodeColumns,
    Pod,
    PreFlight,
    Resource,
    Status,
    Verdicts,
    Wait,
    failure,
    hookimpl,
    on,
    pending,
    unschedulable,
)
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


class Gang(PluginBase):
    """Binds pods three at a time."""

    @hookimpl
    def permit(self, pod: Pod) -> Wait | None:
        waiting = list(self.handle.waiting_pods().values())
        if len(waiting) < 2:
            return Wait(60)
        for other in waiting:
            other.allow(self.name)
        return None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str) -> None:
        self.log.append(pod.name)
        for other in self.handle.waiting_pods().values():
            other.reject(self.name, f"{pod.name} has failed")

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        return None

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.POD, Action.ADD)]


async def test_a_gang_is_bound_when_all_its_pods_are_permitted(autojump_clock: MockClock) -> None:
    Gang.log.clear()
    async with virtual_cluster(nodes=3, plugins=[Gang]) as cluster:
        history = Ledger(cluster)
        for number in range(3):
            await trio.sleep(10)
            assert history.binds == {}
            await cluster.create(pod(f"p{number}"))
        await trio.sleep(1)
        assert len(history.binds) == 3
        assert Gang.log == []
        await cluster.settle()
        check_nothing_left(cluster)


async def test_an_incomplete_gang_frees_its_resources_after_the_timeout(autojump_clock: MockClock) -> None:
    Gang.log.clear()
    async with virtual_cluster(nodes=[node("n", cpu=2)], plugins=[Gang]) as cluster:
        await cluster.create(pod("a", cpu=1))
        await trio.sleep(1)
        assert cluster.schedulers[0].assembly.scheduler.cache.assumed_count == 1
        await trio.sleep(59.5)
        assert Gang.log == ["a"]
        assert cluster.schedulers[0].assembly.scheduler.cache.assumed_count == 0
        (event,) = cluster.events("FailedScheduling")
        assert event.message == (
            "0/1 nodes are available: 1 rejected due to timeout after waiting 1m0s at plugin Gang."
        )


async def test_a_deleted_waiting_pod_frees_its_resources_at_once(autojump_clock: MockClock) -> None:
    class Doorman(PluginBase):
        @hookimpl
        def permit(self, pod: Pod) -> Wait | None:
            return Wait(600) if pod.name == "slow" else None

    async with virtual_cluster(nodes=[node("n", cpu=1)], plugins=[Doorman]) as cluster:
        await cluster.create(pod("slow", cpu=1))
        await cluster.create(pod("next", cpu=1))
        await trio.sleep(20)
        assert cluster.pod("next").node_name == ""
        await cluster.delete(pod("slow"))
        await trio.sleep(2)
        assert cluster.pod("next").node_name == "n"
        await cluster.settle()
        check_nothing_left(cluster)


async def test_a_slow_pre_bind_delays_no_other_pod(autojump_clock: MockClock) -> None:
    class Volume(PluginBase):
        @hookimpl
        def pre_bind_pre_flight(self, pod: Pod) -> Any:
            return None if pod.name.startswith("slow") else Status(5)

        @hookimpl
        async def pre_bind(self, pod: Pod, node_name: str) -> None:
            self.log.append((pod.name, node_name))
            await trio.sleep(50)

    async with virtual_cluster(nodes=4, plugins=[Volume]) as cluster:
        history = Ledger(cluster)
        for number in range(40):
            await cluster.create(pod(f"slow-{number}", cpu="10m"))
        await cluster.create(pod("quick", cpu="10m"))
        await trio.sleep(2)
        assert cluster.pod("quick").node_name
        assert len(history.binds) == 1
        assert cluster.pod("slow-7").nominated_node_name == dict(Volume.log)["slow-7"]
        await cluster.settle()
        assert len(history.binds) == 41
        assert {p.nominated_node_name for p in cluster.pods()} == {""}
        check_nothing_left(cluster)


async def test_a_failing_pre_bind_unreserves_in_reverse_order(autojump_clock: MockClock) -> None:
    log: list[str] = []

    class First(PluginBase):
        @hookimpl
        def reserve(self) -> None:
            log.append("reserve First")

        @hookimpl
        def unreserve(self) -> None:
            log.append("unreserve First")
            raise RuntimeError("cannot")

    class Second(PluginBase):
        @hookimpl
        def reserve(self) -> None:
            log.append("reserve Second")

        @hookimpl
        def unreserve(self) -> None:
            log.append("unreserve Second")

        @hookimpl
        async def pre_bind(self) -> None:
            await trio.sleep(1)
            if log.count("reserve First") == 1:
                raise OSError("disk not found")

        @hookimpl
        async def post_bind(self, node_name: str) -> None:
            log.append(f"bound to {node_name}")

    async with virtual_cluster(nodes=1, plugins=[First, Second]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert log == [
            "reserve First",
            "reserve Second",
            "unreserve Second",
            "unreserve First",
            "reserve First",
            "reserve Second",
            "bound to node-1",
        ]
        (event,) = cluster.events("FailedScheduling")
        assert event.message == 'running PreBind plugin "Second": pre_bind raised OSError: disk not found'
        check_nothing_left(cluster)


async def test_a_pod_with_a_pending_plugin_is_requeued_without_backoff(
    autojump_clock: MockClock,
) -> None:
    class Provisioner(PluginBase):
        @hookimpl
        def reserve(self, pod: Pod) -> Status | None:
            self.log.append(trio.current_time())
            return pending("disk is being made") if len(self.log) < 4 else None

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(Resource.NODE, Action.UPDATE_NODE_LABEL)]

    async with virtual_cluster(nodes=1, plugins=[Provisioner], kubelets=False) as cluster:
        await cluster.create(pod("p"))
        for step in range(4):
            await trio.sleep(0.1)
            await cluster.patch(node("node-1"), {"metadata": {"labels": {"step": str(step)}}})
        await trio.sleep(0.01)
        assert cluster.pod("p").node_name == "node-1"


async def test_a_custom_bind_plugin_replaces_the_default_binder(autojump_clock: MockClock) -> None:
    class OwnBinder(PluginBase):
        @hookimpl
        async def bind(self, pod: Pod, node_name: str) -> Status | None:
            if pod.name == "theirs":
                return Status(5)
            self.log.append(pod.name)
            if len(self.log) == 1:
                return failure("not yet")
            return await self.handle.bind(pod, node_name)

    config = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    bind:
      disabled: [{name: DefaultBinder}]
      enabled: [{name: OwnBinder}, {name: DefaultBinder}]
"""
    async with virtual_cluster(nodes=1, plugins=[OwnBinder], config=config) as cluster:
        await cluster.create(pod("ours"))
        await cluster.create(pod("theirs"))
        await cluster.settle()
        assert all(cluster.placements().values())
        assert OwnBinder.log == ["ours", "ours"]
        (event,) = cluster.events("FailedScheduling")
        assert event.message == 'running Bind plugin "OwnBinder": not yet'


async def test_pre_binds_that_allow_it_run_in_parallel(autojump_clock: MockClock) -> None:
    def made(name: str, seconds: float) -> Any:
        class Preparing(PluginBase):
            @hookimpl
            def pre_bind_pre_flight(self) -> PreFlight:
                return PreFlight(allow_parallel=True)

            @hookimpl
            async def pre_bind(self) -> None:
                await trio.sleep(seconds)

        Preparing.name = Preparing.__name__ = name
        return Preparing

    plugins = [made("Ten", 10), made("Twenty", 20), made("Thirty", 30)]
    async with virtual_cluster(nodes=1, plugins=plugins) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(29.9)
        assert cluster.pod("p").node_name == ""
        await trio.sleep(0.2)
        assert cluster.pod("p").node_name == "node-1"


@pytest.mark.parametrize("depends_on", [None, frozenset({Input.NODE})], ids=["called for every pod", "cached"])
async def test_hooks_get_what_was_stored_for_their_own_pod(
    depends_on: frozenset[Input] | None, autojump_clock: MockClock
) -> None:
    seen: list[tuple[list[str], int]] = []

    class Storing(PluginBase):
        @hookimpl
        def sign(self) -> tuple[()]:
            return ()

        @hookimpl
        def pre_filter(self, pod: Pod, state: CycleState) -> None:
            state.write("names", [*state.get("names", ()), pod.name])
            state.pods_to_activate[pod.key] = pod

        @hookimpl
        def filter(self, nodes: NodeColumns) -> Verdicts:
            return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable("no"))

        @hookimpl
        def pre_score(self, pod: Pod, state: CycleState) -> None:
            state.write("scored", [*state.get("scored", ()), pod.name])

        @hookimpl
        def score(self, nodes: NodeColumns) -> Int64Array:
            return np.zeros(len(nodes), dtype=np.int64)

        @hookimpl
        def reserve(self, state: CycleState) -> None:
            state.read("names").append("reserved")
            seen.append(([*state.read("names"), *state.read("scored")], len(state.pods_to_activate)))

    if depends_on is not None:
        Storing.depends_on = depends_on  # type: ignore[attr-defined]
    async with virtual_cluster(nodes=2, plugins=[Storing]) as cluster:
        for name in ("a", "b", "c"):
            await cluster.create(pod(name, cpu="10m"))
        await cluster.settle()
    assert seen == [([name, "reserved", name], 1) for name in ("a", "b", "c")]
