"""Makes the calls of hooks that may be ``async``; what they answer is for the engine to read."""

from __future__ import annotations

import inspect
from typing import TypeVar

import trio

from trio_sched.engine.hook_steps import HookSteps
from trio_sched.engine.plugin_calls import HookCall, HookResult

T = TypeVar("T")


async def run_steps(steps: HookSteps[T]) -> T:
    """Make every call that *steps* asks for; returns their outcome."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await make_call(call))
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


async def make_call(call: HookCall) -> HookResult:
    """Make one call, and await what it returns if that can be awaited."""
    try:
        value = call.hook.function(*call.args)
        if inspect.isawaitable(value):
            value = await value
    except Exception as error:
        return HookResult(error=error)
    except (trio.Cancelled, KeyboardInterrupt, BaseExceptionGroup):
        raise  # not the plugin's: a nursery of the plugin passes cancellation on in a group
    except BaseException as error:
        return HookResult(error=error)
    return HookResult(value)
