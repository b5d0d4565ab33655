"""Devices, their parts, and equality and lookups of what they have.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ('$A.?model.orValue("x")', '"A"', 4),
        ('$A.?absent.orValue("x")', '"x"', 3),
        ('$A[?"index"].hasValue()', "true", 5),
        ('device.attributes[?"nope"].hasValue()', "true", 4),
        ("has(device.attributes.nope)", "true", 2),
        ('"nope" in device.attributes', "false", 3),
        ('device.attributes["nope"].size()', "0", 4),
        ('device.capacity["nope"] == {}', "true", 3),
        ("$A.absent", "error: no such key: absent", 4),
        ("has($A.absent)", "false", 3),
        ("has($A.absent.deeper)", "error: no such key: absent", 3),
        ("has($A.model.deeper)", "false", 4),
        ("$A.model.deeper", "error: no such key: deeper", 5),
        ("$A.model[0]", "error: no such key: 0", 5),
        ("[1, 2][dyn(1.0)]", "2", 2),
        ("[1, 2][dyn(1.5)]", "error: unsupported index value 1.5 in list", 2),
        ('[1, 2][dyn("a")]', "error: unsupported index type 'string' in list", 2),
        ("[1, 2][2]", "error: index out of bounds: 2", 2),
        ("[1, 2][?2]", "optional.none()", 1),
        ('{1: "a"}[dyn(1u)]', '"a"', 2),
        ('{1: "a"}[dyn(2.0)]', "error: no such key: 2", 2),
        ("{$A.firmware: 1}", "error: internal error: runtime error: hash of unhashable type cel.Semver", 4),
        ('$A.firmware in ["3.12.4"]', "error: internal error: runtime error: hash of unhashable type cel.Semver", 4),
        ("$A.firmware in [device.driver]", "false", 17),
        ('$A.firmware == "3.12.4"', "error: no such overload", 5),
        ('"3.12.4" == $A.firmware', "false", 5),
        ('$A.firmware != "3.12.4"', "true", 5),
        ("$A.firmware == null", "false", 5),
        ('[dyn($A.firmware)] == [dyn("x")]', "true", 16),
        ('[dyn("x")] == [dyn($A.firmware)]', "false", 16),
        ('quantity("1") == quantity("1").add(0)', "error: no such overload", 4),
        ('quantity("1").add(0) == quantity("1")', "true", 4),
        ('quantity("1").add(0) != quantity("1")', "false", 4),
        ('quantity("1") in [quantity("1").add(0)]', "false", 14),
        ('$C.memory.compareTo(quantity("80Gi")) == 0', "true", 7),
        ("$C.memory.asInteger()", "85899345920", 5),
        ('$C.memory.sub(quantity("79Gi")).asInteger()', "1073741824", 7),
        ('quantity("0.5").asInteger()', "error: cannot convert value to integer", 2),
        ('quantity("1K")', "error: unable to parse quantity's suffix", 1),
        ('sign(quantity("-3"))', "-1", 2),
        ('$A.firmware.isGreaterThan(semver("3.12.3"))', "true", 6),
        ('semver("v1", true) == semver("1.0.0")', "true", 3),
        ('semver("1")', "error: No Major.Minor.Patch elements found", 1),
        ('semver("18446744073709551615.0.0").major()', "-1", 4),
        ("$A.firmware in $A", "false", 8),
        ("$A.firmware in device.capacity", "false", 7),
        ("has($A.model)", "true", 3),
        ("true && has($A.model)", "true", 3),
        ("$A.healthy ? has($A.model) : false", "true", 7),
        ("$A.healthy ? has($A.absent) : false", "false", 7),
        ("has(($A.healthy ? $A : $A).model)", "true", 6),
        ('has(optional.of({"a": {"b": 1}}).?a.b)', "true", 3),
        ('$A.healthy ? has(optional.of({"a": {"b": 1}}).?a.b) : false', "optional.of(1)", 7),
        ('$A.healthy ? has(optional.of({"a": {"b": 1}}).?a.c) : false', "optional.none()", 7),
        ("($A.healthy ? $A : $A).model", '"A"', 7),
    ],
)
def test_device_access(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
