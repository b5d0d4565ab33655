"""Notices an end that takes too long because a plugin does not let itself be cancelled."""

from __future__ import annotations

import trio

from trio_sched.daemon.hooks.hook_calls import call_under_way
from trio_sched.daemon.limits import MAX_END_SECONDS
from trio_sched.daemon.task_stacks import walk_tasks

_PAUSE_SECONDS = 1.0


async def wait_for_overdue_hooks(ending: trio.Event) -> list[str]:
    """Wait until hooks still run `MAX_END_SECONDS` after *ending*, when all are cancelled; returns which."""
    await ending.wait()
    await trio.sleep(MAX_END_SECONDS)
    while True:
        found = sorted(_hooks())
        if found:
            return found
        await trio.sleep(_PAUSE_SECONDS)


def _hooks() -> set[str]:
    """The hooks that run; nothing is recorded while they do, because this is asked once in the life of a process."""
    found = set()
    for _depth, task in walk_tasks(trio.lowlevel.current_root_task()):
        for frame, _line in task.iter_await_frames():
            hook = call_under_way(frame)
            if hook is not None:
                found.add(f"{hook.hook} of plugin {hook.plugin}")
    return found
