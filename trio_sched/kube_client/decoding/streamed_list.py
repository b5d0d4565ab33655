"""Reads a list that the server sends in one piece, while it arrives: what is decoded so far need not be kept as text.

A list of all pods of a big cluster has hundreds of megabytes. Where one object ends and the next begins is found by
looking for the text between two of them; whether that was right is seen when the piece before it is decoded.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Generic

from trio_sched.kube_client.decoding.decoding import Codec, Page
from trio_sched.kube_client.errors import UndecodableObject
from trio_sched.kube_client.http.http1 import MAX_BODY_BYTES, Headers
from trio_sched.kube_client.kinds import T

PIECE_BYTES = 1 << 20
"""Objects are decoded once so much text of them has arrived."""
_STEP_BYTES = 1 << 20
"""Decompressed at once."""
_ITEMS = b'"items":['
_MAX_HEAD_BYTES = 4096
"""A list whose items do not begin within so many bytes is decoded as a whole."""


class StreamedList(Generic[T]):
    """Takes the body of one list as it arrives.

    Args:
        codec: decodes the objects.
        take: gets the objects, page by page; the last page has the metadata of the list.
        headers: of the response; says whether the body is compressed.
    """

    def __init__(self, codec: Codec[T], take: Callable[[Page[T]], None], headers: Headers) -> None:
        self._codec = codec
        self._take = take
        self._gunzip = zlib.decompressobj(wbits=31) if (b"content-encoding", b"gzip") in headers else None
        self._head = b""
        self._separator: bytes | None = None
        """What is between two objects: the end of the one, and the beginning of the next up to its first value."""
        self._text = bytearray()
        self._decode_from = PIECE_BYTES
        self._received_bytes = 0

    def feed(self, data: bytes) -> None:
        """The next bytes of the body, as sent.

        Raises:
            UndecodableObject: they are not compressed as the header says, or the body is too large.
        """
        if self._gunzip is None:
            self._add(data)
            return
        try:
            while data:
                self._add(self._gunzip.decompress(data, _STEP_BYTES))
                data = self._gunzip.unconsumed_tail
        except zlib.error as problem:
            raise self._malformed("gzip: invalid header or checksum") from problem

    def end(self) -> None:
        """The body is complete.

        Raises:
            UndecodableObject: it is not a list.
        """
        if self._gunzip is not None and not self._gunzip.eof:
            raise self._malformed("unexpected EOF")
        self._take(self._codec.page(self.rest))

    @property
    def rest(self) -> bytes:
        """What is not decoded yet, as a list of its own."""
        return self._head + bytes(self._text)

    def _add(self, text: bytes) -> None:
        self._received_bytes += len(text)
        if self._received_bytes > MAX_BODY_BYTES:
            raise self._malformed(f"the list is larger than {MAX_BODY_BYTES} bytes")
        self._text += text
        if len(self._text) >= self._decode_from:
            self._decode()

    def _decode(self) -> None:
        """Decode the objects that are complete."""
        if self._separator is None and not self._read_head():
            self._decode_from = MAX_BODY_BYTES
            return
        assert self._separator is not None
        end = self._text.rfind(self._separator) + 1
        if end:
            try:
                page = self._codec.page(b"".join((b'{"items":[', self._text[:end], b"]}")))
            except UndecodableObject:
                end = 0  # it was inside of an object
            else:
                del self._text[: end + 1]
                self._take(page)
        # An object larger than a piece is tried again when twice as much is there, not with every piece.
        self._decode_from = PIECE_BYTES if end else 2 * len(self._text)

    def _read_head(self) -> bool:
        """Split off everything up to the first object; False if that is not where it is expected."""
        items = self._text.find(_ITEMS, 0, _MAX_HEAD_BYTES)
        begin = items + len(_ITEMS)
        first_key = self._text.find(b":", begin, begin + 64) + 1
        if items < 0 or not first_key or self._text[begin : begin + 1] != b"{":
            return False
        self._head = bytes(self._text[:begin])
        self._separator = b"}," + bytes(self._text[begin:first_key])
        del self._text[:begin]
        return True

    def _malformed(self, text: str) -> UndecodableObject:
        return UndecodableObject(self._codec.kind.plural, "", "", text)
