"""What is wrong with an expression: before it is evaluated, or while it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from trio_sched.errors import TrioSchedError


@frozen(order=True)
class Issue:
    """One thing that is wrong with the text of an expression."""

    offset: int
    """The code point at which it shows; negative: the expression as a whole."""
    message: str


_MAX_SHOWN: Final = 10
"""How many of the things that are wrong with a text are shown: each has the whole line with it."""


class CelError(TrioSchedError):
    """Something is wrong with an expression, or with what it was evaluated for."""


class CompileError(CelError):
    """The expression cannot be evaluated for anything."""


class InvalidExpression(CompileError):
    """The text is no expression, or its types do not fit together."""

    def __init__(self, source: str, issues: Iterable[Issue]) -> None:
        self.source, self.issues = source, tuple(sorted(issues))
        lines = [shown(source, issue) for issue in self.issues[:_MAX_SHOWN]]
        if len(self.issues) > _MAX_SHOWN:
            lines.append(f"and {len(self.issues) - _MAX_SHOWN} more")
        super().__init__("compilation failed: " + "\n".join(lines))


class EvaluationError(CelError):
    """The expression has no value for these inputs."""


class Aborted(CelError):
    """Evaluation ends, and no ``||``, ``&&`` or ``?:`` takes the error away; turned into an `EvaluationError`."""


COST_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
NO_SUCH_OVERLOAD: Final = "no such overload"


def shown(source: str, issue: Issue) -> str:
    """*issue* with its line of *source*, as cel-go shows it."""
    if issue.offset < 0:
        return f"ERROR: <input>:-1:0: {issue.message}"
    before = source[: issue.offset]
    line = before.count("\n") + 1
    column = issue.offset - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1].replace("\t", " ")
    dots = "".join("." if len(character.encode("utf-8", "replace")) == 1 else "．" for character in text[:column])
    is_wide = column < len(text) and len(text[column].encode("utf-8", "replace")) > 1
    return f"ERROR: <input>:{line}:{column + 1}: {issue.message}\n | {text}\n | {dots}{'＾' if is_wide else '^'}"
