"""How long hooks keep the thread busy: while it is switched on, functions that time the calls replace those of plugins.

Without it a call costs nothing more; the daemon switches it on when the event loop was blocked, to find out by whom.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from types import CoroutineType
from typing import Any

from attrs import define, field, frozen

from trio_sched.engine.bound_hooks import BoundHook, HookFunction
from trio_sched.plugin_api.extension_points import ASYNC_HOOKS

Clock = Callable[[], float]
"""Returns seconds that do not stop while a hook computes or sleeps: `time.perf_counter`."""


@define(eq=False)
class HookTime:
    """The time that one hook of one plugin has taken."""

    hook: BoundHook
    seconds: float = 0.0
    """Without what other hooks have taken that it has called through the handle."""
    calls: int = 0
    """Calls, and for ``async`` hooks each time they went on after they had waited."""


@define(eq=False)
class HookTimes:
    """Times the calls of hooks; those of ``async`` hooks only while they do not wait."""

    clock: Clock
    is_on: bool = field(default=False, init=False)
    has_hooks: bool = field(default=False, init=False)
    """Whether there is any hook to time."""
    totals: dict[tuple[str, str], tuple[float, int]] = field(factory=dict, init=False)
    """Seconds and calls of everything that was drained, by plugin and hook."""
    _hooks: list[_TimedHook] = field(factory=list, init=False)
    _times: dict[tuple[str, str], HookTime] = field(factory=dict, init=False)
    _nested_seconds: float = field(default=0.0, init=False)
    """What hooks have taken that were called by the one that runs."""

    def install(self, hooks: Iterable[BoundHook]) -> None:
        """Time *hooks* when it is switched on; ``run``, which is called once, is timed always."""
        for hook in hooks:
            self.has_hooks = True
            timed = _TimedHook(hook, hook.function, self._timed(hook, hook.function))
            if hook.hook == "run":
                hook.function = timed.replacement
            else:
                self._hooks.append(timed)
                if self.is_on:
                    hook.function = timed.replacement

    def replace(self, hooks: Iterable[BoundHook]) -> None:
        """Time *hooks* instead of those that were installed before, whose plugins are no longer scheduled with."""
        self.switch_off()
        self._hooks.clear()
        self.install(hooks)

    @property
    def hooks(self) -> list[BoundHook]:
        """What is timed while it is switched on."""
        return [timed.hook for timed in self._hooks]

    def function(self, hook: BoundHook) -> HookFunction:
        """What *hook* calls, apart from being timed."""
        return next((timed.original for timed in self._hooks if timed.hook is hook), hook.function)

    def put_function(self, hook: BoundHook, function: HookFunction) -> None:
        """Have *hook* call *function* from now on, timed as it was before."""
        hook.function = function
        for position, timed in enumerate(self._hooks):
            if timed.hook is hook:
                self._hooks[position] = again = _TimedHook(hook, function, self._timed(hook, function))
                if self.is_on:
                    hook.function = again.replacement

    def switch_on(self) -> None:
        """Time every call from now on."""
        if not self.is_on:
            self.is_on = True
            for timed in self._hooks:
                timed.hook.function = timed.replacement

    def switch_off(self) -> None:
        """Time no calls any more, except those of ``run``."""
        if self.is_on:
            self.is_on = False
            for timed in self._hooks:
                timed.hook.function = timed.original

    def drain(self) -> list[HookTime]:
        """What hooks have taken since the last time, one entry for each plugin and hook."""
        if not self._times:
            return []
        drained = list(self._times.values())
        for key, taken in self._times.items():
            seconds, calls = self.totals.get(key, (0.0, 0))
            self.totals[key] = (seconds + taken.seconds, calls + taken.calls)
        self._times.clear()
        return drained

    def _timed(self, hook: BoundHook, function: HookFunction) -> HookFunction:
        may_be_async = hook.hook in ASYNC_HOOKS

        def timed(*args: object) -> Any:
            value = self.measure(hook, partial(function, *args))
            if may_be_async and issubclass(type(value), CoroutineType):
                return _TimedCoroutine(value, partial(self.measure, hook))
            return value

        return timed

    def measure(self, hook: BoundHook, call: Callable[[], Any]) -> Any:
        """Make *call*, and add the time that it takes to that of *hook*."""
        outer, self._nested_seconds = self._nested_seconds, 0.0
        begun = self.clock()
        try:
            return call()
        finally:
            seconds = self.clock() - begun
            key = hook.plugin, hook.hook
            taken = self._times.get(key)
            if taken is None:
                taken = self._times[key] = HookTime(hook)
            taken.seconds += seconds - self._nested_seconds
            taken.calls += 1
            self._nested_seconds = outer + seconds


@frozen(eq=False)
class _TimedHook:
    hook: BoundHook
    original: HookFunction
    replacement: HookFunction


@frozen(eq=False)
class _TimedCoroutine:
    """Awaits a coroutine; each of its steps, from one wait to the next, is a call of its own for *measure*."""

    coroutine: Coroutine[Any, Any, Any]
    measure: Callable[[Callable[[], Any]], Any]

    def __await__(self) -> Generator[Any, Any, Any]:
        step: Callable[[], Any] = partial(self.coroutine.send, None)
        try:
            while True:
                try:
                    waits_for = self.measure(step)
                except StopIteration as stop:
                    return stop.value
                try:
                    sent = yield waits_for
                except GeneratorExit:
                    raise
                except BaseException as error:  # Cancelled, for instance: it is for the coroutine to handle
                    step = partial(self.coroutine.throw, error)
                else:
                    step = partial(self.coroutine.send, sent)
        finally:
            self.coroutine.close()
