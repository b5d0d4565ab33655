"""HTTP/2 as frames, before anything of it is kept: what no client has to send ends its connection here.

h2 itself looks at a frame when all of it has arrived, and at a header when the last of its frames has.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from trio_sched.daemon.serving.errors import ClientMisbehaves
from trio_sched.daemon.serving.limits import MAX_CONTINUATIONS, MAX_HEADER_BYTES, MAX_SETTINGS

_PREFACE_BYTES: Final = len(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
_FRAME_HEADER_BYTES: Final = 9
_MAX_FRAME_BYTES: Final = 2**14
_SETTING_BYTES: Final = 6
_HEADERS, _SETTINGS, _CONTINUATION = 0x1, 0x4, 0x9
_END_HEADERS: Final = 0x4


@define(eq=False)
class Http2Frames:
    """What one client sends, frame by frame."""

    _incomplete: bytearray = field(init=False, factory=bytearray)
    _skipped: int = field(init=False, default=_PREFACE_BYTES)
    """Bytes in front of the next frame."""
    _header_bytes: int = field(init=False, default=0)
    """The size of the header whose end has not arrived."""
    _continuations: int = field(init=False, default=0)
    _settings: int = field(init=False, default=0)

    @property
    def held_bytes(self) -> int:
        """What has arrived and is kept until more does."""
        return len(self._incomplete) + self._header_bytes

    def split(self, data: bytes) -> Iterator[bytes]:
        """The frames that *data* completes, the first one behind the preface.

        Raises:
            ClientMisbehaves: a frame, a header or all settings together are larger than a client needs.
        """
        waiting = self._incomplete
        waiting += data
        while len(waiting) >= (body := self._skipped + _FRAME_HEADER_BYTES):
            length = int.from_bytes(waiting[self._skipped : self._skipped + 3], "big")
            kind, flags = waiting[self._skipped + 3], waiting[self._skipped + 4]
            if length > _MAX_FRAME_BYTES:
                raise ClientMisbehaves(f"a frame of {length} bytes")
            if len(waiting) < body + length:
                return
            self._count(kind, flags, length)
            frame = bytes(waiting[: body + length])
            del waiting[: body + length]
            self._skipped = 0
            yield frame

    def _count(self, kind: int, flags: int, length: int) -> None:
        if kind == _SETTINGS:
            self._settings += length // _SETTING_BYTES
            if self._settings > MAX_SETTINGS:
                raise ClientMisbehaves(f"{self._settings} settings")
        elif kind in (_HEADERS, _CONTINUATION):
            self._continuations = self._continuations + 1 if kind == _CONTINUATION else 0
            self._header_bytes += length
            if self._header_bytes > MAX_HEADER_BYTES or self._continuations > MAX_CONTINUATIONS:
                raise ClientMisbehaves(f"a header of {self._header_bytes} bytes in {self._continuations + 1} frames")
            if flags & _END_HEADERS:
                self._header_bytes = 0
