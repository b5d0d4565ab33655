import math
import re
import struct
from collections.abc import Iterator
from itertools import chain

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families
from scraped import Scraped

from trio_sched.daemon.metrics.families.exposed import Exposed, Series
from trio_sched.daemon.metrics.families.families import STABLE, Family, Type
from trio_sched.daemon.metrics.formats import open_metrics, protobuf_format, text_format
from trio_sched.daemon.metrics.formats.accepted_format import Format, accepted_format
from trio_sched.engine.hooks.histogram import Histogram

PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


def text_of(exposed: Exposed) -> str:
    return "".join(text_format.lines(exposed))


def histogram(*values: float) -> Histogram:
    found = Histogram((0.5, 1.0))
    for value in values:
        found.observe(value)
    return found


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-3.0, "-3"),
        (0.25, "0.25"),
        (999999.0, "999999"),
        (1000000.0, "1e+06"),
        (4194304.0, "4.194304e+06"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5000000000000002e-05, "1.5000000000000002e-05"),
        (math.inf, "+Inf"),
        (-math.inf, "-Inf"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_written_as_go_writes_them(value: float, written: str) -> None:
    assert text_format.number(value) == written


def test_a_histogram_in_the_text_format() -> None:
    family = Family("h", Type.HISTOGRAM, "Help.", ("b", "a"), STABLE, (0.5, 1.0))
    assert text_of(Exposed(family, [(("x", "y"), histogram(0.1, 0.7, 9.0))])) == (
        "# HELP h [STABLE] Help.\n"
        "# TYPE h histogram\n"
        'h_bucket{a="x",b="y",le="0.5"} 1\n'
        'h_bucket{a="x",b="y",le="1"} 2\n'
        'h_bucket{a="x",b="y",le="+Inf"} 3\n'
        'h_sum{a="x",b="y"} 9.8\n'
        'h_count{a="x",b="y"} 3\n'
    )


def test_a_family_without_series_is_left_out_in_every_format() -> None:
    nothing = Exposed(Family("c", Type.COUNTER, "Help."), [])
    assert text_of(nothing) == ""
    assert b"".join(protobuf_format.messages(nothing)) == b""
    assert b"".join(open_metrics.pieces(nothing)) == b""


def test_values_of_labels_can_have_any_character() -> None:
    hostile = 'back\\slash "quoted"\nnew line \N{SNOWMAN} \x00'
    page = text_of(Exposed(Family("c_total", Type.COUNTER, "Two\nlines \\.", ("a",)), [((hostile,), 1.0)]))
    assert len(page.splitlines()) == 3
    (family,) = text_string_to_metric_families(page)
    assert family.samples[0].labels == {"a": hostile}


def test_open_metrics_are_readable_and_counters_end_in_total() -> None:
    parts = [
        Exposed(Family("authentication_attempts", Type.COUNTER, "Help.", ("result",)), [(("success",), 2.0)]),
        Exposed(Family("g", Type.GAUGE, "Help."), [((), math.inf)]),
        Exposed(Family("h", Type.HISTOGRAM, "Help.", ("a",), buckets=(0.5, 1.0)), [(("x",), histogram(0.1, 9.0))]),
    ]
    page = b"".join([*chain.from_iterable(map(open_metrics.pieces, parts)), open_metrics.END]).decode()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for one in read_open_metrics(page)
        for sample in one.samples
    }
    assert found["authentication_attempts_total", "success"] == 2.0
    assert found["g",] == math.inf
    assert found["h_bucket", "x", "+Inf"] == found["h_count", "x"] == 2


def test_open_metrics_of_many_series_are_one_family() -> None:
    series: list[Series] = [((f"v{number}",), float(number)) for number in range(1001)]
    pieces = list(open_metrics.pieces(Exposed(Family("c_total", Type.COUNTER, "Help.", ("a",)), series)))
    assert len(pieces) > 20
    (family,) = read_open_metrics(b"".join([*pieces, open_metrics.END]).decode())
    assert [sample.value for sample in family.samples] == list(range(1001))


