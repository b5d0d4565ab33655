"""Regular expressions of RE2, which take linear time whatever the pattern is."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

from trio_sched.cel.errors import NO_SUCH_OVERLOAD, EvaluationError
from trio_sched.cel.library.conversions import wrong_type
from trio_sched.cel.runtime.activation import Activation
from trio_sched.cel.values.values import Value

_CACHED: Final = 64
_MATCHING: Final = 20
"""How much more work it is to find a match than to look at an element."""
_MEMORY_BYTES: Final = 2 << 20
"""The most that one compiled pattern may take; what needs more is refused."""
LARGEST: Final = 100_000
"""Instructions that a compiled pattern can have, about; so many take some 30 ms to compile."""
TOO_LARGE: Final = "pattern too large"
_COMPILED_PER_ELEMENT: Final = 1
"""Instructions that are compiled in the time in which an element is looked at."""
_STEPS_PER_ELEMENT: Final = 80
"""Instructions that are tried at a character in that time, where a pattern has too many states to remember them."""

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


def search(activation: Activation, pattern: Any, text: str) -> Any:
    """The first match in *text*, or None; counts the work, which is more than what the original has it cost.

    Constant patterns are counted as if they were compiled each time: with many large ones they are.
    """
    activation.spend(
        pattern.programsize // _COMPILED_PER_ELEMENT + len(text) * pattern.programsize // _STEPS_PER_ELEMENT
    )
    return pattern.search(text)


def _matches(activation: Activation, text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        raise wrong_type("matches", text)
    if type(pattern) is not str:
        raise EvaluationError(NO_SUCH_OVERLOAD)
    return search(activation, _compiled_in(activation, pattern), text) is not None


def matches_constant(pattern: str) -> Callable[..., Value]:
    """``matches`` with a pattern that is known beforehand."""

    def matches(activation: Activation, text: Value, *_pattern: Value) -> Value:
        if type(text) is not str:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        return search(activation, compiled(pattern), text) is not None

    return matches


def find_constant(pattern: str) -> Callable[..., Value]:
    """``find`` with a pattern that is known beforehand."""

    def find(activation: Activation, text: Value, *_pattern: Value) -> Value:
        if type(text) is not str:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        found = search(activation, compiled(pattern), text)
        return "" if found is None else found.group()

    return find


def find_all_constant(pattern: str) -> Callable[..., Value]:
    """``findAll`` with a pattern that is known beforehand."""

    def find_all(activation: Activation, text: Value, _pattern: Value, limit: Value = -1) -> Value:
        if type(text) is not str or type(limit) is not int:
            raise EvaluationError(NO_SUCH_OVERLOAD)
        found: list[Value] = []
        end = -1
        ready = compiled(pattern)
        search(activation, ready, text)
        for match in ready.finditer(text):
            if 0 <= limit <= len(found):
                break
            if match.end() == match.start() == end:  # Go has no empty match right after another one
                continue
            end = match.end()
            activation.spend(_MATCHING)
            found.append(match.group())
        return found

    return find_all


def _compiled_in(activation: Activation, pattern: str) -> Any:
    try:
        return compiled(pattern)
    except EvaluationError as error:
        if TOO_LARGE in str(error):
            activation.spend(LARGEST // _COMPILED_PER_ELEMENT)
        raise


def _compiled_here(activation: Activation, pattern: str) -> str:
    try:
        _compiled_in(activation, pattern)
    except EvaluationError as error:
        raise EvaluationError(f"Illegal regex: {error}") from error
    return pattern


FUNCTIONS: Final[dict[str, Callable[..., Value]]] = {
    "matches": _matches,
    "find(string, string)": lambda activation, text, pattern: find_constant(_compiled_here(activation, pattern))(
        activation, text
    ),
    "findAll(string, string)": lambda activation, text, pattern: find_all_constant(_compiled_here(activation, pattern))(
        activation, text, pattern
    ),
    "findAll(string, string, int)": lambda activation, text, pattern, limit: find_all_constant(
        _compiled_here(activation, pattern)
    )(activation, text, pattern, limit),
}
