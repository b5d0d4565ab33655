import errno
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from attrs import evolve

from contrib.control_plane.servers import Assets
from contrib.faults.faults import FAULTS
from contrib.faults.relay import Mode, Relay
from contrib.faults.table import OURS, THEIRS, Outcome, Table


@asynccontextmanager
async def echo() -> AsyncIterator[Relay]:
    """A relay in front of a server that says what it is told."""

    async def repeat(stream: trio.SocketStream) -> None:
        async for received in stream:
            await stream.send_all(received)

    async with trio.open_nursery() as nursery:
        listeners: list[trio.SocketListener] = await nursery.start(trio.serve_tcp, repeat, 0)
        async with Relay(listeners[0].socket.getsockname()[1]).running() as relay:
            yield relay
        nursery.cancel_scope.cancel()


async def said(stream: trio.SocketStream, text: bytes) -> bytes | None:
    """What comes back; None if nothing does for a while."""
    await stream.send_all(text)
    with trio.move_on_after(0.2):
        return bytes(await stream.receive_some())
    return None


async def test_a_relay_forwards_and_holds_and_releases() -> None:
    async with echo() as relay, await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
        assert await said(stream, b"one") == b"one"
        relay.hold_all()
        assert await said(stream, b"two") is None
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as newer:
            assert await said(newer, b"three") == b"three"
        relay.release_all()
        assert await stream.receive_some() == b"two"
        relay.hold_answers()
        assert await said(stream, b"four") is None
        relay.release_answers()
        assert await stream.receive_some() == b"four"


async def test_a_relay_resets_and_closes_and_refuses() -> None:
    async with echo() as relay:
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
            assert await said(stream, b"one") == b"one"
            relay.reset_all()
            with pytest.raises(trio.BrokenResourceError) as broken:
                await stream.receive_some()
            assert isinstance(broken.value.__cause__, OSError)
            assert broken.value.__cause__.errno == errno.ECONNRESET
        relay.mode = Mode.RESET
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
            with pytest.raises(trio.BrokenResourceError):
                await said(stream, b"two")
        relay.mode = Mode.CLOSE
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
            assert await stream.receive_some() == b""
        relay.mode = Mode.FORWARD
        relay.refuse()
        await trio.testing.wait_all_tasks_blocked()
        with pytest.raises(OSError, match="connect"):
            await trio.open_tcp_stream("127.0.0.1", relay.port)
        await relay.listen()
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
            assert await said(stream, b"three") == b"three"


async def test_a_relay_cuts_a_connection_after_some_bytes() -> None:
    async with echo() as relay:
        relay.cut_after_bytes = 5
        async with await trio.open_tcp_stream("127.0.0.1", relay.port) as stream:
            assert await said(stream, b"1234") == b"1234"
            with pytest.raises(trio.BrokenResourceError):
                await said(stream, b"5678")


def test_every_fault_has_a_name_of_its_own_and_there_are_enough() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) >= 45


@pytest.mark.parametrize(
    ("ours", "theirs", "verdict"),
    [
        (Outcome([0.3, 1.2]), Outcome([0.1, 40.0]), "ok"),
        (Outcome([0.3, 1.6]), Outcome([0.1, 40.0]), "slower than 1.5 s"),
        (Outcome([1.4]), Outcome([0.1]), "slower than kube-scheduler by 1.3 s"),
        (Outcome([math.inf]), None, "slower than 1.5 s"),
        (Outcome([0.1], ["still nominated: a"]), Outcome([0.1]), "still nominated: a"),
        (Outcome([0.1], [], ["a on n1"]), Outcome([0.1], [], ["a on n2"]), "kube-scheduler: a on n2; here: a on n1"),
        (Outcome([], ["left out: no clock"]), None, "left out"),
    ],
    ids=["quick", "too slow", "behind", "never", "problem", "other answer", "left out"],
)
def test_the_table_says_what_did_not_hold(ours: Outcome, theirs: Outcome | None, verdict: str, tmp_path: Path) -> None:
    table = Table(Assets(tmp_path), seed=1)
    fault = evolve(FAULTS[0], name="x", limit_seconds=1.5)
    table.add(OURS, fault, ours)
    if theirs is not None:
        table.add(THEIRS, fault, theirs)
    assert table.rows()[0][3] == verdict
    assert bool(table.failures) == (verdict not in ("ok", "left out"))