# --- protobuf, read by a decoder of any message ------------------------------------------------------------------


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data: bytes) -> Iterator[tuple[int, int | float | bytes]]:
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            number, at = varint(data, at)
            yield key >> 3, number
        elif key & 7 == 1:
            yield key >> 3, struct.unpack_from("<d", data, at)[0]
            at += 8
        else:
            length, at = varint(data, at)
            yield key >> 3, data[at : at + length]
            at += length


def message(data: bytes) -> dict[int, list[int | float | bytes]]:
    found: dict[int, list[int | float | bytes]] = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def part(value: int | float | bytes) -> dict[int, list[int | float | bytes]]:
    assert isinstance(value, bytes)
    return message(value)


def test_protobuf_has_the_length_of_each_family_before_it() -> None:
    family = Family("h", Type.HISTOGRAM, "Help.", ("a",), buckets=(0.5, 1.0))
    data = b"".join(protobuf_format.messages(Exposed(family, [(("x" * 200,), histogram(0.1, 0.2, 9.0))])))
    length, begin = varint(data, 0)
    assert begin + length == len(data)
    found = message(data[begin:])
    assert found[1] == [b"h"]
    assert found[2] == [b"[ALPHA] Help."]
    assert found[3] == [4]
    metric = part(found[4][0])
    assert part(metric[1][0]) == {1: [b"a"], 2: [b"x" * 200]}
    shown = part(metric[7][0])
    assert shown[1] == [3]
    assert shown[2] == [pytest.approx(9.3)]
    assert [part(bucket) for bucket in shown[3]] == [{1: [2], 2: [0.5]}, {1: [2], 2: [1.0]}]


@pytest.mark.parametrize(("type_", "number", "field"), [(Type.COUNTER, 0, 3), (Type.GAUGE, 1, 2), (Type.UNTYPED, 3, 5)])
def test_protobuf_of_a_single_value(type_: Type, number: int, field: int) -> None:
    data = b"".join(protobuf_format.messages(Exposed(Family("x", type_, "Help."), [((), 2.5)])))
    found = message(data[1:])
    assert found[3] == [number]
    assert part(part(found[4][0])[field][0]) == {1: [2.5]}


# --- which of them -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("accept", "format_"),
    [
        ("", Format.TEXT),
        ("*/*", Format.TEXT),
        ("text/plain", Format.TEXT),
        ("application/json", Format.TEXT),
        ("application/openmetrics-text", Format.TEXT),
        (PROMETHEUS_2, Format.TEXT),
        (PROMETHEUS_3, Format.TEXT),
        ("application/openmetrics-text; version=1.0.0", Format.OPEN_METRICS),
        ("application/openmetrics-text; version=1.0.0, text/*;q=0.1", Format.TEXT),
        (PROTOBUF, Format.PROTOBUF),
        (PROTOBUF + ";q=0.9,text/plain;version=0.0.4;q=0.8", Format.PROTOBUF),
        (PROTOBUF + ";q=0.7,text/plain;version=0.0.4;q=0.8", Format.TEXT),
        ("application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", Format.TEXT),
        (";;;,,=;q=x" + "," * 100_000, Format.TEXT),
    ],
)
def test_the_format_is_the_one_that_the_client_prefers(accept: str, format_: Format) -> None:
    assert accepted_format(accept)[0] is format_


def test_content_types_are_those_of_kube_scheduler() -> None:
    assert accepted_format("")[1] == "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
    assert accepted_format(PROTOBUF)[1] == (
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; "
        "escaping=underscores"
    )
    assert accepted_format("text/plain;escaping=allow-utf-8")[1].endswith("; escaping=allow-utf-8")
    assert re.search("; escaping=underscores$", accepted_format("text/plain;escaping=magic")[1])


def test_a_page_reads_back_as_what_was_written() -> None:
    seen = Scraped.of(
        text_of(Exposed(Family("x_total", Type.COUNTER, "Help.", ("a",)), [(("1",), 2.0), (("2",), 3.0)]))
    )
    assert seen("x_total") == 5.0
    assert seen.by("a", "x_total") == {"1": 2.0, "2": 3.0}
