from random import Random
from typing import Any

import pytest
import trio
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.limits import WATCH_CATCH_UP_SECONDS, WATCH_RECONNECT_SECONDS
from trio_sched.daemon.watching.watch_reconnect import WatchReconnect
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.watch import Reflector
from trio_sched.objects.changes import Changes, Listed
from trio_sched.simulator import ApiServer
from trio_sched.testing import pod


def follow(client: KubeClient) -> tuple[Reflector[Any], list[str]]:
    names: list[str] = []

    def take(batch: Listed[Any] | Changes[Any]) -> None:
        objects = batch.objects if isinstance(batch, Listed) else [change.new for change in batch.changes]
        names.extend(one.name for one in objects)

    return Reflector(client, POD_KIND, take, Random(1), on_error=lambda *_: None), names


async def test_open_watches_are_not_waited_for(
    client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    reflector, _names = follow(client)
    await nursery.start(reflector.run)
    await reflector.connected.wait()

    began = trio.current_time()
    await WatchReconnect([reflector]).wait_connected()

    assert trio.current_time() == began


async def test_a_list_that_was_just_read_needs_no_watch_yet(
    api: ApiServer, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    reflector, _names = follow(client)
    api.faults.set_latency(20, verb="watch", resource="pods")
    await nursery.start(reflector.run)
    assert not reflector.connected.is_set()

    began = trio.current_time()
    await WatchReconnect([reflector]).wait_connected()
    assert trio.current_time() == began

    await trio.sleep(5)  # still no watch: now the list is too old
    await WatchReconnect([reflector]).wait_connected()
    assert reflector.connected.is_set()


async def test_a_watch_that_pauses_after_an_outage_reconnects_at_once(
    api: ApiServer, client: KubeClient, store: Store, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    reflector, names = follow(client)
    await nursery.start(reflector.run)
    await reflector.connected.wait()
    api.stop()
    await trio.sleep(100)  # by now it tries once a minute at best
    assert not reflector.connected.is_set()
    api.resume()
    await store.create_pod(pod("made-in-the-outage"))
    assert names == []

    began = trio.current_time()
    await WatchReconnect([reflector]).wait_connected()

    assert names == ["made-in-the-outage"]
    assert trio.current_time() - began <= WATCH_CATCH_UP_SECONDS + 0.1


async def test_a_server_that_refuses_at_first_is_asked_again_every_second(
    api: ApiServer, client: KubeClient, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    reflector, _names = follow(client)
    await nursery.start(reflector.run)
    await reflector.connected.wait()
    api.stop()
    await trio.sleep(100)
    api.resume()
    # As a server does until it has read its roles.
    api.faults.fail_next(2, verb="watch", resource="pods", code=403, reason="Forbidden")

    began = trio.current_time()
    await WatchReconnect([reflector]).wait_connected()

    assert reflector.connected.is_set()
    assert trio.current_time() - began <= WATCH_CATCH_UP_SECONDS + 2.1


async def test_waiting_for_the_watches_is_bounded_in_time(
    api: ApiServer,
    client: KubeClient,
    nursery: trio.Nursery,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reflector, _names = follow(client)
    await nursery.start(reflector.run)
    api.stop()
    await trio.sleep(10)

    began = trio.current_time()
    await WatchReconnect([reflector]).wait_connected()

    assert trio.current_time() - began == WATCH_RECONNECT_SECONDS
    assert "the watches of pods are still broken" in caplog.text
