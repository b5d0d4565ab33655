"""Collects the changes and the problems while a legacy document is converted."""

from collections.abc import Sequence

from attrs import define, field

from trio_sched.config.errors import ConfigError, Problem


@define(eq=False)
class Changes:
    """What one conversion changed, and what it could not keep."""

    notes: list[str] = field(factory=list)
    problems: list[Problem] = field(factory=list)

    def note(self, path: str, became: str) -> None:
        """Note what the thing at *path* is converted to; equal notes are kept once."""
        sentence = f"{path}: {became}"
        if sentence not in self.notes:
            self.notes.append(sentence)

    def refuse(self, path: str, why: str) -> None:
        """Note as a problem why the thing at *path* cannot be converted, and what to do about it."""
        problem = Problem(path, why)
        if problem not in self.problems:
            self.problems.append(problem)

    def raise_problems(self, source: str) -> None:
        """Raise if anything could not be converted.

        Raises:
            ConfigError: with every problem.
        """
        if self.problems:
            raise ConfigError(self.problems, prefix=f"{source} cannot be converted to v1: ")


def listed(names: Sequence[str]) -> str:
    """*names* as a list in a sentence: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
