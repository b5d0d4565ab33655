import logging

import pytest
import trio
from stage import Assemble, picky_plugin
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.any_object import AnyObject
from trio_sched.plugin_api import Action, Resource
from trio_sched.simulator import ApiServer
from trio_sched.testing import node, pod

DEVICE_CLASSES = "deviceclasses"


async def create_device_class(api: ApiServer, name: str) -> None:
    body = b'{"apiVersion":"resource.k8s.io/v1","kind":"DeviceClass","metadata":{"name":"%s"}}' % name.encode()
    path = "/apis/resource.k8s.io/v1/deviceclasses"
    response = await api.handle("POST", path, "", {"content-type": "application/json"}, body)
    assert response.status == 201


def names(assembly: Assembly, kind: str) -> set[str]:
    return {one.metadata.name for one in assembly.scheduler.object_cache.objects(kind)}


async def test_watches_have_started_once_the_first_lists_are_complete(
    assembled: Assemble,
    api: ApiServer,
    store: Store,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
) -> None:
    assembly = assembled()
    cache = assembly.scheduler.cache
    await store.create_node(node("n"))
    await store.create_pod(pod("runs", cpu=1, node_name="n"))
    await store.create_pod(pod("waits"))
    await create_device_class(api, "gpus")
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    assert set(cache.table.row_of) == {"n"}
    assert [cached.pod.name for cached in cache] == ["runs"]
    assert assembly.scheduler.queue.find("default/waits") is not None
    assert names(assembly, "DeviceClass") == {"gpus"}

    await store.create_node(node("m"))
    await store.create_pod(pod("late"))
    await create_device_class(api, "nics")
    await trio.sleep(1)
    assert set(cache.table.row_of) == {"n", "m"}
    assert assembly.scheduler.queue.find("default/late") is not None
    assert names(assembly, "DeviceClass") == {"gpus", "nics"}


@pytest.mark.parametrize("slow", ["nodes", DEVICE_CLASSES])
async def test_pods_are_listed_beside_nodes_and_further_kinds_and_delivered_after_them(
    assembled: Assemble,
    api: ApiServer,
    store: Store,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    slow: str,
) -> None:
    assembly = assembled()
    await store.create_node(node("n"))
    await store.create_pod(pod("p"))
    api.faults.set_latency(20, verb="list", resource=slow)
    nursery.start_soon(assembly.watches.run, assembly.loaded.wanted_kinds)
    await trio.sleep(15)
    await store.create_pod(pod("later"))
    await trio.sleep(4)
    assert len(assembly.scheduler.cache.unassigned) == 0
    await trio.sleep(2)
    assert len(assembly.scheduler.cache.unassigned) == 2
    assert set(assembly.scheduler.cache.table.row_of) == {"n"}


async def test_a_new_leader_waits_for_the_watches_of_nodes_and_pods(
    assembled: Assemble, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    assembly = assembled()
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    with trio.fail_after(1):
        for reflector in assembly.watch_reconnect.reflectors:
            await reflector.connected.wait()
    assert [reflector.kind.plural for reflector in assembly.watch_reconnect.reflectors] == ["nodes", "pods"]


async def test_a_kind_that_the_server_does_not_serve_delays_nothing(
    assembled: Assemble,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    assembly = assembled(picky_plugin(("widgets.v1.example.com", Action.ADD)))
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    assert trio.current_time() < 1
    assert names(assembly, "widgets.v1.example.com") == set()
    await trio.sleep(600)
    assert caplog.text.count("widgets cannot be watched, so nothing is known of them") == 1
    assert "Failed to watch" not in caplog.text


async def test_a_forbidden_kind_delays_nothing_and_is_listed_once_allowed(
    assembled: Assemble,
    api: ApiServer,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assembly = assembled()
    await create_device_class(api, "gpus")
    api.faults.fail_next(1000, verb="list", resource=DEVICE_CLASSES, code=403, reason="Forbidden")
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    assert trio.current_time() < 1
    assert "deviceclasses cannot be watched, so nothing is known of them" in caplog.text
    assert names(assembly, "DeviceClass") == set()
    api.faults.clear()
    await trio.sleep(120)
    assert names(assembly, "DeviceClass") == {"gpus"}


async def test_failing_lists_are_retried_and_logged(
    assembled: Assemble,
    api: ApiServer,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assembly = assembled()
    await create_device_class(api, "gpus")
    api.faults.fail_next(3, verb="list", resource=DEVICE_CLASSES, code=500)
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    assert trio.current_time() > 1
    assert names(assembly, "DeviceClass") == {"gpus"}
    assert caplog.text.count("Failed to watch deviceclasses") == 1, "the same error is not repeated at once"


async def test_only_kinds_that_plugins_register_for_or_read_are_watched(
    assembled: Assemble, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    assembly = assembled(picky_plugin((Resource.POD, Action.ALL), ("widgets.v1.example.com", Action.ADD)), bare=True)
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    assert set(assembly.scheduler.object_cache.kinds) == {"widgets.v1.example.com"}


async def test_all_kinds_that_the_default_plugins_register_for_or_read_are_watched(
    assembled: Assemble, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    assembly = assembled()
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    behind_gates = {"PodGroup", "CompositePodGroup", "DeviceTaintRule"}
    for_other_plugins = {"ConfigMap", "DaemonSet", "Deployment", "Job"}
    assert set(assembly.scheduler.object_cache.kinds) == set(KINDS) - behind_gates - for_other_plugins


async def test_objects_of_any_kind_can_be_read(
    assembled: Assemble, api: ApiServer, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    assembly = assembled(picky_plugin(("priorityclasses.v1.scheduling.k8s.io", Action.ADD)))
    body = b'{"apiVersion":"scheduling.k8s.io/v1","kind":"PriorityClass","metadata":{"name":"high"},"value":9}'
    await api.handle(
        "POST", "/apis/scheduling.k8s.io/v1/priorityclasses", "", {"content-type": "application/json"}, body
    )
    await nursery.start(assembly.watches.run, assembly.loaded.wanted_kinds)
    found = assembly.scheduler.object_cache.get("priorityclasses.v1.scheduling.k8s.io", "high")
    assert isinstance(found, AnyObject)
