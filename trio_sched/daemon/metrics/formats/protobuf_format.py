"""The delimited protobuf format of Prometheus: messages ``io.prometheus.client.MetricFamily``, each with its length.

Source: the fields of ``metrics.proto`` of the Prometheus client model.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from trio_sched.daemon.metrics.families.exposed import Exposed, Value
from trio_sched.daemon.metrics.families.families import Type
from trio_sched.engine.hooks.histogram import Histogram

_TYPES: Final = {Type.COUNTER: 0, Type.GAUGE: 1, Type.SUMMARY: 2, Type.UNTYPED: 3, Type.HISTOGRAM: 4}
_VALUE_FIELDS: Final = {Type.GAUGE: 2, Type.COUNTER: 3, Type.UNTYPED: 5}
"""The field of a metric that holds a value of this type; of which the value is field 1."""
_HISTOGRAM_FIELD: Final = 7
_VARINT, _DOUBLE, _BYTES = 0, 1, 2


def messages(exposed: Exposed) -> Iterator[bytes]:
    """The message of one family in pieces, its length first; nothing if it has no series."""
    if not exposed.series:
        return
    family = exposed.family
    names = [_text(1, label) for label in family.labels]
    parts = [_text(1, family.name), _text(2, family.help), _number(3, _TYPES[family.type])]
    for values, value in exposed.series:
        pairs = b"".join(_bytes(1, name + _text(2, text)) for name, text in zip(names, values, strict=True))
        parts.append(_bytes(4, pairs + _value(family.type, value)))
        yield b""  # a place to pause: a family can have very many series
    yield _varint(sum(map(len, parts)))
    yield from parts


def _value(type_: Type, value: Value) -> bytes:
    if not isinstance(value, Histogram):
        return _bytes(_VALUE_FIELDS.get(type_, 5), _double(1, value))
    counts = list(accumulate(value.counts))
    buckets = b"".join(
        _bytes(3, _number(1, count) + _double(2, bound)) for bound, count in zip(value.bounds, counts[:-1], strict=True)
    )
    return _bytes(_HISTOGRAM_FIELD, _number(1, counts[-1]) + _double(2, value.sum) + buckets)


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3 | _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _varint(field << 3 | _DOUBLE) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | _BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))
