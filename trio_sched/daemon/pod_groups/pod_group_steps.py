"""Takes the steps of an attempt to schedule a pod group: hooks that may be ``async``, extenders, pauses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from trio_sched.daemon.hooks.hook_calls import make_call, observed_call
from trio_sched.daemon.hooks.yielding import give_way
from trio_sched.daemon.limits import SLICE_SECONDS
from trio_sched.engine.evaluation.extender_cycle import ExtendersAnswer
from trio_sched.engine.hooks.plugin_calls import HookCall
from trio_sched.engine.hooks.plugin_times import ObserveCall
from trio_sched.engine.pod_groups.group_steps import AskExtenders, GroupSteps

T = TypeVar("T")

CallExtenders = Callable[[AskExtenders], Awaitable[ExtendersAnswer]]


async def run_group_steps(
    steps: GroupSteps[T], *, call_extenders: CallExtenders | None = None, observe: ObserveCall | None = None
) -> T:
    """Take every step that *steps* asks for; returns their outcome.

    Args:
        steps: an attempt.
        call_extenders: asks extenders about a pod; None if there are none.
        observe: is told of every call of a hook.
    """
    slice_began = trio.current_time()
    result: object = None
    try:
        while True:
            step = steps.send(result)
            result = None
            if isinstance(step, HookCall):
                result = await (make_call(step) if observe is None else observed_call(step, observe))
            elif isinstance(step, AskExtenders):
                assert call_extenders is not None
                result = await call_extenders(step)
            elif (seconds := trio.current_time() - slice_began) > SLICE_SECONDS:
                await give_way(seconds)
                slice_began = trio.current_time()
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome
    finally:
        steps.close()
