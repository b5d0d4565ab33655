"""The other side of the stream: what a reader knows after a snapshot and the deltas that followed."""

from __future__ import annotations

from typing import Any

import msgspec
from attrs import define, field

from trio_sched.errors import TrioSchedError

Row = dict[str, Any]
_MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What events of another shape raise."""


class NotReadable(TrioSchedError):
    """An event of the stream is none of this version."""


_MOST_BYTES = 64 << 20


@define(eq=False)
class LiveReader:
    """The rows, names and summary of a stream."""

    nodes: dict[int, Row] = field(init=False, factory=dict)
    """By id; the names of columns are those of the stream."""
    pending: dict[int, Row] = field(init=False, factory=dict)
    names: dict[str, Any] = field(init=False, factory=dict)
    """The entries ``source``, ``zones``, ``pools``, ``devices``."""
    causes: list[dict[str, Any]] = field(init=False, factory=list)
    summary: dict[str, Any] = field(init=False, factory=dict)
    time: float = field(init=False, default=0.0)
    """The time of the last event, in seconds since 1970."""
    _buffer: bytes = field(init=False, default=b"")

    def take(self, received: bytes) -> bool:
        """Take some bytes of the stream; returns whether they have completed an event.

        Raises:
            NotReadable: it is none of this version.
        """
        *blocks, self._buffer = (self._buffer + received).split(b"\n\n")
        if len(self._buffer) > _MOST_BYTES:
            raise NotReadable(f"an event of the stream is longer than {_MOST_BYTES >> 20} MiB")
        events = [block for block in blocks if block.startswith(b"event: ")]
        for block in events:
            fields = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line)
            try:
                data = msgspec.json.decode(fields[b"data"])
                self._apply(data, is_snapshot=fields[b"event"] == b"snapshot")
            except _MALFORMED as problem:
                raise NotReadable(f"an event of the stream is none of this version: {problem!r}") from problem
        return bool(events)

    def _apply(self, data: dict[str, Any], *, is_snapshot: bool) -> None:
        if is_snapshot:
            self.nodes, self.pending = _rows(data["nodes"]), _rows(data["pending"])
        else:
            _change(self.nodes, data.get("nodes", {}))
            _change(self.pending, data.get("pending", {}))
        self.names |= {name: data[name] for name in ("source", "zones", "pools", "devices") if name in data}
        self.causes = data.get("causes", self.causes)
        self.summary |= data.get("summary", {})
        self.time = data["time"]


def _rows(columns: dict[str, list[Any]]) -> dict[int, Row]:
    names = list(columns)
    return {row[0]: dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)}


def _change(rows: dict[int, Row], changes: dict[str, Any]) -> None:
    for id_ in changes.get("removed", ()):
        rows.pop(id_, None)
    for column, (ids, values) in changes.get("changed", {}).items():
        for id_, value in zip(ids, values, strict=True):
            rows[id_][column] = value
    rows.update(_rows(changes.get("added", {})))
