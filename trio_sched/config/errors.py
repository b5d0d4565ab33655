"""What is wrong with a configuration, problem by problem."""

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from trio_sched.errors import TrioSchedError
from trio_sched.go.text import shortened

_LONGEST: Final = 8_000
"""Characters of one problem that are shown; more than any that lists what kube-scheduler lists."""


@frozen
class Problem:
    """One mistake: where (a path in the file, empty if it has none) and what."""

    path: str
    message: str

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return shortened(text, _LONGEST)


@frozen
class Finding:
    """One mistake among all that a check of a whole file finds."""

    path: str
    """The field; empty if it is about the whole file."""
    message: str
    suggestion: str = ""
    """The name that was probably meant; empty if none is near."""


class ConfigError(TrioSchedError):
    """A configuration that cannot be used; `problems` lists every mistake, the text is kube-scheduler's."""

    def __init__(self, problems: Iterable[Problem], *, prefix: str = "") -> None:
        self.problems = tuple(problems)
        self.prefix = prefix
        super().__init__(self.problems, prefix)

    @classmethod
    def of(cls, message: str) -> "ConfigError":
        """An error that is about the whole and has no path."""
        return cls((Problem("", message),))

    def within(self, prefix: str) -> "ConfigError":
        """The same problems, with *prefix* before the text to say what was being done."""
        error = ConfigError(self.problems, prefix=prefix + self.prefix)
        error.hint, error.place = self.hint, self.place
        return error

    def __str__(self) -> str:
        # Equal texts are said once; one problem stands for itself, several stand in brackets.
        texts = list(dict.fromkeys(map(str, self.problems)))
        return self.prefix + (texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
