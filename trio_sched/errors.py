"""The root of every error trio-sched raises on purpose, and a way into groups of errors."""

from typing import TypeVar

E = TypeVar("E", bound=BaseException)


class TrioSchedError(Exception):
    """Something a person can understand and mend; its text says what, where and how."""


def first_of(group: BaseExceptionGroup[E]) -> E:
    """One of the errors in *group*, the first, however deep: where one is as good as another to tell of."""
    problem = group.exceptions[0]
    return first_of(problem) if isinstance(problem, BaseExceptionGroup) else problem
