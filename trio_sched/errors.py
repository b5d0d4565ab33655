"""The root of every error trio-sched raises on purpose, and what helps to word one."""

import difflib
from collections.abc import Iterable
from typing import Final, TypeVar

E = TypeVar("E", bound=BaseException)

_NEAR: Final = 0.7
"""From this ratio of equal characters on, one name may have been meant to be another: NodeNam, but not NodeFoo."""
_LONGEST_NAME: Final = 100


class TrioSchedError(Exception):
    """An error that a person can fix; its text says what happened, to which object, and what to do."""

    hint: str = ""
    """What to do, for an error whose text must be kube-scheduler's; empty where the text says it."""
    place: str = ""
    """Where it is (a file, with line and column if they are known), likewise."""


def leaves(group: BaseExceptionGroup[E]) -> list[E]:
    """The errors of *group*, however deep."""
    found: list[E] = []
    for problem in group.exceptions:
        found += leaves(problem) if isinstance(problem, BaseExceptionGroup) else [problem]
    return found


def first_leaf(group: BaseExceptionGroup[E]) -> E:
    """The first leaf of *group*, however deep: for messages that report one error of several."""
    return leaves(group)[0]


def nearest_name(word: str, names: Iterable[str]) -> str | None:
    """The one of *names* that *word* may have been meant to be, whatever its case; None if none is near."""
    by_folded = {name.casefold(): name for name in names}
    if len(word) > _LONGEST_NAME:  # comparing takes quadratic time
        return None
    near = difflib.get_close_matches(word.casefold(), by_folded, n=1, cutoff=_NEAR)
    return by_folded[near[0]] if near else None
