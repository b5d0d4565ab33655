"""Patterns are those of Go: the same syntax, and the same words for what is wrong."""

import pytest
from cel_cases import result


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('"a".matches("[a" + "")', "error: error parsing regexp: missing closing ]: `[a`"),
        ('"a".matches("a)" + "")', "error: error parsing regexp: unexpected ): `a)`"),
        ('"a".matches("*a" + "")', "error: error parsing regexp: missing argument to repetition operator: `*`"),
        ('"a".matches("a**" + "")', "error: error parsing regexp: invalid nested repetition operator: `**`"),
        ('"a".matches("\\\\q" + "")', "error: error parsing regexp: invalid escape sequence: `\\q`"),
        ('"a".matches("[z-a]" + "")', "error: error parsing regexp: invalid character class range: `z-a`"),
        ('"a".matches("a{2000}" + "")', "error: error parsing regexp: invalid repeat count: `{2000}`"),
        ('"a".matches("(?=a)" + "")', "error: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ('"a".matches("a\\\\" + "")', "error: error parsing regexp: trailing backslash at end of expression: ``"),
        ('"a".matches("(?P<n" + "")', "error: error parsing regexp: invalid named capture: `(?P<n`"),
        ('"a".matches("\\\\pX" + "")', "error: error parsing regexp: invalid character class range: `\\pX`"),
        ('"a".matches("(?i)A" + "")', "true"),
        ('"a".matches("[[:foo:]]" + "")', "error: error parsing regexp: invalid character class range: `[:foo:]`"),
        ('"a".matches("(?P<n>a)(?P<n>b)" + "")', "false"),
        ('"é".matches("^.$")', "true"),
        ('"a\\nb".matches("a$")', "false"),
        ('"a\\nb".matches("(?m)a$")', "true"),
        ('"ab".matches("\\\\Aab\\\\z")', "true"),
        ('"ab".matches("\\\\bab\\\\b")', "true"),
        ('"x".matches("\\\\C")', "refused: compilation failed: ERROR: <input>:1:13: invalid matches argument"),
    ],
)
def test_patterns(expression: str, expected: str) -> None:
    assert result(expression).partition("\n")[0] == expected
