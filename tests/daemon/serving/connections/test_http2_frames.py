"""HTTP/2 frame by frame: what no client has to send ends its connection before it is kept."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.daemon.serving.connections.http2_frames import Http2Frames
from trio_sched.daemon.serving.errors import ClientMisbehaves

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS, CONTINUATION = 0, 1, 4, 9
END_HEADERS = 4


def frame(kind: int, body: bytes = b"", flags: int = 0) -> bytes:
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", 1) + body


FRAMES = [
    PREFACE + frame(SETTINGS),
    frame(HEADERS, b"a" * 16384),
    frame(CONTINUATION, b"b" * 100, END_HEADERS),
    frame(DATA, b"c" * 16384),
    frame(DATA),
    frame(HEADERS, b"a" * 16384),
    frame(CONTINUATION, b"b" * 16000, END_HEADERS),
]


@given(st.lists(st.integers(1, 20_000), max_size=50))
def test_frames_are_the_same_however_they_arrive(lengths: list[int]) -> None:
    frames, rest, found = Http2Frames(), b"".join(FRAMES), []
    for length in [*lengths, len(rest)]:
        found += frames.split(rest[:length])
        rest = rest[length:]
    assert found == FRAMES
    assert frames.held_bytes == 0


def test_half_a_frame_and_half_a_header_are_held() -> None:
    frames = Http2Frames()
    assert len(list(frames.split(PREFACE + frame(HEADERS, b"a" * 1000) + frame(DATA, b"b" * 500)[:-1]))) == 1
    assert frames.held_bytes == 1000 + 9 + 499


@pytest.mark.parametrize(
    "sent",
    [
        frame(DATA, b"a" * 20_000)[:9],
        frame(HEADERS, b"a" * 16_384) + frame(CONTINUATION, b"a" * 16_384) + frame(CONTINUATION, b"a"),
        frame(HEADERS) + 9 * frame(CONTINUATION),
        frame(SETTINGS, bytes(6 * 257)),
        257 * frame(SETTINGS, bytes(6)),
    ],
    ids=["a frame larger than allowed", "a header too large", "empty frames of a header", "settings", "more settings"],
)
def test_what_no_client_needs_is_refused_at_once(sent: bytes) -> None:
    frames = Http2Frames()
    with pytest.raises(ClientMisbehaves):
        list(frames.split(PREFACE + sent))
