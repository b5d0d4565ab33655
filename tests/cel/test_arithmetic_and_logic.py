"""Operators: overflow, types that do not fit, what errors other operands absorb.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ("9223372036854775807 + 1", "error: integer overflow", 1),
        ("-9223372036854775808 - 1", "error: integer overflow", 1),
        ("-(-9223372036854775808)", "error: integer overflow", 1),
        ("9223372036854775807 * 2", "error: integer overflow", 1),
        ("-9223372036854775808 / -1", "error: integer overflow", 1),
        ("-9223372036854775808 % -1", "error: integer overflow", 1),
        ("7 / -2", "-3", 1),
        ("-7 % 3", "-1", 1),
        ("7 % -3", "1", 1),
        ("1u - 2u", "error: unsigned integer overflow", 1),
        ("18446744073709551615u + 1u", "error: unsigned integer overflow", 1),
        ("3u % 0u", "error: modulus by zero", 1),
        ("1.0 / 0.0", 'double("Infinity")', 1),
        ("0.0 / 0.0 == 0.0 / 0.0", "false", 3),
        ("0.0 / 0.0 < 1.0", "error: NaN values cannot be ordered", 2),
        ("1 < 1.5", "true", 1),
        ("2u > 1", "true", 1),
        ("-1 < 0u", "true", 1),
        ("9007199254740993 == dyn(9007199254740992.0)", "true", 1),
        ("dyn(1) == dyn(1u)", "true", 1),
        ("dyn(1) == dyn(true)", "false", 1),
        ('dyn("1") == dyn(1)', "false", 1),
        ("dyn(1u) in [1]", "true", 0),
        ("dyn(1.0) in [1, 2]", "true", 0),
        ("dyn(true) in [1]", "false", 0),
        ("$A.index * 2.0", "error: no such overload", 5),
        ("$A.model + 1", "error: no such overload", 5),
        ("$A.firmware + 1", "error: no such overload: _+_", 5),
        ("-$A.model", "error: no such overload", 5),
        ("-$A.firmware", "error: no such overload: -_", 5),
        ("!$A.model", "error: no such overload", 5),
        ("$A.firmware < $A.model", "error: no such overload: _<_", 9),
        ("$A.model < $A.firmware", "error: no such overload", 9),
        ("true || $A.model", "true", 0),
        ("$A.model || true", "true", 4),
        ("false || $A.model", "error: no such overload", 4),
        ("1 / 0 == 1 || true", "true", 2),
        ("1 / 0 == 1 && false", "false", 2),
        ("1 / 0 == 1 || $A.absent", "error: division by zero", 6),
        ("$A.healthy ? 1 : 1 / 0", "1", 4),
        ("$A.model ? 1 : 2", "error: no such overload", 4),
    ],
)
def test_arithmetic_and_logic(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
