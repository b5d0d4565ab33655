"""The whole client against the whole simulated API server: two readings of the API that must agree."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import trio
import trustme
from attrs import define, field
from certificate_files import write_certificate
from trio.testing import MockClock

from trio_sched.kube_client import binding, events, leases, pods, verbs
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.errors import AlreadyExists, Conflict, ConnectionFailed, NotFound
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.kube_client.settings import ConnectionSettings, TlsSettings
from trio_sched.kube_client.watch import list_and_watch
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.event import Event, EventSeries, ObjectReference
from trio_sched.objects.lease import LeaseSpec
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.simulator import ApiServer, InProcessTransport, serve, trio_clock


def pod_body(name: str) -> bytes:
    containers = [{"name": "c", "image": "i"}]
    metadata = {"name": name, "namespace": "default"}
    return msgspec.json.encode(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}
    )


def node_body(name: str) -> bytes:
    return msgspec.json.encode({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


@define(eq=False)
class Mirror:
    """A copy of what the server has, kept by nothing but deliveries."""

    objects: dict[str, Any] = field(factory=dict)
    news: trio.Event = field(factory=trio.Event)

    def deliver(self, batch: Listed[Any] | Changes[Any]) -> None:
        if isinstance(batch, Listed):
            assert not self.objects
            self.objects = {listed.metadata.name: listed for listed in batch.objects}
        else:
            for change in batch.changes:
                known = self.objects.pop(change.old.metadata.name) if change.old is not None else None
                assert known is change.old
                if change.type != "DELETED":
                    assert change.new.metadata.name not in self.objects
                    self.objects[change.new.metadata.name] = change.new
        self.news.set()
        self.news = trio.Event()

    async def until(self, condition: Callable[[dict[str, Any]], object]) -> None:
        while not condition(self.objects):
            await self.news.wait()


@asynccontextmanager
async def mirrored(client: KubeClient, kind: Kind[Any] = POD_KIND) -> AsyncIterator[Mirror]:
    mirror = Mirror()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(list_and_watch, client, kind, mirror.deliver, random=Random(3)))
        yield mirror
        nursery.cancel_scope.cancel()


@pytest.fixture
async def api() -> ApiServer:
    return ApiServer(now=trio_clock())


@pytest.fixture
async def near(api: ApiServer) -> AsyncIterator[KubeClient]:
    """A client in the same process."""
    settings = ConnectionSettings(server="http://api.test")
    async with connect(settings, qps=-1, transport=InProcessTransport(api), request_seconds=30) as client:
        yield client


@pytest.fixture
async def far(nursery: trio.Nursery, authority: trustme.CA, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client at the other end of a TLS connection."""
    certificate, key = write_certificate(authority, "127.0.0.1", tmp_path)
    address = await nursery.start(partial(serve, ApiServer(), certificate=certificate, private_key=key))
    settings = ConnectionSettings(server=address, tls=TlsSettings(ca_data=authority.cert_pem.bytes()), token="t")
    async with connect(settings, qps=-1) as client:
        yield client


async def check_the_life_of_a_pod(client: KubeClient) -> None:
    """Everything that is written for one pod, and what the watch says of it."""
    await verbs.create(client, NODE_KIND, node_body("n1"))
    async with mirrored(client) as mirror:
        created = await verbs.create(client, POD_KIND, pod_body("p"), namespace="default")
        with pytest.raises(AlreadyExists):
            await verbs.create(client, POD_KIND, pod_body("p"), namespace="default")
        await mirror.until(lambda objects: "p" in objects)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no room"}
        await pods.patch_pod_status(client, namespace="default", name="p", status={"conditions": [condition]})
        await mirror.until(lambda objects: objects["p"].status.conditions)
        await binding.bind(client, namespace="default", name="p", uid=created.uid, node="n1")
        await mirror.until(lambda objects: objects["p"].node_name == "n1")
        with pytest.raises(Conflict, match='pod p is already assigned to node "n1"'):
            await binding.bind(client, namespace="default", name="p", uid=created.uid, node="n1")
        await pods.delete_pod(client, namespace="default", name="p", uid=created.uid)
        with pytest.raises(NotFound):
            await binding.bind(client, namespace="default", name="nope", uid="u", node="n1")


async def test_a_pods_whole_life_in_this_process(near: KubeClient) -> None:
    await check_the_life_of_a_pod(near)


