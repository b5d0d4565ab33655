"""All trio tasks with their stacks, as the tree of their nurseries."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import trio

from trio_sched.daemon.serving.limits import MAX_LISTED_TASKS, MAX_STACK_FRAMES
from trio_sched.daemon.serving.slices import in_slices


async def task_tree() -> str:
    """A line for each task, deeper ones further in, with the frames in which it waits below it."""
    root = trio.lowlevel.current_root_task()
    tasks = [] if root is None else list(islice(_walk(root), MAX_LISTED_TASKS + 1))
    lines = []
    async for depth, task in in_slices(tasks[:MAX_LISTED_TASKS]):
        margin = "  " * depth
        lines.append(f"{margin}{task.name}")
        lines += [f"{margin}  - {line}" for line in islice(_frames(task), MAX_STACK_FRAMES)]
    if len(tasks) > MAX_LISTED_TASKS:
        lines.append(f"only the first {MAX_LISTED_TASKS} tasks are listed")
    return "\n".join([*lines, ""])


def _walk(root: trio.lowlevel.Task) -> Iterator[tuple[int, trio.lowlevel.Task]]:
    rest = [(0, root)]
    while rest:
        depth, task = rest.pop()
        yield depth, task
        rest += [(depth + 1, child) for nursery in task.child_nurseries for child in nursery.child_tasks]


def _frames(task: trio.lowlevel.Task) -> Iterator[str]:
    if task.coro.cr_running:
        yield "(running)"
        return
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        yield f"{code.co_qualname} ({code.co_filename}:{line})"
