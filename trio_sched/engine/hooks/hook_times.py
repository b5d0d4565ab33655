"""How long hooks keep the thread busy: while it is switched on, functions that time the calls replace those of plugins.

Without it a call costs nothing more; the daemon switches it on when the event loop was blocked, to find out by whom.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Iterable
from functools import partial
from types import CoroutineType, coroutine
from typing import Any

from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import BoundHook, HookFunction
from trio_sched.plugin_api.extension_points import ASYNC_HOOKS

Clock = Callable[[], float]
"""Returns seconds that do not stop while a hook computes or sleeps: `time.perf_counter`."""


@define(eq=False)
class HookTime:
    """The time that one hook of one plugin has taken since the last `HookTimes.next_turn`, and before."""

    hook: BoundHook
    seconds: float = 0.0
    """Without what other hooks have taken that it has called through the handle."""
    calls: int = 0
    """Calls, and for ``async`` hooks each time they went on after they had waited."""
    seconds_before: float = 0.0
    calls_before: int = 0
    turn: int = 0
    """To which *seconds* and *calls* belong; in later ones they are to be added to those before."""


@define(eq=False)
class HookTimes:
    """Times the calls of hooks; those of ``async`` hooks only while they do not wait."""

    clock: Clock
    is_on: bool = field(default=False, init=False)
    has_hooks: bool = field(default=False, init=False)
    """Whether there is any hook to time."""
    hooks: list[BoundHook] = field(factory=list, init=False)
    """What is timed while it is switched on."""
    _undo: list[Callable[[], None]] = field(factory=list, init=False)
    _times: dict[tuple[str, str], HookTime] = field(factory=dict, init=False)
    """By plugin and hook."""
    _turn: int = field(default=1, init=False)
    _nested_seconds: float = field(default=0.0, init=False)
    """What hooks have taken that were called by the one that runs."""

    def install(self, hooks: Iterable[BoundHook]) -> None:
        """Time *hooks* when it is switched on; ``run``, which is called once, is timed always."""
        for hook in hooks:
            self.has_hooks = True
            self._times.setdefault((hook.plugin, hook.hook), HookTime(hook))
            if hook.hook == "run":
                hook.wrap(partial(self._timed, hook))
            else:
                self.hooks.append(hook)
                if self.is_on:
                    self._undo.append(hook.wrap(partial(self._timed, hook)))

    def replace(self, hooks: Iterable[BoundHook]) -> None:
        """Time *hooks* instead of those that were installed before, whose plugins are no longer scheduled with."""
        self.switch_off()
        self.hooks.clear()
        before, self._times = self._times, {}
        self.install(hooks)
        for key, taken in self._times.items():
            if key in before:
                taken.seconds_before, taken.calls_before = _total(before[key])

    def switch_on(self) -> None:
        """Time every call from now on."""
        if not self.is_on:
            self.is_on = True
            self._undo = [hook.wrap(partial(self._timed, hook)) for hook in self.hooks]

    def switch_off(self) -> None:
        """Time no calls any more, except those of ``run``."""
        self.is_on = False
        for undo in self._undo:
            undo()
        self._undo.clear()

    @property
    def totals(self) -> dict[tuple[str, str], tuple[float, int]]:
        """Seconds and calls until now, by plugin and hook."""
        return {key: total for key, taken in self._times.items() if (total := _total(taken))[1]}

    def next_turn(self) -> None:
        """Start over; at every turn of the event loop, so what has been measured stays where it is."""
        self._turn += 1

    def in_this_turn(self) -> list[HookTime]:
        """What hooks have taken since the last `next_turn`, one entry for each plugin and hook that was called."""
        return [taken for taken in self._times.values() if taken.turn == self._turn]

    def _timed(self, hook: BoundHook, function: HookFunction) -> HookFunction:
        measure = self._measure(hook)
        if hook.hook not in ASYNC_HOOKS:
            return partial(measure, function)

        def timed(*args: object) -> Any:
            value = measure(function, *args)
            return _timed_steps(value, measure) if type(value) is CoroutineType else value

        return timed

    def _measure(self, hook: BoundHook) -> Callable[..., Any]:
        """Calls the function that is its first argument, and adds the time that it takes to that of *hook*."""
        taken = self._times[hook.plugin, hook.hook]

        def measure(function: Callable[..., Any], *args: object) -> Any:
            outer, self._nested_seconds = self._nested_seconds, 0.0
            began = self.clock()
            try:
                return function(*args)
            finally:
                seconds = self.clock() - began
                if taken.turn != self._turn:
                    taken.turn = self._turn
                    taken.seconds_before += taken.seconds
                    taken.calls_before += taken.calls
                    taken.seconds, taken.calls = 0.0, 0
                taken.calls += 1
                taken.seconds += seconds - self._nested_seconds
                self._nested_seconds = outer + seconds

        return measure


def _total(taken: HookTime) -> tuple[float, int]:
    return taken.seconds_before + taken.seconds, taken.calls_before + taken.calls


@coroutine
def _timed_steps(awaited: Coroutine[Any, Any, Any], measure: Callable[..., Any]) -> Generator[Any, Any, Any]:
    """Awaits a coroutine; each of its steps, from one wait to the next, is a call of its own for *measure*."""
    step: Callable[[Any], Any] = awaited.send
    sent: Any = None
    try:
        while True:
            try:
                waits_for = measure(step, sent)
            except StopIteration as stop:
                return stop.value
            try:
                step, sent = awaited.send, (yield waits_for)
            except GeneratorExit:
                raise
            except BaseException as error:  # Cancelled, for instance: it is for the coroutine to handle
                step, sent = awaited.throw, error
    finally:
        awaited.close()
