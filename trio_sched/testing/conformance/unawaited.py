"""Checks that every coroutine is awaited: without that, what a hook has asked for is never done."""

from __future__ import annotations

import gc
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trio_sched.plugin_api.extension_points import ASYNC_HOOKS
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.hooks import drive
from trio_sched.testing.conformance.subject import Subject

_DEPTH: Final = 20
_of_coroutine: Final = re.compile(r"coroutine '(?:.+\.)?(.+)' was never awaited").match
_places: Final = re.compile(r'File "(.+)", line (\d+), in (.+)').findall


def unawaited_problems(subject: Subject) -> Iterator[str]:
    """The coroutines that hooks make and never await."""
    trial = subject.fresh()
    columns = NodeColumns(trial.show(subject.cluster))
    for waiting in subject.pods:
        with warnings.catch_warnings(record=True) as caught, _origins_known():
            warnings.simplefilter("always")
            drive(trial, columns, waiting)
            gc.collect(0)  # what is in a circle is as young
        for warning in caught:
            found = _of_coroutine(str(warning.message))
            if found is not None:
                allowed = ", ".join(sorted(ASYNC_HOOKS))
                yield (
                    f"pod {waiting.name!r}: {found[1]}(…) is never awaited{_place(str(warning.message))}, so it does "
                    f"nothing: write await; only {allowed} may be async"
                )


@contextmanager
def _origins_known() -> Iterator[None]:
    """Python says where a coroutine was made that is not awaited."""
    before = sys.get_coroutine_origin_tracking_depth()
    sys.set_coroutine_origin_tracking_depth(max(before, _DEPTH))
    try:
        yield
    finally:
        sys.set_coroutine_origin_tracking_depth(before)


def _place(text: str) -> str:
    """The innermost line where it was made."""
    places = _places(text)
    if not places:
        return ""
    file, line, function = places[-1]
    return f" (in {function}, {file.rpartition('/')[2]}:{line})"
