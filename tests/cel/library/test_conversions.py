"""Conversions, types as values, timestamps and durations.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ('int("-42")', "-42", 0),
        ("int(4.9)", "4", 0),
        ("int(-4.9)", "-4", 0),
        ("int(timestamp(7))", "7", 0),
        ('int(duration("1500ms"))', "1500000000", 0),
        ('int(dyn("x"))', "refused: program instantiation failed: type conversion error from 'string' to 'int'", 0),
        ("uint(4.9)", "4u", 0),
        ('double("1_0")', "10.0", 0),
        ('double("0x1p4")', "16.0", 0),
        ('double("inf")', 'double("Infinity")', 0),
        ("double(18446744073709551615u)", "1.8446744073709552e+19", 0),
        ("string(1.0)", '"1"', 0),
        ("string(999999.0)", '"999999"', 0),
        ("string(1000000.0)", '"1e+06"', 0),
        ("string(0.0001)", '"0.0001"', 0),
        ("string(0.00001)", '"1e-05"', 0),
        ("string(1234567.5)", '"1.2345675e+06"', 0),
        ("string(-0.0)", '"-0"', 0),
        ("string(1.0 / 0.0)", '"+Inf"', 2),
        ('string(b"ab")', '"ab"', 0),
        ('string(b"\\xff" + b"")', "error: invalid UTF-8 in bytes, cannot convert to string", 2),
        ('string(duration("1h1.5s"))', '"3601.5s"', 0),
        ('string(timestamp("2024-02-29T23:59:59.120+05:30"))', '"2024-02-29T23:59:59.12+05:30"', 0),
        ('bool("t")', "true", 0),
        ('bool("True")', "true", 0),
        ('bytes("é").size()', "2", 1),
        ("type(1) == int", "true", 1),
        ("type(type(1))", "type", 0),
        ("type(device) == map", "true", 3),
        ("type([]) == type([1])", "true", 1),
        ("type($C.memory)", "kubernetes.Quantity", 5),
        ("type(null)", "null_type", 0),
        ("type(optional.none())", "optional_type", 2),
        ('timestamp("2024-02-29T12:00:00Z").getDayOfYear()', "59", 1),
        ('timestamp("2024-12-31T12:00:00Z").getDayOfYear()', "365", 1),
        ('timestamp("2024-03-01T00:30:00Z").getDate("-01:00")', "29", 1),
        ('timestamp("2024-03-01T00:30:00Z").getDayOfMonth("America/New_York")', "28", 1),
        ('timestamp("2024-07-01T00:30:00Z").getHours("Europe/Berlin")', "2", 1),
        ('timestamp("2024-01-07T00:30:00Z").getDayOfWeek()', "0", 1),
        ('timestamp("2024-01-07T00:30:00.987Z").getMilliseconds()', "987", 1),
        ('timestamp("2024-01-07T00:30:00Z").getHours("Nowhere/City")', "error: unknown time zone Nowhere/City", 1),
        ('timestamp("2024-01-07T00:30:00Z").getHours("../etc/passwd")', "error: time: invalid location name", 1),
        ('timestamp("2024-01-07T00:30:00Z").getMinutes("02:07")', "37", 1),
        ('timestamp("2024-01-07T00:30:00Z").getMinutes("a:b")', 'error: strconv.Atoi: parsing "a": invalid syntax', 1),
        ('timestamp("0001-01-01T00:00:00Z").getFullYear("-05:00")', "0", 1),
        ('timestamp("9999-12-31T23:59:59Z").getFullYear("+05:00")', "10000", 1),
        ('timestamp("9999-12-31T23:59:59Z") + duration("1s")', "error: timestamp overflow", 1),
        ('timestamp("2024-01-01T00:00:00Z") - timestamp("2023-12-31T23:59:59.5Z")', 'duration("0.5s")', 1),
        ('timestamp("9999-12-31T23:59:59Z") - timestamp("0001-01-01T00:00:00Z")', "error: integer overflow", 1),
        ('duration("1h30m").getMinutes()', "90", 1),
        ('duration("-1500ms").getSeconds()', "-1", 1),
        ('duration("2562047h") + duration("1h")', "error: integer overflow", 1),
        ('duration("1h") > duration("59m")', "true", 1),
        (
            'timestamp("2024-02-30T00:00:00Z")',
            "refused: compilation failed: ERROR: <input>:1:11: invalid timestamp argument",
            0,
        ),
        (
            'timestamp("2024-01-01t00:00:00Z")',
            "refused: compilation failed: ERROR: <input>:1:11: invalid timestamp argument",
            0,
        ),
        ('duration("1d")', "refused: compilation failed: ERROR: <input>:1:10: invalid duration argument", 0),
    ],
)
def test_conversions(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
