"""How long single hooks of plugins take, in a sample of the cycles; the daemon gives the clock."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Final

from attrs import define, field

from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.hooks.bound_hooks import BoundHook, HookFunction
from trio_sched.engine.hooks.histogram import Histogram, exponential_buckets
from trio_sched.engine.hooks.status_labels import ERROR, SUCCESS, label_or_error
from trio_sched.plugin_api.cycle_state import CycleState

Clock = Callable[[], float]
"""Returns seconds; only differences matter."""
ObserveCall = Callable[[BoundHook, str, float], None]
"""Is told which hook was called, the label of the status that it returned, and how many seconds that took."""


PLUGIN_BUCKETS: Final = exponential_buckets(0.00001, 1.5, 20)


@define(eq=False)
class PluginTimes:
    """Durations of single hooks in the sampled cycles, of all profiles."""

    clock: Clock = field(default=lambda: 0.0)
    by_hook: dict[tuple[str, str, str], Histogram] = field(factory=dict)
    """(plugin, hook, status) → seconds."""
    trace: AttemptTrace | None = None
    """Is told of the same calls, while those of an attempt are made that is traced."""

    def histogram(self, hook: BoundHook, status: str) -> Histogram:
        """The durations of *hook* when it returned *status*."""
        key = hook.plugin, hook.hook, status
        found = self.by_hook.get(key)
        if found is None:
            found = self.by_hook[key] = Histogram(PLUGIN_BUCKETS)
        return found

    def observe(self, hook: BoundHook, status: str, seconds: float) -> None:
        """*hook* has returned *status*."""
        self.histogram(hook, status).observe(seconds)
        if self.trace is not None:
            self.trace.hook_called(hook, status, seconds)

    def observer(self, state: CycleState, trace: AttemptTrace | None) -> ObserveCall | None:
        """Who is told of the calls that the daemon makes in this attempt; None if it is none of the sample."""
        if not state.record_plugin_metrics:
            return None
        if trace is None:
            return self.observe

        def observe(hook: BoundHook, status: str, seconds: float) -> None:
            self.histogram(hook, status).observe(seconds)
            trace.hook_called(hook, status, seconds)

        return observe

    def reset(self) -> None:
        """Forget everything."""
        for histogram in self.by_hook.values():
            histogram.reset()


class TimedHooks:
    """Hooks whose calls can be timed: meanwhile other functions stand in for theirs."""

    def __init__(self, hooks: Iterable[BoundHook], times: PluginTimes) -> None:
        self._hooks = tuple(hooks)
        self._times = times
        # What a hook has called last, and the same timed: making that takes longer than most calls.
        self._stand_ins = {hook: (hook.function, _timed(hook, hook.function, times)) for hook in self._hooks}

    @contextmanager
    def timing(self, trace: AttemptTrace | None = None) -> Generator[None]:
        """Time the calls inside the block, in which nothing waits: no other cycle must come in between.

        Args:
            trace: is told of them as well.
        """
        self._times.trace = trace
        originals = [(hook, hook.function) for hook in self._hooks]
        for hook, function in originals:
            hook.function = self._stand_in(hook, function)
        try:
            yield
        finally:
            self._times.trace = None
            for hook, function in originals:
                hook.function = function

    def _stand_in(self, hook: BoundHook, function: HookFunction) -> HookFunction:
        made = self._stand_ins[hook]
        if made[0] is not function:
            made = self._stand_ins[hook] = function, _timed(hook, function, self._times)
        return made[1]


def _timed(hook: BoundHook, function: HookFunction, times: PluginTimes) -> HookFunction:
    def timed(*args: object) -> object:
        began = times.clock()
        try:
            returned = function(*args)
        except BaseException:
            times.observe(hook, ERROR, times.clock() - began)
            raise
        seconds = times.clock() - began
        times.observe(hook, SUCCESS if returned is None else label_or_error(returned), seconds)
        return returned

    return timed
