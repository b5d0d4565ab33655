"""Regular expressions of RE2, which take linear time whatever the pattern is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from trio_sched.cel.conversions import wrong_type
from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.frame import Frame
from trio_sched.cel.values import Value

_CACHED: Final = 64
_MATCHING: Final = 20
"""How much more work it is to find a match than to look at an element."""
_MEMORY_BYTES: Final = 8 << 20
"""Of one compiled pattern; what needs more is refused."""

_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_PROBLEMS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
"""What is wrong with a pattern: in the words of RE2, and of Go."""


@lru_cache(maxsize=_CACHED)
def compiled(pattern: str) -> Any:
    """A pattern that is ready to be used.

    Raises:
        EvaluationError: it is none.
    """
    import re2  # type: ignore[import-untyped]  # a library in C that few expressions need

    if _ANY_BYTE.search(pattern):  # RE2 has it, but Go has not
        raise EvaluationError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    options.never_capture = True  # groups take memory with every step of a match, and nobody asks for them
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        problem, _, part = text.partition(": ")
        raise EvaluationError(f"error parsing regexp: {_PROBLEMS.get(problem, problem)}: `{part}`") from error


def _matches(frame: Frame, text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        raise wrong_type("matches", text)
    if type(pattern) is not str:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return matches_constant(compiled(pattern))(frame, text)


def matches_constant(pattern: Any) -> Callable[..., Value]:
    """``matches`` with a pattern that is known beforehand."""

    def matches(_frame: Frame, text: Value, *_pattern: Value) -> Value:
        if type(text) is not str:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        return pattern.search(text) is not None

    return matches


def find_constant(pattern: Any) -> Callable[..., Value]:
    """``find`` with a pattern that is known beforehand."""

    def find(_frame: Frame, text: Value, *_pattern: Value) -> Value:
        if type(text) is not str:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        found = pattern.search(text)
        return "" if found is None else found.group()

    return find


def find_all_constant(pattern: Any) -> Callable[..., Value]:
    """``findAll`` with a pattern that is known beforehand."""

    def find_all(frame: Frame, text: Value, _pattern: Value, limit: Value = -1) -> Value:
        if type(text) is not str or type(limit) is not int:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        found: list[Value] = []
        end = -1
        for match in pattern.finditer(text):
            if 0 <= limit <= len(found):
                break
            if match.end() == match.start() == end:  # Go has no empty match right after another one
                continue
            end = match.end()
            frame.spend(_MATCHING)
            found.append(match.group())
        return found

    return find_all


def _compiled_here(pattern: str) -> Any:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from error


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "matches": _matches,
    "find(string, string)": lambda frame, text, pattern: find_constant(_compiled_here(pattern))(frame, text),
    "findAll(string, string)": lambda frame, text, pattern: find_all_constant(_compiled_here(pattern))(
        frame, text, pattern
    ),
    "findAll(string, string, int)": lambda frame, text, pattern, limit: find_all_constant(_compiled_here(pattern))(
        frame, text, pattern, limit
    ),
}
