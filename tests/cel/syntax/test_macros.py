"""Macros: what they do, and that all elements are looked at and paid for although one failed.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ("[1, 2, 3].all(x, x > 0)", "true", 16),
        ("[1, 2, 0].all(x, 1 / x > 5)", "false", 9),
        ("[0, 1].all(x, 1 / x > 0)", "error: division by zero", 13),
        ("[0, 2].exists(x, 1 / x == 0)", "true", 15),
        ("[0, 1].exists_one(x, 1 / x == 1)", "error: division by zero", 10),
        ("[1, 1].exists_one(x, x == 1)", "false", 10),
        ("[1, 2, 3].map(x, x > 1, x * 2)", "[4, 6]", 35),
        ("[1, 2, 3].filter(x, $A.model)", "error: no such overload", 13),
        ("[1, 2].map(x, [x, x])", "[[1, 1], [2, 2]]", 49),
        ("[1, 2].map(x, 7)", "[7, 7]", 5),
        ('{"a": 1}.map(k, k)', '["a"]', 14),
        ('{"a": 1}.transformList(k, v, v + 1)', "[2]", 15),
        ('{"a": 1, "b": 2}.transformMap(k, v, v > 1, v * 2)', '{"b": 4}', 10),
        ('{"a": 1}.transformMapEntry(k, v, {v: k})', '{1: "a"}', 35),
        ('["a", "b"].transformMapEntry(i, v, {"k": v})', "error: insert failed: key k already exists", 67),
        ("[1, 2].existsOne(i, v, v == 2)", "true", 8),
        ("[3, 1, 2].sortBy(x, -x)", "[3, 2, 1]", 74),
        (
            "[1, 2].sortBy(x, 1 / (x - 1))",
            "error: internal error: interface conversion: *types.Err is not traits.Lister: missing method Add",
            33,
        ),
        ("dyn(5).map(x, x)", "error: got 'types.Int', expected iterable type", 0),
        ("dyn(5).all(i, x, true)", "error: unsupported comprehension range type: types.Int", 0),
        ("cel.bind(x, 1 / 0, 7)", "7", 0),
        ("cel.bind(x, 1 / 0, x + x)", "error: division by zero", 4),
        ("cel.bind(x, [], [x + [1], x + [2]])", "[[1, 2], [1, 2]]", 14),
        ("cel.bind(x, [1], [x + [1], x + [2]])", "[[1, 1], [1, 2]]", 14),
        ("optional.of(1).optMap(x, x + 1)", "optional.of(2)", 7),
        ("optional.none().optMap(x, x + 1)", "optional.none()", 3),
        ("optional.of(1).optFlatMap(x, optional.of(x + 1))", "optional.of(2)", 7),
        ("optional.of(optional.of(1)).optMap(x, x)", "optional.of(1)", 8),
        (
            "$A.?firmware.optMap(v, v)",
            'optional.of(failed("unsupported conversion to ref.Val: (semver.Version)3.12.4"))',
            12,
        ),
        ("$A.?firmware.optMap(v, v).value()", "error: unsupported conversion to ref.Val: (semver.Version)3.12.4", 13),
    ],
)
def test_macros(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
