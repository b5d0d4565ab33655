"""What is read from a stream is what was sent."""

import pytest

from trio_sched.live_page.reader import LiveReader, NotReadable

SNAPSHOT = (
    b'event: snapshot\nid: 1\ndata: {"version":1,"sequence":1,"time":5.0,"source":{"kind":"scheduler","name":"s"},'
    b'"zones":["z"],"pools":[""],"devices":[],"nodes":{"id":[0,1],"name":["a","b"],"cpu":[10,20]},'
    b'"pending":{},"causes":[],"summary":{"nodes":2,"paused":false}}\n\n'
)
DELTA = (
    b'event: delta\nid: 2\ndata: {"sequence":2,"time":6.0,"zones":["z","y"],"nodes":{"added":{"id":[2],"name":["c"],'
    b'"cpu":[30]},"removed":[0],"changed":{"cpu":[[1],[25]]}},"summary":{"nodes":3}}\n\n'
)


@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_events_are_read_in_whatever_pieces_they_come(size: int) -> None:
    stream = b"retry: 2000\n\n" + SNAPSHOT + b": keep-alive\n\n" + DELTA
    reader = LiveReader()
    completed = sum(reader.take(stream[begin : begin + size]) for begin in range(0, len(stream), size))
    assert completed == (2 if size < 1000 else 1)
    assert {row["name"]: row["cpu"] for row in reader.nodes.values()} == {"b": 25, "c": 30}
    assert (reader.names["zones"], reader.summary, reader.time) == (["z", "y"], {"nodes": 3, "paused": False}, 6.0)


@pytest.mark.parametrize(
    "event",
    [
        b"event: snapshot\n\n",
        b"event: snapshot\ndata: []\n\n",
        b"event: snapshot\ndata: {\n\n",
        b'event: delta\ndata: {"time":1,"nodes":{"changed":{"cpu":[[9],[1]]}}}\n\n',
        b"event: snapshot\ndata: \xff\n\n",
    ],
)
def test_what_is_no_event_of_this_version_is_said(event: bytes) -> None:
    with pytest.raises(NotReadable, match="none of this version"):
        LiveReader().take(event)
