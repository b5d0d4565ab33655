"""Messages, optionals, maps, and constants that are folded.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        (
            "google.protobuf.Int32Value{value: 2147483648}",
            "error: field type conversion error for google.protobuf.Int32Value.value value type: integer overflow",
            40,
        ),
        ("google.protobuf.FloatValue{value: 0.1} == 0.1", "false", 41),
        ("google.protobuf.BoolValue{}", "false", 40),
        ('google.protobuf.StringValue{value: "a"} + "b"', '"ab"', 41),
        ("google.protobuf.Timestamp{seconds: 1, nanos: 500000000}", 'timestamp("1970-01-01T00:00:01.5Z")', 40),
        ('google.protobuf.Duration{seconds: 1} + duration("1s")', 'duration("2s")', 41),
        ('google.protobuf.Struct{fields: {"a": dyn(1), "b": dyn("x")}}', '{"a": 1.0, "b": "x"}', 40),
        ('google.protobuf.ListValue{values: [dyn(1), dyn(b"a"), dyn(null)]}', '[1.0, "YQ==", null]', 40),
        ("google.protobuf.Value{bool_value: true}", "true", 40),
        ("google.protobuf.Value{}", "null", 40),
        ("google.protobuf.Empty{} == google.protobuf.Empty{}", "true", 81),
        ("google.protobuf.Any{}", "error: unsupported conversion to ref.Val: (*dynamicpb.Message)", 40),
        (
            "google.protobuf.Int64Value",
            "refused: program instantiation failed: reference to undefined type: google.protobuf.Int64Value",
            0,
        ),
        ("[?$A.?model, ?$A.?absent]", '["A"]', 17),
        ('{"a": 1, ?"b": optional.none(), ?"c": optional.of(3)}', '{"a": 1, "c": 3}', 32),
        ("[?dyn(1)]", "error: cannot initialize optional list element from non-optional value 1", 0),
        ('{?"a": dyn(1)}', "error: cannot initialize optional entry 'a' from non-optional value 1", 0),
        ("optional.ofNonZeroValue(0)", "optional.none()", 1),
        ('optional.ofNonZeroValue("")', "optional.none()", 1),
        ("optional.ofNonZeroValue([])", "optional.none()", 1),
        ('optional.ofNonZeroValue(quantity("0")).hasValue()', "true", 3),
        ('optional.ofNonZeroValue(duration("0s"))', "optional.none()", 1),
        ("optional.ofNonZeroValue(null)", "optional.none()", 1),
        ("optional.none().value()", "error: optional.none() dereference", 2),
        ("optional.none().or(optional.of(1)).value()", "1", 3),
        ("optional.of(1).or(1 / 0 == 0 ? optional.of(2) : optional.none())", "optional.of(1)", 1),
        ("optional.none() == optional.none()", "true", 3),
        ('optional.of(quantity("1")) == dyn(optional.of("x"))', "error: no such overload", 5),
        ("$A.model.orValue(true)", '"A"', 4),
        ("$A.model.hasValue()", "error: no such overload: hasValue(string)", 5),
        ('optional.of({"a": {"b": 1}}).a.b', "optional.of(1)", 4),
        ('optional.of({"a": {"b": 1}}).a.c', "optional.none()", 3),
        ("optional.of([1, 2])[?5]", "optional.none()", 2),
        ('{"a": optional.of(1)}.?a', "optional.of(optional.of(1))", 33),
        ("device.?driver", 'optional.of("gpu.example.com")', 2),
        ('matches("abc", "b")', "true", 1),
        (
            'matches("abc", "(")',
            "refused: program instantiation failed: error parsing regexp: missing closing ): `(`",
            0,
        ),
        ('"abc".matches("(")', "refused: compilation failed: ERROR: <input>:1:15: invalid matches argument", 0),
        ('"abc".find("a" + "(") == "x"', "error: Illegal regex: error parsing regexp: missing closing ): `a(`", 3),
        ('[1, "a"]', "refused: compilation failed: ERROR: <input>:1:5: expected type 'int' but found 'string'", 0),
        ('$C.memory in [quantity("80Gi")]', "true", 16),
        ('[$A.firmware].exists(v, v == semver("3.12.4"))', "true", 22),
        ('$A.exists(k, v, v == "nope")', "error: no such overload", 28),
        ('$A.exists(k, v, k == "model" && v == "A")', "true", 15),
        ("device.attributes.all(d, d.size() > 3)", "true", 15),
        ("1 in {1: 2}", "true", 1),
        ("dyn(1.0) in {1: 2}", "true", 1),
        ('dyn("x") in {1: 2}', "false", 1),
        ('{"a": 1} == {"a": 1.0 == 1.0 ? dyn(1.0) : dyn(2)}', "true", 32),
        ("{1: 2, 2: 3} == {2: 3, 1: 2}", "true", 1),
        ('{"a": 1, "a": 2}', '{"a": 2}', 0),
        (
            '{b"k": 1}',
            "refused: program instantiation failed: internal error: runtime error: hash of unhashable type types.Bytes",
            0,
        ),
        ("{null: 1}[null]", "refused: program instantiation failed: invalid qualifier type: types.Null", 0),
        ('"a" < "b" && b"a" < b"b" && false < true', "true", 3),
    ],
)
def test_literals_and_optionals(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