async def test_a_pods_whole_life_over_tls(far: KubeClient) -> None:
    await check_the_life_of_a_pod(far)


async def test_lists_of_more_than_a_page_arrive_whole_and_compressed(far: KubeClient) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(501):
            nursery.start_soon(verbs.create, far, NODE_KIND, node_body(f"n{number}"))
    async with mirrored(far, NODE_KIND) as mirror:
        assert len(mirror.objects) == 501


async def test_a_restart_that_loses_history_loses_no_object(
    api: ApiServer, near: KubeClient, autojump_clock: MockClock
) -> None:
    for name in ("a", "b"):
        await verbs.create(near, POD_KIND, pod_body(name), namespace="default")
    async with mirrored(near) as mirror:
        await trio.sleep(60)
        api.stop()
        with pytest.raises(ConnectionFailed) as caught:
            await verbs.get(near, POD_KIND, "a", namespace="default")
        assert not caught.value.may_have_reached_server
        await trio.sleep(30)
        api.resume()
        await pods.delete_pod(near, namespace="default", name="a")
        await verbs.create(near, POD_KIND, pod_body("c"), namespace="default")
        api.restart(lose_history=True)
        await trio.sleep(120)
        assert sorted(mirror.objects) == ["b", "c"]


async def test_a_bind_whose_reply_is_lost_says_that_it_may_have_worked(api: ApiServer, near: KubeClient) -> None:
    await verbs.create(near, NODE_KIND, node_body("n1"))
    created = await verbs.create(near, POD_KIND, pod_body("p"), namespace="default")
    api.faults.drop_next(verb="bind")
    with pytest.raises(ConnectionFailed) as caught:
        await binding.bind(near, namespace="default", name="p", uid=created.uid, node="n1")
    assert caught.value.may_have_reached_server
    assert (await verbs.get(near, POD_KIND, "p", namespace="default")).node_name == "n1"


async def test_a_request_that_takes_too_long_times_out(
    api: ApiServer, near: KubeClient, autojump_clock: MockClock
) -> None:
    api.faults.set_latency(100.0)
    with pytest.raises(ConnectionFailed, match="no complete response within 30 s") as caught:
        await verbs.delete(near, POD_KIND, "p", namespace="default")
    assert caught.value.timed_out


async def test_a_lease_can_be_acquired_by_another_holder(near: KubeClient) -> None:
    with pytest.raises(NotFound):
        await leases.get_lease(near, namespace="kube-system", name="l")
    mine = LeaseSpec(holder_identity="me", lease_duration_seconds=15, lease_transitions=0)
    created = await leases.create_lease(near, namespace="kube-system", name="l", spec=mine, timeout_seconds=5)
    with pytest.raises(AlreadyExists):
        await leases.create_lease(near, namespace="kube-system", name="l", spec=mine)
    theirs = LeaseSpec(holder_identity="other", lease_duration_seconds=15, lease_transitions=1)
    await leases.update_lease(near, created, theirs, timeout_seconds=5)
    with pytest.raises(Conflict):
        await leases.update_lease(near, created, mine)
    assert (await leases.get_lease(near, namespace="kube-system", name="l")).lease.spec == theirs


async def test_events_are_stored_and_counted(near: KubeClient) -> None:
    assert await events.has_events_v1(near)
    pod = ObjectReference(kind="Pod", namespace="default", name="p", uid="u", api_version="v1")
    event = Event(
        metadata=ObjectMeta(name="p.1", namespace="default"),
        event_time="2026-11-21T06:18:45.583937Z",
        reporting_controller="default-scheduler",
        reporting_instance="default-scheduler-host",
        action="Binding",
        reason="Scheduled",
        regarding=pod,
        note="Successfully assigned default/p to n1",
        type="Normal",
    )
    with pytest.raises(NotFound):
        await events.patch_series(near, event, EventSeries(count=2))
    await events.create_event(near, event)
    series = EventSeries(count=2, last_observed_time="2026-11-21T06:20:00.000000Z")
    await events.patch_series(near, event, series)
    kind = Kind(group="events.k8s.io", version="v1", plural="events", namespaced=True, type=Event)
    kept = await verbs.get(near, kind, "p.1", namespace="default")
    assert (kept.note, kept.series) == (event.note, series)
