from random import Random
from typing import Any

import pytest
import trio
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.limits import MAX_BIND_LOOK_UP_SECONDS
from trio_sched.daemon.pods.binder import Binder
from trio_sched.kube_client import verbs
from trio_sched.kube_client.binding import bind
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Code
from trio_sched.simulator import ApiServer
from trio_sched.testing import pod


@pytest.fixture
async def binder(client: KubeClient) -> Binder:
    return Binder(client=client, random=Random(1))


@pytest.fixture
async def created(store: Store) -> Pod:
    return await store.create_pod(pod("p"))


async def bind_elsewhere(client: KubeClient, p: Pod, node: str) -> None:
    await bind(client, namespace=p.namespace, name=p.name, uid=p.uid, node=node)


async def test_a_pod_is_bound(binder: Binder, created: Pod, store: Store) -> None:
    assert await binder.bind(created, "n") is None
    assert store.pod("p")["spec"]["nodeName"] == "n"


async def test_a_bind_whose_reply_is_lost_is_verified_by_reading_the_pod(
    binder: Binder, created: Pod, store: Store, api: ApiServer
) -> None:
    api.faults.drop_next(1, verb="bind")
    assert await binder.bind(created, "n") is None
    assert store.pod("p")["spec"]["nodeName"] == "n"


async def test_a_pod_already_bound_to_the_node_counts_as_bound(
    binder: Binder, created: Pod, client: KubeClient
) -> None:
    await bind_elsewhere(client, created, "n")
    assert await binder.bind(created, "n") is None


async def test_a_pod_already_bound_to_another_node_is_an_error(
    binder: Binder, created: Pod, client: KubeClient
) -> None:
    await bind_elsewhere(client, created, "other")
    status = await binder.bind(created, "n")
    assert status is not None
    assert status.code == Code.ERROR
    assert 'pod p is already assigned to node "other"' in status.message


async def test_a_bound_pod_of_the_same_name_but_another_uid_is_a_failure(
    binder: Binder, created: Pod, client: KubeClient, store: Store, api: ApiServer
) -> None:
    stored = api.store.get("pods", "default/p")
    api.store.delete("pods", stored)
    second = await store.create_pod(pod("p"))
    await bind_elsewhere(client, second, "n")
    assert await binder.bind(created, "n") is not None


async def test_binding_a_deleted_pod_is_a_failure(binder: Binder, created: Pod, api: ApiServer) -> None:
    api.store.delete("pods", api.store.get("pods", "default/p"))
    status = await binder.bind(created, "n")
    assert status is not None
    assert 'pods "p" not found' in status.message


async def test_a_bind_that_was_never_sent_is_not_verified(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.stop()
    began = trio.current_time()
    assert await binder.bind(created, "n") is not None
    assert trio.current_time() == began


async def test_after_a_lost_reply_the_pod_is_read_until_the_read_succeeds(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    api.faults.drop_next(1, verb="bind")
    api.faults.fail_next(3, verb="get", resource="pods", code=500)
    began = trio.current_time()
    assert await binder.bind(created, "n") is None
    assert 0.8 * 7 <= trio.current_time() - began <= 1.6 * 7
    assert caplog.text.count("cannot find out whether the pod was bound, retrying") == 3


async def test_a_lost_request_is_a_failure(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock
) -> None:
    """The server was too slow, and the request never took effect."""
    api.faults.set_latency(100, verb="bind")
    status = await binder.bind(created, "n")
    assert status is not None
    assert "no complete response within 30 s" in status.message


async def test_a_pod_that_may_not_be_read_does_not_hold_the_bind(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.faults.drop_next(1, verb="bind")
    api.faults.fail_next(1, verb="get", resource="pods", code=403, reason="Forbidden", message="cannot get pods")
    status = await binder.bind(created, "n")
    assert status is not None
    assert status.code == Code.ERROR
    assert trio.current_time() == 0


async def test_whether_a_pod_was_bound_is_asked_for_a_limited_time(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock
) -> None:
    api.faults.drop_next(1, verb="bind")
    api.faults.fail_next(1000, verb="get", resource="pods", code=500, reason="InternalError", message="no")
    assert await binder.bind(created, "n") is not None
    assert trio.current_time() == MAX_BIND_LOOK_UP_SECONDS


async def test_a_pod_that_cannot_be_decoded_is_read_again(
    binder: Binder, created: Pod, api: ApiServer, autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, tries = verbs.get, list[str]()

    async def get(*args: Any, **kwargs: Any) -> Any:
        tries.append("")
        if len(tries) == 1:
            raise UndecodableObject("pods", "default", "p", "nested too deep")
        return await real(*args, **kwargs)

    monkeypatch.setattr(verbs, "get", get)
    api.faults.drop_next(1, verb="bind")
    assert await binder.bind(created, "n") is None
    assert len(tries) == 2


@pytest.mark.parametrize("code", [500, 503])
async def test_a_bind_that_fails_at_once_is_sent_again_after_its_pauses(
    client: KubeClient, created: Pod, store: Store, api: ApiServer, autojump_clock: MockClock, code: int
) -> None:
    patient = Binder(client=client, random=Random(1), retry_seconds=(0.01, 0.05, 0.25))
    api.faults.fail_next(3, verb="bind", code=code)
    began = trio.current_time()
    assert await patient.bind(created, "n") is None
    assert 0.31 <= trio.current_time() - began < 0.35
    assert store.pod("p")["spec"]["nodeName"] == "n"


@pytest.mark.parametrize(("code", "failures"), [(500, 4), (504, 1)])
async def test_a_bind_is_sent_again_only_so_often_and_only_after_these_errors(
    client: KubeClient, created: Pod, api: ApiServer, autojump_clock: MockClock, code: int, failures: int
) -> None:
    patient = Binder(client=client, random=Random(1), retry_seconds=(0.01, 0.05, 0.25))
    api.faults.fail_next(failures, verb="bind", code=code)
    status = await patient.bind(created, "n")
    assert status is not None
    assert status.code is Code.ERROR


async def test_1_36_does_not_send_a_bind_again(binder: Binder, created: Pod, api: ApiServer) -> None:
    api.faults.fail_next(1, verb="bind", code=503)
    status = await binder.bind(created, "n")
    assert status is not None
    assert status.code is Code.ERROR
