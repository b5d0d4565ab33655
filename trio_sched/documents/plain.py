"""Reads YAML or JSON into plain values: dictionaries, lists, texts, numbers, truth values and None."""

import math
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from trio_sched.documents.errors import MAX_DEPTH, DocumentError
from trio_sched.documents.files import position_after
from trio_sched.documents.json_duplicates import duplicate_keys, has_duplicates
from trio_sched.documents.json_runs import TOKEN, places_of_objects
from trio_sched.documents.yaml_lists import read_list
from trio_sched.documents.yaml_reader import PlainDocument, read_plain_documents
from trio_sched.go.text import shortened

_64_BITS: Final = range(-(1 << 63), 1 << 64)
_MOST_DIGITS: Final = 20


def read_plain(text: str) -> Iterator[PlainDocument]:
    """Every document of *text*; objects of JSON, one or one after the other, are read as such, which is much faster.

    Raises:
        DocumentError: the text is neither YAML nor JSON, nested too deep, or explodes through aliases.
    """
    if text.lstrip().startswith("{"):
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            places = places_of_objects(text)  # YAML's own maps begin with a brace as well
        else:
            yield _document(value, text, 0, len(text), 1)
            return
        line, counted = 1, 0
        for start, end in places:
            line, counted = line + text.count("\n", counted, start), start
            try:
                value = msgspec.json.decode(text[start:end])
            except (msgspec.ValidationError, RecursionError):  # its syntax is right
                raise _misfit(text, start) from None
            yield _document(value, text, start, end, line)
        if places:
            return
    large = read_list(text)
    if large is None:
        yield from read_plain_documents(text)
    else:
        yield large


def _document(value: Any, text: str, start: int, end: int, line: int) -> PlainDocument:
    """The document *value*, read of *text* from *start* to *end*, in *line*.

    Raises:
        DocumentError: it is nested too deep, or a whole number has more than 64 bits.
    """
    level: list[Any] = [value]
    depth = keys = 0
    while level:
        depth += 1
        below: list[Any] = []
        for whole in level:
            parts = whole
            if type(whole) is dict:
                keys += len(whole)
                parts = whole.values()
            for one in parts:
                kind = type(one)
                if kind is dict or kind is list:
                    below.append(one)
                elif kind is int and one not in _64_BITS:
                    raise _misfit(text, start)
        if depth > MAX_DEPTH:
            raise _misfit(text, start)
        level = below
    duplicates = duplicate_keys(text, start, line) if has_duplicates(text[start:end], keys) else ()
    return PlainDocument(value, line, tuple(duplicates))


def _misfit(text: str, start: int) -> DocumentError:
    """What an API server cannot take of the object at *start*: its first number that is too large, or its depth."""
    depth, problem = 0, f"json: exceeded max depth of {MAX_DEPTH}"
    for match in TOKEN.finditer(text, start):
        token, depth = match[1], depth + _STEPS.get(match[1], 0)
        if token[0] in "-0123456789" and (problem_of_number := _problem_of_number(token)):
            problem = problem_of_number
            break
        if depth > MAX_DEPTH:
            break
    line, column = position_after(text[: match.start(1)])
    return DocumentError(problem, line=line, column=column)


_STEPS: Final = {"{": 1, "[": 1, "}": -1, "]": -1}


def _problem_of_number(token: str) -> str:
    """Why a number of JSON has no room in 64 bits; empty if it has."""
    if not math.isfinite(float(token)):
        return f"json: cannot unmarshal number {shortened(token, 40)} into Go value of type float64"
    digits = token.removeprefix("-")
    if digits.isdecimal() and (len(digits) > _MOST_DIGITS or int(token) not in _64_BITS):
        return f"json: the number {shortened(token, 40)} does not fit into 64 bits"
    return ""
