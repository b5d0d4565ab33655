"""Reads and writes a line of comma-separated values as Go does, with its errors.

Source: ``encoding/csv``, which ``spf13/pflag`` reads lists with.
"""

from collections.abc import Iterable
from typing import Final

_BARE_QUOTE: Final = 'bare " in non-quoted field'
_WRONG_QUOTE: Final = 'extraneous or missing " in quoted-field'


class CsvError(Exception):
    """A line with misplaced quotes; the text is Go's."""


def read_csv_line(text: str) -> list[str]:
    """The fields of the first line of *text*; one in quotes can contain commas, line breaks, and doubled quotes.

    Raises:
        CsvError: a quote is where none may be, or missing.
    """
    fields: list[str] = []
    at = 0
    while True:
        quoted = text.startswith('"', at)
        field, at = _quoted(text, at + 1) if quoted else _plain(text, at)
        fields.append(field)
        if not text.startswith(",", at):
            return fields
        at += 1


def _plain(text: str, begin: int) -> tuple[str, int]:
    ends = (found for mark in (",", "\n") if (found := text.find(mark, begin)) >= 0)
    end = min(ends, default=len(text))
    field = text[begin:end]
    if '"' in field:
        raise _error(text, begin + field.index('"'), _BARE_QUOTE)
    return field.removesuffix("\r") if text.startswith("\n", end) else field, end


def _quoted(text: str, begin: int) -> tuple[str, int]:
    """The field whose opening quote stands before *begin*, and where its closing quote ends."""
    parts: list[str] = []
    while True:
        quote = text.find('"', begin)
        if quote < 0:
            raise _error(text, len(text), _WRONG_QUOTE)
        parts.append(text[begin:quote])
        begin = quote + 1
        if text.startswith('"', begin):
            parts.append('"')
            begin += 1
        elif begin == len(text) or text.startswith((",", "\n", "\r\n"), begin):
            return "".join(parts), begin
        else:
            raise _error(text, quote, _WRONG_QUOTE)


def _error(text: str, at: int, what: str) -> CsvError:
    """The error *what* at the position *at*; columns are bytes."""
    before = text[:at]
    line, column = before.count("\n") + 1, len(before.rpartition("\n")[2].encode("utf-8", "surrogateescape")) + 1
    record = "" if line == 1 else "record on line 1; "
    return CsvError(f"{record}parse error on line {line}, column {column}: {what}")


def csv_line(values: Iterable[str]) -> str:
    """*values* as one line, in quotes where they need them."""
    return ",".join(map(_written, values))


def _written(value: str) -> str:
    needs_quotes = value == r"\." or value[:1].isspace() or any(character in value for character in ',"\r\n')
    return '"' + value.replace('"', '""') + '"' if needs_quotes else value
