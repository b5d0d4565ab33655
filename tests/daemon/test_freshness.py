from random import Random
from typing import Any

import trio
from trio.testing import MockClock

from trio_sched.daemon.freshness import CATCH_UP_SECONDS, PATIENCE_SECONDS, Freshness
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.watch import Listed, Reflector
from trio_sched.testing import pod


def follow(client: Any) -> tuple[Reflector[Any], list[str]]:
    names: list[str] = []

    def take(batch: Any) -> None:
        objects = batch.objects if isinstance(batch, Listed) else [change.new for change in batch.changes]
        names.extend(one.name for one in objects)

    return Reflector(client, POD_KIND, take, Random(1), on_trouble=lambda *_: None), names


async def test_open_watches_are_fresh_at_once(client: Any, nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    reflector, _names = follow(client)
    await nursery.start(reflector.run)
    await reflector.live.wait()

    began = trio.current_time()
    await Freshness([reflector]).regained()

    assert trio.current_time() == began


async def test_a_watch_that_waits_out_an_outage_is_hurried_and_catches_up(
    api: Any, client: Any, store: Any, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    reflector, names = follow(client)
    await nursery.start(reflector.run)
    await reflector.live.wait()
    api.stop()
    await trio.sleep(100)  # by now it tries once a minute at best
    assert not reflector.live.is_set()
    api.resume()
    await store.create_pod(pod("made-in-the-dark"))
    assert names == []

    began = trio.current_time()
    await Freshness([reflector]).regained()

    assert names == ["made-in-the-dark"]
    assert trio.current_time() - began <= CATCH_UP_SECONDS + 0.1


async def test_a_server_that_does_not_come_back_is_not_waited_for_for_ever(
    api: Any, client: Any, nursery: trio.Nursery, autojump_clock: MockClock, caplog: Any
) -> None:
    reflector, _names = follow(client)
    await nursery.start(reflector.run)
    api.stop()
    await trio.sleep(10)

    began = trio.current_time()
    await Freshness([reflector]).regained()

    assert trio.current_time() - began == PATIENCE_SECONDS
    assert "the watches of pods are still broken" in caplog.text
