"""All trio tasks with their stacks, as the tree of their nurseries."""

from __future__ import annotations

from itertools import islice

import trio

from trio_sched.daemon.serving.limits import MAX_LISTED_TASKS, MAX_STACK_FRAMES
from trio_sched.daemon.slices import in_slices
from trio_sched.daemon.task_stacks import frames_of, walk_tasks


async def task_tree() -> str:
    """A line for each task, deeper ones further in, with the frames in which it waits below it."""
    root = trio.lowlevel.current_root_task()
    tasks = list(islice(walk_tasks(root), MAX_LISTED_TASKS + 1))
    lines = []
    async for depth, task in in_slices(tasks[:MAX_LISTED_TASKS]):
        margin = "  " * depth
        lines.append(f"{margin}{task.name}")
        lines += [f"{margin}  - {line}" for line in islice(frames_of(task), MAX_STACK_FRAMES)]
    if len(tasks) > MAX_LISTED_TASKS:
        lines.append(f"only the first {MAX_LISTED_TASKS} tasks are listed")
    return "\n".join([*lines, ""])
