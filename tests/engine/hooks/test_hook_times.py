from collections.abc import Callable
from typing import Any

import pytest
import trio
from attrs import define
from trio.testing import MockClock

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_times import HookTimes


@define(eq=False)
class WallClock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def taken(times: HookTimes) -> dict[str, tuple[float, int]]:
    found = {f"{one.hook.plugin}.{one.hook.hook}": (one.seconds, one.calls) for one in times.in_this_turn()}
    times.next_turn()
    return found


def timed(name: str, function: Callable[..., Any], times: HookTimes) -> BoundHook:
    hook = BoundHook("P", name, function)
    times.install([hook])
    return hook


def test_times_are_added_up_within_a_turn_and_in_all_also_of_calls_that_raise() -> None:
    clock = WallClock()
    times = HookTimes(clock)

    def reserve(seconds: float) -> float:
        clock.seconds += seconds
        return 10 / seconds

    hook = timed("reserve", reserve, times)
    times.switch_on()
    assert [hook.function(2), hook.function(5)] == [5, 2]
    with pytest.raises(ZeroDivisionError):
        hook.function(0)
    assert taken(times) == {"P.reserve": (7, 3)}
    assert taken(times) == {}
    hook.function(1)
    assert taken(times) == {"P.reserve": (1, 1)}
    assert times.totals == {("P", "reserve"): (8, 4)}
    times.replace([BoundHook("P", "reserve", reserve), BoundHook("P", "permit", reserve)])
    assert times.totals == {("P", "reserve"): (8, 4)}
    times.replace([])
    assert times.totals == {}


def test_nothing_replaces_a_hook_while_it_is_off() -> None:
    times = HookTimes(WallClock())
    hook = timed("reserve", print, times)
    assert hook.function is print
    times.switch_on()
    assert hook.function is not print
    times.switch_off()
    assert hook.function is print


def test_wrappers_of_a_hook_are_undone_in_any_order() -> None:
    def adding(letter: str) -> Callable[[Callable[[], str]], Callable[[], str]]:
        return lambda function: lambda: function() + letter

    def name() -> str:
        return "a"

    times = HookTimes(WallClock())
    hook = timed("reserve", name, times)
    undo_c = hook.wrap(adding("c"))
    times.switch_on()
    undo_b = hook.wrap(adding("b"), innermost=True)
    assert hook.function() == "abc"
    assert taken(times) == {"P.reserve": (0, 1)}
    times.switch_off()
    assert hook.function() == "abc"
    undo_c()
    assert hook.function() == "ab"
    undo_b()
    undo_b()
    assert hook.function is name
    assert taken(times) == {}


def test_a_hook_that_calls_another_has_its_own_time_only() -> None:
    clock = WallClock()
    times = HookTimes(clock)

    def filter_node() -> None:
        clock.seconds += 3

    def post_filter() -> None:
        clock.seconds += 1
        inner.function()
        inner.function()

    inner, outer = timed("filter_node", filter_node, times), timed("post_filter", post_filter, times)
    times.switch_on()
    outer.function()
    assert taken(times) == {"P.filter_node": (6, 2), "P.post_filter": (1, 1)}


async def test_a_timed_coroutine_is_cancelled_and_raises_like_any_other(autojump_clock: MockClock) -> None:
    seen: list[str] = []

    async def bind(error: Exception | None) -> str:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            seen.append("cancelled")
            raise
        if error is not None:
            raise error
        return "bound"

    hook = BoundHook("P", "bind", bind)
    times = HookTimes(WallClock())
    times.install([hook])
    times.switch_on()
    assert await hook.function(None) == "bound"
    with pytest.raises(LookupError, match="no"):
        await hook.function(LookupError("no"))
    with trio.move_on_after(0.5) as scope:
        await hook.function(None)
    assert scope.cancelled_caught
    assert seen == ["cancelled"]
