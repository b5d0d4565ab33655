"""Collects, while a legacy document is converted, what became of it: sentences for people, and what is wrong."""

from collections.abc import Sequence

from attrs import define, field

from trio_sched.config.errors import ConfigError, Problem


@define(eq=False)
class Changes:
    """What one conversion changed, and what it could not keep."""

    notes: list[str] = field(factory=list)
    problems: list[Problem] = field(factory=list)

    def note(self, path: str, became: str) -> None:
        """Say what became of the thing at *path*; equal sentences are said once."""
        sentence = f"{path}: {became}"
        if sentence not in self.notes:
            self.notes.append(sentence)

    def refuse(self, path: str, why: str) -> None:
        """Say why the thing at *path* cannot be kept, and what to do about it."""
        problem = Problem(path, why)
        if problem not in self.problems:
            self.problems.append(problem)

    def demand_possible(self, source: str) -> None:
        """Stop if anything could not be kept.

        Raises:
            ConfigError: with every problem.
        """
        if self.problems:
            raise ConfigError(self.problems, prefix=f"{source} cannot be converted to v1: ")


def listed(names: Sequence[str]) -> str:
    """*names* as people list them: ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
