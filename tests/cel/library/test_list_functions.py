"""Functions of lists and sets.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ("[1, 2, 3].slice(1, 3)", "[2, 3]", 13),
        ("[1, 2].slice(1, 3)", "error: cannot slice(1, 3), list is length 2", 12),
        ("[1].slice(-1, 1)", "error: cannot slice(-1, 1), negative indexes not supported", 12),
        ("[1, 2].slice(2, 1)", "error: cannot slice(2, 1), start index must be less than or equal to end index", 12),
        ("[3, 1, 2].sort()", "[1, 2, 3]", 29),
        ('[dyn(1), dyn("a")].sort()', "error: list elements must have the same type", 1),
        ("[dyn([1])].sort()", "error: list elements must be comparable", 1),
        ("dyn(5).sort()", "error: no such overload: sort", 1),
        ("[1, 2, 2, 1].distinct()", "[1, 2]", 43),
        ("[dyn(1), dyn(1.0)].distinct()", "[1]", 19),
        (
            "[[1, [2]], [3]].flatten()",
            "refused: compilation failed: ERROR: <input>:1:6: expected type 'int' but found 'list(int)'",
            0,
        ),
        (
            "[dyn(1), dyn([2, [3]])].flatten(2)",
            "refused: compilation failed: ERROR: <input>:1:18: expected type 'int' but found 'list(int)'",
            0,
        ),
        ("[[1]].flatten(-1)", "error: level must be non-negative", 11),
        ("dyn(5).flatten()", "error: no such overload: int.flatten()", 12),
        ("lists.range(3)", "[0, 1, 2]", 14),
        ("lists.range(-3)", "[]", 11),
        ("[1, 2].reverse()", "[2, 1]", 13),
        ("[1, 3, 2].isSorted()", "false", 3),
        ("[1.5, 0.5].min()", "0.5", 2),
        ("[].max()", "error: max called on empty list", 0),
        ('["b", "a"].max()', '"b"', 0),
        ("[1, 2].sum()", "3", 2),
        ("[].sum()", "0", 0),
        ('[duration("1s"), duration("2s")].sum()', 'duration("3s")', 2),
        ("[9223372036854775807, 1].sum()", "error: integer overflow", 2),
        ("[1, 2, 1].lastIndexOf(1)", "2", 3),
        ("[1, 2].indexOf(3)", "-1", 2),
        ("[1].first()", "optional.of(1)", 1),
        ("[].last()", "optional.none()", 1),
        ("[optional.of(1), optional.none()].unwrapOpt()", "[1]", 13),
        ("optional.unwrap([optional.of(1)])", "[1]", 12),
        ("sets.contains([1, 2], [2.0].map(x, int(x)))", "true", 18),
        ("sets.equivalent([1, 1, 2], [2, 1])", "true", 13),
        ("sets.intersects([1], [])", "false", 1),
        ("[1, 2].includes(2)", "true", 1),
        ('"a".includes("a")', "true", 1),
        (
            "lists.range(60).includes(50)",
            "error: 'includes' function cannot be applied to lists longer than 48 values",
            72,
        ),
        ("lists.range(60).includes(1)", "true", 72),
    ],
)
def test_list_functions(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
