"""Text, patterns and formats.

What is expected follows from the source of cel-go 0.26 and of Kubernetes 1.36.
"""

import pytest
from cel_cases import outcome


@pytest.mark.parametrize(
    ("expression", "expected", "cost"),
    [
        ('"héllo".size()', "5", 1),
        ('"héllo".charAt(1)', '"é"', 1),
        ('"abc".charAt(3)', '""', 1),
        ('"abc".charAt(4)', "error: index out of range: 4", 1),
        ('"abc".charAt(-1)', "error: index out of range: -1", 1),
        ('"tacocat".indexOf("a", 2)', "5", 0),
        ('"tacocat".indexOf("", 99)', "99", 0),
        ('"tacocat".indexOf("a", -1)', "error: index out of range: -1", 0),
        ('"tacocat".indexOf("a", 99)', "-1", 0),
        ('"tacocat".lastIndexOf("a")', "5", 0),
        ('"tacocat".lastIndexOf("a", 4)', "1", 0),
        ('"tacocat".lastIndexOf("", 3)', "3", 0),
        ('"tacocat".lastIndexOf("at", 99)', "-1", 0),
        ('"a".lastIndexOf("abc")', "-1", 0),
        ('"tacocat".substring(4)', '"cat"', 1),
        ('"tacocat".substring(0, 4)', '"taco"', 1),
        ('"tacocat".substring(8)', "error: index out of range: 8", 1),
        ('"tacocat".substring(4, 1)', "error: invalid substring range. start: 4, end: 1", 1),
        ('"a,b,c".split(",")', '["a", "b", "c"]', 1),
        ('"a,b,c".split(",", 2)', '["a", "b,c"]', 1),
        ('"a,b,c".split(",", 0)', "[]", 1),
        ('"a,b,c".split(",", -1)', '["a", "b", "c"]', 1),
        ('"".split(",")', '[""]', 0),
        ('"abc".split("")', '["a", "b", "c"]', 1),
        ('"abc".split("", 2)', '["a", "bc"]', 1),
        ('"aaa".replace("a", "b", 2)', '"bba"', 1),
        ('"aaa".replace("a", "b", -1)', '"bbb"', 1),
        ('"ab".replace("", "-")', '"-a-b-"', 1),
        ('"ab".replace("", "-", 2)', '"-a-b"', 1),
        ('" \\t x\\u00a0\\u2003".trim()', '"x"', 1),
        ('"ÀBC".lowerAscii()', '"Àbc"', 1),
        ('"àbc".upperAscii()', '"àBC"', 1),
        ('["a", "b"].join("-")', '"a-b"', 1),
        ('[].join("-")', '""', 0),
        ('[dyn("a"), dyn(1)].join()', "error: join: invalid input: 1", 1),
        ('strings.quote("a\\"\\\\\\n\\u0007é")', '"\\"a\\\\\\"\\\\\\\\\\\\n\\\\aé\\""', 1),
        ('"abc".startsWith("ab") && "abc".endsWith("bc") && "abc".contains("b")', "true", 3),
        ('dyn(5).contains("a")', "error: no such overload", 1),
        ('"a1b22".findAll("[0-9]+")', '["1", "22"]', 2),
        ('"a1b22c3".findAll("[0-9]+", 2)', '["1", "22"]', 2),
        ('"a1".findAll("[0-9]+", 0)', "[]", 2),
        ('"abc".findAll("x*")', '["", "", "", ""]', 1),
        ('"baac".findAll("a*")', '["", "aa", ""]', 1),
        ('"abc".find("z")', '""', 1),
        ('"abc".find("(b)")', '"b"', 1),
        ('"abc".matches("^a.c$")', "true", 2),
        ('"abc".matches("b")', "true", 1),
        ('dyn(5).matches("a")', "error: no such overload", 1),
        ('$A.index.matches("a" + "b")', "error: no such overload: matches", 6),
        ('$A.firmware.matches("a" + "b")', "error: no such overload: matches", 6),
        (
            '"%s %d %f %e %b %o %x %X %%".format(["s", 1, 1.5, 1.5, 5, 8, 255, "k"])',
            '"s 1 1.500000 1.500000×10⁰⁰ 101 10 ff 6B %"',
            3,
        ),
        ('("%.0f %." + "2f").format([2.5, 1234567.0])', '"2 1,234,567.00"', 2),
        ('("%" + "s").format([dyn(timestamp("2024-01-02T03:04:05.006Z"))])', '"2024-01-02T03:04:05.006Z"', 2),
        (
            '("%" + "s").format([[timestamp("2024-01-02T03:04:05Z"), timestamp(0)]])',
            '"[timestamp(\\"2024-01-02T03:04:05Z\\"), timestamp(\\"1970-01-01T00:00:00Z\\")]"',
            2,
        ),
        ('"%s".format([{"b": [1u], "a": [2u]}])', '"{\\"a\\":[2], \\"b\\":[1]}"', 1),
        ('"%s".format([[1.0 / 0.0]])', '"[\\"+Inf\\"]"', 22),
        ('"%e".format([-0.000123456789])', '"-1.234568×10⁻⁰⁴"', 1),
        ('"%f".format([-1234567.891])', '"-1,234,567.891000"', 1),
        ('"%x".format([b"\\xff"])', '"ff"', 1),
        ('"%b".format([-5])', '"-101"', 1),
        (
            '("%" + "d").format([dyn("x")])',
            "error: error during formatting: decimal clause can only be used on integers, was given string",
            2,
        ),
        ('("%").format([])', "refused: compilation failed: ERROR: <input>:1:13: unexpected end of string", 0),
        ('("%" + "").format([1])', "error: unexpected end of string", 2),
        ('("a%").format([1])', "refused: compilation failed: ERROR: <input>:1:14: unexpected end of string", 0),
    ],
)
def test_string_functions(expression: str, expected: str, cost: int) -> None:
    found, spent = outcome(expression)
    assert (found.partition("\n")[0], spent) == (expected, cost)
