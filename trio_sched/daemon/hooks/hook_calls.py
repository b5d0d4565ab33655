"""Makes the calls of hooks that may be ``async``; what they return is for the engine to read."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

import trio

from trio_sched.daemon.hooks.hook_time_limit import HookScope, current_hook_scope
from trio_sched.daemon.limits import HOOK_SECONDS, PRE_BIND_SECONDS
from trio_sched.engine.evaluation.hook_steps import HookSteps
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookTimedOut
from trio_sched.engine.hooks.plugin_calls import HookCall, HookResult
from trio_sched.engine.hooks.plugin_times import ObserveCall
from trio_sched.engine.hooks.status_labels import ERROR, label_or_error
from trio_sched.interrupts import is_interrupt

log = logging.getLogger(__name__)

T = TypeVar("T")


async def run_steps(steps: HookSteps[T], observe: ObserveCall | None = None) -> T:
    """Make every call that *steps* asks for; returns their outcome."""
    try:
        call = next(steps)
        while True:
            call = steps.send(await (make_call(call) if observe is None else observed_call(call, observe)))
    except StopIteration as stop:
        outcome: T = stop.value
        return outcome


async def observed_call(call: HookCall, observe: ObserveCall) -> HookResult:
    """Make one call, and tell *observe* what came of it."""
    began = trio.current_time()
    result = await make_call(call)
    label = ERROR if result.error is not None else label_or_error(result.value)
    observe(call.hook, label, trio.current_time() - began)
    return result


def make_call(call: HookCall) -> Awaitable[HookResult]:
    """Make one call, and await what it returns if that can be awaited; not for ever.

    Raises:
        trio.Cancelled: this task is cancelled.
        KeyboardInterrupt: it came to the process, not from the plugin.
    """
    # The requests of built-in plugins have limits of their own.
    around = current_hook_scope()
    is_used_up = around is not None and around.cancel_called
    if call.hook.built_in and not is_used_up:
        return _make_call(call)
    if call.hook.hook == "pre_bind" and not is_used_up:
        return _make_pre_bind(call)
    return _make_call_in_time(call, around, is_used_up=is_used_up)


async def _make_call_in_time(call: HookCall, around: HookScope | None, *, is_used_up: bool) -> HookResult:
    if around is not None and call.hook.hook == "bind" and not is_used_up:
        return await _make_limited_call(call, around)
    with HookScope(shield=is_used_up) as scope:  # of a hook that was late and has succeeded the next one gets its time
        return await _make_limited_call(call, scope)
    return HookResult(error=HookTimedOut(HOOK_SECONDS))


async def _make_pre_bind(call: HookCall) -> HookResult:
    """Make a call of pre_bind, which holds up no other pod, and may have something made that takes minutes."""
    limit = PRE_BIND_SECONDS if call.hook.timeout_seconds is None else call.hook.timeout_seconds
    result: HookResult | None = None
    with trio.move_on_after(limit) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_warn_of_pre_bind, call, limit)
            result = await _make_call(call)
            nursery.cancel_scope.cancel()
    if result is None or (result.error is not None and scope.cancel_called):
        return HookResult(error=HookTimedOut(limit))
    return result


async def _warn_of_pre_bind(call: HookCall, limit: float) -> None:
    """Say that a pod waits, long before its attempt ends for it."""
    await trio.sleep(min(HOOK_SECONDS, limit / 2))
    pod: Any = call.args[0]
    log.warning(
        "plugin %s: pod %s still waits for its pre_bind, which is cancelled when it takes longer than %g s",
        call.hook.plugin,
        pod.key,
        limit,
        extra={"plugin": call.hook.plugin, "hook": call.hook.hook, "distribution": call.hook.source},
    )


async def _make_limited_call(call: HookCall, scope: HookScope) -> HookResult:
    scope.start()
    try:
        result = await _make_call(call)
    except trio.Cancelled:
        if not scope.cancel_called:
            raise
        result = HookResult(error=HookTimedOut(HOOK_SECONDS))
    finally:
        scope.stop()
    if result.error is not None and scope.cancel_called:
        return HookResult(error=HookTimedOut(HOOK_SECONDS))
    return result  # also if it is late: a thread, for instance, is not cancelled, and has done what it should


async def _make_call(call: HookCall) -> HookResult:
    """Make one call, and await what it returns if that can be awaited.

    Raises:
        trio.Cancelled: this task is cancelled; a Cancelled of scopes of the plugin's own is the plugin's failure.
        KeyboardInterrupt: it came to the process, not from the plugin.
    """
    try:
        value = call.hook.function(*call.args)
        if inspect.isawaitable(value):
            value = await (value if call.hook.built_in else _contained(value))
    except Exception as error:
        return HookResult(error=error)
    except BaseException as error:
        inside = list(_leaves(error))
        if any(is_interrupt(one) for one in inside):
            raise
        if any(type(one) is trio.Cancelled for one in inside):
            await trio.lowlevel.checkpoint_if_cancelled()
        return HookResult(error=error)
    return HookResult(value)


class LeftOpen(Exception):
    """A hook has returned inside of a nursery or a cancel scope of its own, which has been ended."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return (
            f"it has returned inside of {self.what} that it has opened; use `async with` or `with`, and `aclosing` "
            "around asynchronous generators"
        )


async def _contained(awaitable: Awaitable[T]) -> T:
    """What *awaitable* gives; nurseries and cancel scopes that it leaves open are ended: this task is not its own.

    Raises:
        LeftOpen: it has left one open.
    """
    task = trio.lowlevel.current_task()
    before = len(task.child_nurseries)
    has_returned = False
    try:
        with trio.CancelScope():
            try:
                value = await awaitable
                has_returned = True
            finally:
                left = task.child_nurseries[before:]
                for nursery in reversed(left):
                    await _end_nursery(nursery)
    except RuntimeError:
        if has_returned:  # then the scope has raised it
            raise LeftOpen("a cancel scope") from None
        raise
    if left:
        raise LeftOpen("a nursery")
    return value


async def _end_nursery(nursery: trio.Nursery) -> None:
    """Do what ``async with`` would have done; trio has no public way to close a nursery from outside."""
    nursery.cancel_scope.cancel()
    finish: Callable[[None], Awaitable[object]] | None = getattr(nursery, "_nested_child_finished", None)
    if finish is not None:
        await finish(None)
    with suppress(RuntimeError):  # other scopes are open inside of it
        nursery.cancel_scope.__exit__(None, None, None)


async def run_in_background(hook: BoundHook) -> HookResult:
    """Call the hook ``run``, which returns when it likes; raises what `make_call` raises."""
    return await _make_call(HookCall(hook, ()))


def call_under_way(frame: FrameType) -> BoundHook | None:
    """The hook that *frame* of a task awaits, if it does."""
    if frame.f_code is _make_call.__code__:
        hook: BoundHook = frame.f_locals["call"].hook
        return hook
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    """*error*, or if it is a group what is in it; nurseries of a plugin pass everything on in groups."""
    groups = [error]
    while groups:
        one = groups.pop()
        if issubclass(type(one), BaseExceptionGroup):
            groups += BaseExceptionGroup.exceptions.__get__(one)
        else:
            yield one
