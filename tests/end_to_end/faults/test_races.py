"""Pods and nodes are created and deleted during their scheduling and binding."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import pytest
import trio
from cluster_pods import create_pods
from device_ledger import DeviceLedger
from ledger import Ledger, check_nothing_left
from lossy_network import LossyNetwork, start_behind_lossy_network
from trio.testing import MockClock

from trio_sched.testing import device, device_class, node, pod, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused


@pytest.mark.parametrize("after_seconds", [0.0, 0.001, 1.0, 4.999, 5.0, 5.001, 7.0])
async def test_a_pod_deleted_at_any_moment_leaves_nothing_behind(
    after_seconds: float, autojump_clock: MockClock
) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)], bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        doomed = await cluster.create(pod("p", cpu=1))
        await trio.sleep(after_seconds)
        await cluster.delete(doomed, grace_seconds=0)
        await cluster.create(pod("next", cpu=1))
        await cluster.settle()
        assert cluster.placements() == {"default/next": "n"}
        history.check()
        check_nothing_left(cluster)


@pytest.mark.parametrize("after_seconds", [0.0, 0.001, 1.0, 4.999, 5.0, 5.001, 7.0])
async def test_a_pod_recreated_under_its_name_is_another_pod(after_seconds: float, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)], bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        first = await cluster.create(pod("p", cpu=1))
        await trio.sleep(after_seconds)
        await cluster.delete(first, grace_seconds=0)
        second = await cluster.create(pod("p", cpu="600m"))
        await cluster.settle()
        assert (cluster.pod("p").uid, cluster.pod("p").node_name) == (second.uid, "n")
        history.check()
        assert [e.reason for e in cluster.events() if e.involved_object.uid == second.uid] == ["Scheduled"]
        check_nothing_left(cluster)


async def test_pods_deleted_in_every_state_at_once(autojump_clock: MockClock) -> None:
    """Bound, being bound, queued for a bind, and unschedulable."""
    async with virtual_cluster(nodes=[node("n", cpu=100)], bind_latency_seconds=2) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 120, cpu=1)
        await trio.sleep(3)
        for number in range(0, 120, 2):
            await cluster.delete(pod(f"p{number}"), grace_seconds=0)
        await cluster.settle()
        assert len(cluster.pods()) == 60
        assert all(cluster.placements().values())
        history.check()
        check_nothing_left(cluster)


async def test_a_pod_with_a_finalizer_deleted_during_its_bind_frees_its_resources(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)], bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        doomed = pod("p", cpu=1)
        manifest = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "finalizers": ["example.com/wait"]},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]},
        }
        await cluster.create(manifest)
        await trio.sleep(1)
        await cluster.delete(doomed)
        await cluster.create(pod("next", cpu=1))
        await cluster.settle()
        assert cluster.placements() == {"default/next": "n", "default/p": ""}
        history.check()
        assert cluster.schedulers[0].assembly.scheduler.cache.assumed_count == 0
        await cluster.patch(manifest, {"metadata": {"finalizers": None}})
        await cluster.settle()
        assert cluster.placements() == {"default/next": "n"}
        assert len(cluster.schedulers[0].assembly.scheduler.cache.unassigned) == 0


async def test_another_client_binds_the_pod_first(autojump_clock: MockClock) -> None:
    nodes = [node("favourite", cpu=8), node("elsewhere", cpu=2)]
    async with virtual_cluster(nodes=nodes, bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        created = await cluster.create(pod("p", cpu=1))
        await trio.sleep(1)
        binding = b'{"target": {"kind": "Node", "name": "elsewhere"}, "metadata": {"name": "p"}}'
        path = "/api/v1/namespaces/default/pods/p/binding"
        cluster.api.faults.clear()
        await cluster.api.handle("POST", path, "", {"content-type": "application/json"}, binding)
        await cluster.settle()
        assert history.binds[created.uid][0][1] == "elsewhere"
        history.check()
        await cluster.create(pod("big", cpu=8))
        await cluster.settle()
        assert cluster.pod("big").node_name == "favourite"
        check_nothing_left(cluster)


async def test_a_node_deleted_during_a_bind_to_it(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=2)], bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        await cluster.create(pod("p", cpu=1))
        await trio.sleep(1)
        await cluster.delete(node("n"))
        await trio.sleep(5)
        assert cluster.pod("p").node_name == "n"
        # It counts on the node recreated under the name, as in the API server.
        await cluster.create(node("n", cpu=2))
        await cluster.create(pod("two", cpu=2))
        await cluster.create(pod("one", cpu=1))
        await cluster.settle()
        assert cluster.placements() == {"default/one": "n", "default/p": "n", "default/two": ""}
        history.check()
        check_nothing_left(cluster)


async def test_a_node_deleted_while_its_bind_fails(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=2)], bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        cluster.api.faults.fail_next(1, verb="bind")
        await cluster.create(pod("p", cpu=2))
        await trio.sleep(1)
        await cluster.delete(node("n"))
        await trio.sleep(10)
        assert cluster.pod("p").node_name == ""
        await cluster.create(node("other", cpu=2))
        await cluster.settle()
        assert cluster.pod("p").node_name == "other"
        history.check()
        check_nothing_left(cluster)


async def test_a_node_recreated_with_less_allocatable_is_not_overcommitted(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=8)]) as cluster:
        await create_pods(cluster, 3, cpu=1)
        await cluster.settle()
        await cluster.delete(node("n"))
        await cluster.create(node("n", cpu=4))
        history = Ledger(cluster)
        await cluster.create(pod("two", cpu=2))
        await cluster.create(pod("one", cpu=1))
        await cluster.settle()
        assert (cluster.pod("one").node_name, cluster.pod("two").node_name) == ("n", "")
        history.check()
        check_nothing_left(cluster)


async def test_pods_of_a_deleted_node_leave_without_harm(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=2)]) as cluster:
        await create_pods(cluster, 2, cpu=1)
        await cluster.settle()
        await cluster.delete(node("n"))
        for number in range(2):
            await cluster.delete(pod(f"p{number}"), grace_seconds=0)
        await cluster.create(node("n", cpu=2))
        await cluster.create(pod("two", cpu=2))
        await cluster.settle()
        assert cluster.pod("two").node_name == "n"
        assert len(cluster.schedulers[0].assembly.scheduler.cache) == 1
        check_nothing_left(cluster)


async def test_labels_changed_during_a_bind_do_not_disturb_it(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, bind_latency_seconds=5) as cluster:
        history = Ledger(cluster)
        created = await cluster.create(pod("p"))
        cluster.api.faults.fail_next(1, verb="bind")
        await trio.sleep(1)
        await cluster.patch(created, {"metadata": {"labels": {"a": "b"}}})
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
        history.check()
        assert len(cluster.events("Scheduled")) == 1
        check_nothing_left(cluster)


async def test_a_namespace_that_refuses_events_delays_no_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        cluster.api.faults.fail_next(1000, verb="create", resource="events", code=403, reason="Forbidden")
        await create_pods(cluster, 5)
        await cluster.settle()
        assert all(cluster.placements().values())


async def test_the_virtual_cluster_raises_what_the_server_refuses(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("p"))
        with pytest.raises(Refused, match='409: pods "p" already exists'):
            await cluster.create(pod("p"))


@asynccontextmanager
async def with_one_device() -> AsyncGenerator[tuple[VirtualCluster, LossyNetwork], None]:
    """A node with one device, and a scheduler behind a network that can hold back what it sends and sees."""
    async with trio.open_nursery() as network, virtual_cluster(nodes=[node("n", cpu=2)], scheduler=False) as cluster:
        devices = DeviceLedger(cluster)
        _process, link = await start_behind_lossy_network(cluster, network, "scheduler", Random(0), 0.0)
        await cluster.create(device_class(extended_resource_name="example.com/gpu"))
        await cluster.create(resource_slice("n", device("gpu-0")))
        await trio.sleep(1)
        yield cluster, link
        wrong = devices.wrong
        assert wrong == []
        network.cancel_scope.cancel()


async def test_the_device_of_a_pod_that_is_preempted_before_its_claim_is_seen_is_free_once_the_claim_is_gone(
    autojump_clock: MockClock,
) -> None:
    async with with_one_device() as (cluster, link):
        link.is_behind, link.behind = True, b"/resourceclaims"
        await cluster.create(pod("preempted", cpu=2, requests={"example.com/gpu": 1}))
        await trio.sleep(1)
        await cluster.create(pod("important", cpu=2, priority=10))
        await trio.sleep(1)
        await cluster.create(pod("next", requests={"example.com/gpu": 1}))
        await trio.sleep(2)
        link.is_behind = False
        link.caught_up.set()
        await trio.sleep(20)
        cluster.assert_scheduled("important")
        cluster.assert_scheduled("next")


async def test_the_device_of_a_pod_that_is_preempted_while_its_claim_is_written_stays_taken_if_that_arrives(
    autojump_clock: MockClock,
) -> None:
    async with with_one_device() as (cluster, link):
        link.held = b"/resourceclaims/preempted/status"
        await cluster.create(resource_claim("preempted"))
        await cluster.create(resource_claim("next"))
        await cluster.create(pod("preempted", cpu=2, claims=["preempted"]))
        await trio.sleep(1)
        await cluster.create(pod("important", cpu=2, priority=10))
        await trio.sleep(1)
        await cluster.create(pod("next", claims=["next"]))
        await trio.sleep(1)
        link.held = b""
        link.let_go.set()
        await trio.sleep(3)
        cluster.assert_scheduled("important")
        cluster.assert_pending("next")
