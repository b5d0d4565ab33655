"""Reads JSON into a `Tree`, with the error texts of Go's scanner.

Source: the state machine of ``encoding/json``: what each place expects is what its message names.
"""

import json
import re
from typing import Final

from trio_sched.documents.errors import MAX_DEPTH, DocumentError
from trio_sched.documents.files import position_after
from trio_sched.documents.tree import Array, Number, Object, Tree
from trio_sched.go.text import quote

_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_PLAIN: Final = re.compile(r'[^"\\\x00-\x1f]*')
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_LITERALS: Final[dict[str, Tree]] = {"true": True, "false": False, "null": None}


def read_json(text: str) -> Tree:
    """Return the one value that *text* holds.

    Raises:
        DocumentError: the text is not exactly one JSON value.
    """
    reader = _Reader(text)
    tree = reader.value("looking for beginning of value", 0)
    reader.end()
    return tree


def read_first_json(text: str) -> Tree:
    """Return the first value in *text*, whatever follows it.

    Raises:
        DocumentError: the text does not begin with a JSON value.
    """
    return _Reader(text).value("looking for beginning of value", 0)


class _Reader:
    """One pass over a text; *at* is the next character."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def _skip_blanks(self) -> str:
        """Go to the next character that is no blank, and return it; empty at the end."""
        match = _BLANKS.match(self._text, self._at)
        assert match is not None
        self._at = match.end()
        return self._text[self._at : self._at + 1]

    def _unexpected(self, where: str) -> DocumentError:
        """The error for the character at hand, which nothing can begin *where* it stands."""
        character = self._text[self._at : self._at + 1]
        if not character:
            return self._error("unexpected end of JSON input")
        shown = {"'": r"'\''", '"': "'\"'"}.get(character) or f"'{quote(character)[1:-1]}'"
        return self._error(f"invalid character {shown} {where}")

    def _error(self, text: str) -> DocumentError:
        line, column = position_after(self._text[: self._at])
        return DocumentError(text, line=line, column=column)

    def end(self) -> None:
        if self._skip_blanks():
            raise self._unexpected("after top-level value")

    def value(self, where: str, depth: int) -> Tree:
        character = self._skip_blanks()
        if depth > MAX_DEPTH:
            raise self._error(f"exceeded max depth of {MAX_DEPTH}")
        match character:
            case "{":
                return self._object(depth)
            case "[":
                return self._array(depth)
            case '"':
                return self._string()
            case "t" | "f" | "n":
                return self._literal({"t": "true", "f": "false", "n": "null"}[character])
        if character == "-" or ("0" <= character <= "9" and character):
            return self._number()
        raise self._unexpected(where)

    def _object(self, depth: int) -> Object:
        pairs: list[tuple[str, Tree]] = []
        self._at += 1
        character = self._skip_blanks()
        if character == "}":
            self._at += 1
            return Object(())
        while True:
            if self._skip_blanks() != '"':
                raise self._unexpected("looking for beginning of object key string")
            key = self._string()
            if self._skip_blanks() != ":":
                raise self._unexpected("after object key")
            self._at += 1
            pairs.append((key, self.value("looking for beginning of value", depth + 1)))
            character = self._skip_blanks()
            if character not in (",", "}"):
                raise self._unexpected("after object key:value pair")
            self._at += 1
            if character == "}":
                return Object(tuple(pairs))

    def _array(self, depth: int) -> Array:
        items: list[Tree] = []
        self._at += 1
        if self._skip_blanks() == "]":
            self._at += 1
            return Array(())
        while True:
            items.append(self.value("looking for beginning of value", depth + 1))
            character = self._skip_blanks()
            if character not in (",", "]"):
                raise self._unexpected("after array element")
            self._at += 1
            if character == "]":
                return Array(tuple(items))

    def _string(self) -> str:
        start = self._at
        self._at += 1
        while True:
            match = _PLAIN.match(self._text, self._at)
            assert match is not None
            self._at = match.end()
            character = self._text[self._at : self._at + 1]
            if character == '"':
                self._at += 1
                # Python's own decoder knows the escapes; a lone surrogate becomes the replacement character, as in Go.
                return _without_surrogates(json.loads(self._text[start : self._at]))
            if character != "\\":
                raise self._unexpected("in string literal")
            self._at += 1
            escape = self._text[self._at : self._at + 1]
            if not escape or escape not in '"\\/bfnrtu':
                raise self._unexpected("in string escape code")
            self._at += 1
            if escape == "u":
                for _ in range(4):
                    if self._text[self._at : self._at + 1] not in _HEX:
                        raise self._unexpected("in \\u hexadecimal character escape")
                    self._at += 1

    def _literal(self, word: str) -> Tree:
        for index, expected in enumerate(word):
            if self._text[self._at : self._at + 1] != expected:
                raise self._unexpected(f"in literal {word} (expecting '{word[index]}')")
            self._at += 1
        return _LITERALS[word]

    def _number(self) -> Number:
        match = _NUMBER.match(self._text, self._at)
        if match is None:  # only a lone minus has not been handled above
            self._at += 1
            raise self._unexpected("in numeric literal")
        self._at = match.end()
        rest = self._text[self._at : self._at + 2]
        if rest[:1] == "." and "." not in match.group() and "e" not in match.group().lower():
            self._at += 1
            raise self._unexpected("after decimal point in numeric literal")
        if rest[:1] in ("e", "E") and "e" not in match.group().lower():
            self._at += 2 if rest[1:] in ("+", "-") else 1
            raise self._unexpected("in exponent of numeric literal")
        return Number(match.group())


def _without_surrogates(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)
