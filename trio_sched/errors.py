"""The root of every error trio-sched raises on purpose, and a helper for exception groups."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class TrioSchedError(Exception):
    """An error that a person can fix; its text says what happened, to which object, and what to do."""


def first_leaf(group: BaseExceptionGroup[E]) -> E:
    """The first leaf of *group*, however deep: for messages that report one error of several."""
    problem = group.exceptions[0]
    return first_leaf(problem) if isinstance(problem, BaseExceptionGroup) else problem
