import pytest

from trio_sched.simulator.endpoints.protobuf_bodies import read_protobuf
from trio_sched.simulator.errors.status_errors import ApiError


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3]) + varint(value)
    return bytes([number << 3 | 2]) + varint(len(value)) + value


def varint(value: int) -> bytes:
    digits = bytearray()
    while value >= 0x80:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


def body(api_version: bytes, kind: bytes, message: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


def metadata(name: bytes) -> bytes:
    # What Go writes: empty strings and an empty creation time are there too.
    return field(1, name) + field(2, b"") + field(3, b"") + field(7, 0) + bytes([8 << 3 | 2, 0])


def test_a_namespace_as_kubectl_sends_it() -> None:
    message = field(1, metadata(b"foo")) + field(2, b"") + field(3, field(1, b""))

    assert read_protobuf(body(b"v1", b"Namespace", message)) == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "foo", "generation": 0},
        "spec": {},
        "status": {},
    }


def test_maps_bytes_numbers_and_int_or_string() -> None:
    entry = field(1, b"password") + field(2, b"\x01\x02")
    secret = read_protobuf(body(b"v1", b"Secret", field(1, metadata(b"s")) + field(2, entry)))
    negative = (1 << 64) - 5
    priority = read_protobuf(
        body(b"scheduling.k8s.io/v1", b"PriorityClass", field(1, metadata(b"p")) + field(2, negative))
    )
    percent = field(1, 1) + field(3, b"50%")
    budget = read_protobuf(body(b"policy/v1", b"PodDisruptionBudget", field(2, field(1, percent))))

    assert secret is not None
    assert secret["data"] == {"password": "AQI="}
    assert priority is not None
    assert priority["value"] == -5
    assert budget is not None
    assert budget["spec"]["minAvailable"] == "50%"


def test_unknown_kinds_are_not_decoded() -> None:
    assert read_protobuf(body(b"example.com/v1", b"Gadget", b"")) is None


@pytest.mark.parametrize(
    "bad",
    [
        b"no magic",
        b"k8s\0" + field(1, field(1, b"v1") + field(2, b"Namespace")) + b"\x12\xff",
        body(b"v1", b"Namespace", b"\x0a\x7f"),
        body(b"v1", b"Namespace", bytes([1 << 3]) + b"\x05"),
        body(b"v1", b"Namespace", bytes([1 << 3 | 3])),
        body(b"v1", b"ConfigMap", field(1, field(1, b"\xff"))),
    ],
)
def test_malformed_bytes_are_refused_with_400(bad: bytes) -> None:
    with pytest.raises(ApiError) as refused:
        read_protobuf(bad)
    assert refused.value.code == 400
