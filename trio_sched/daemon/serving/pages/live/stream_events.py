"""Server-sent events: encoded once, and compressed once, for all readers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from attrs import define, field

_LEVEL: Final = 1
_PIECE_BYTES: Final = 64 * 1024
GZIP_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"
"""What a compressed stream begins with; each event is some blocks of it that refer to nothing in front of them."""
RETRY: Final = b"retry: 2000\n\n"
"""How long a browser waits before it comes again, in milliseconds."""
KEEP_ALIVE: Final = b": keep-alive\n\n"


def zipped(text: bytes) -> bytes:
    """*text* as complete blocks of a compressed stream."""
    return b"".join(_blocks(text))


def _blocks(text: bytes) -> Iterator[bytes]:
    """The same in pieces, each of which takes less than a millisecond."""
    compress = zlib.compressobj(_LEVEL, wbits=-zlib.MAX_WBITS)
    for begin in range(0, len(text), _PIECE_BYTES):
        yield compress.compress(text[begin : begin + _PIECE_BYTES])
    yield compress.flush(zlib.Z_FULL_FLUSH)


def json_line(data: Any) -> bytes:
    """*data* as one line of JSON; texts of plugins can have characters that UTF-8 has not, which are escaped then."""
    try:
        return msgspec.json.encode(data)
    except UnicodeEncodeError:
        return json.dumps(data, separators=(",", ":")).encode("ascii")


@define(eq=False)
class StreamEvent:
    """One event."""

    sequence: int
    """The number of the state after it."""
    text: bytes
    _zipped: bytes | None = field(init=False, default=None)

    @classmethod
    def of(cls, name: str, data: dict[str, Any]) -> StreamEvent:
        """The event *name* with *data*, which has its sequence number."""
        sequence: int = data["sequence"]
        return cls(sequence, b"event: %b\nid: %d\ndata: %b\n\n" % (name.encode(), sequence, json_line(data)))

    def compress(self) -> bytes:
        """The same as blocks of a compressed stream; takes time only when it is first called."""
        if self._zipped is None:
            self._zipped = zipped(self.text)
        return self._zipped

    def compressing(self) -> Iterator[None]:
        """Prepare that step by step."""
        blocks = []
        for block in _blocks(self.text):
            blocks.append(block)
            yield
        self._zipped = b"".join(blocks)
