"""The tasks of the event loop, as the tree of their nurseries, and where each of them waits."""

from __future__ import annotations

from collections.abc import Iterator

import trio


def walk_tasks(root: trio.lowlevel.Task | None) -> Iterator[tuple[int, trio.lowlevel.Task]]:
    """*root* and all tasks below it, with their depth, parents first."""
    rest = [] if root is None else [(0, root)]
    while rest:
        depth, task = rest.pop()
        yield depth, task
        rest += [(depth + 1, child) for nursery in task.child_nurseries for child in nursery.child_tasks]


def frames_of(task: trio.lowlevel.Task) -> Iterator[str]:
    """A line for each frame in which *task* waits, the outermost first."""
    if task.coro.cr_running:
        yield "(running)"
        return
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        yield f"{code.co_qualname} ({code.co_filename}:{line})"
