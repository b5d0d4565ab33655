"""Cuts the text of an expression into tokens."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from trio_sched.cel.errors import InvalidExpression, Issue

MAX_CODE_POINTS: Final = 100_000

_ESCAPE: Final = r"""\\(?:[abfnrtv"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"""
_TEXT: Final = "|".join(
    (
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
    )
)
_TOKENS: Final = re.compile(
    rf"""
    (?P<space>[\t\ \r\n\f]+|//[^\n]*)
  | (?P<double>(?:[0-9]+\.[0-9]+|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<bytes>[bB](?:{_TEXT}))
  | (?P<string>{_TEXT})
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<quoted>`[A-Za-z0-9_.\-/\ ]+`)
  | (?P<sign>==|!=|<=|>=|&&|\|\||[<>\[\]{{}}().,\-!?:+*/%])
    """,
    re.VERBOSE,
)
KEYWORDS: Final = frozenset({"in", "true", "false", "null"})


class Token(NamedTuple):
    """*kind* is that of a literal, ``name``, ``quoted``, or for signs, keywords and the end the text itself."""

    kind: str
    text: str
    at: int


def tokens(source: str) -> list[Token]:
    """The tokens of *source*; the last one, of kind ``<EOF>``, is its end.

    Raises:
        InvalidExpression: it is too long, or something in it is no token.
    """
    if len(source) > MAX_CODE_POINTS:
        problem = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        raise InvalidExpression(source, [Issue(-1, problem)])
    found: list[Token] = []
    at = 0
    while at < len(source):
        match = _TOKENS.match(source, at)
        if match is None:
            problem = f"Syntax error: token recognition error at: '{source[at : at + 10]}'"
            raise InvalidExpression(source, [Issue(at, problem)])
        kind, text = match.lastgroup or "", match.group()
        if kind != "space":
            found.append(Token(text if kind == "sign" or text in KEYWORDS else kind, text, at))
        at = match.end()
    found.append(Token("<EOF>", "<EOF>", len(source)))
    return found
