"""A hook that does not return ends a test with the plugin, the hook and the stack, instead of hanging for ever."""

import itertools
import math
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.hooks.hook_calls import make_call
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_calls import HookCall, call_status_hook
from trio_sched.interrupts import HookInterrupted
from trio_sched.plugin_api import ClusterEvent, EventRegistration, Hint, NodeView, Pod, hookimpl, on
from trio_sched.plugin_api.cluster_events import Action, Resource
from trio_sched.testing import (
    NotConforming,
    ask_hint,
    check_conformance,
    conformance_test,
    node,
    pod,
    schedule,
    virtual_cluster,
)
from trio_sched.testing.hook_limit import HookLimit, HookNeverReturned

SECONDS = 0.2
NODES = [node("a"), node("b")]


class Loops(PluginBase):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> None:
        count = 0
        while True:
            count += 1


class LoopsInAHelper(PluginBase):
    @hookimpl
    def reserve(self, pod: Pod) -> None:
        loop_in_a_helper()


def loop_in_a_helper() -> None:
    while True:
        with suppress(Exception):  # what interrupts it is none
            int("no number")


class LoopsInTheBackground(PluginBase):
    @hookimpl
    async def run(self) -> None:
        while True:
            pass

    @hookimpl
    def reserve(self, pod: Pod) -> None: ...


class LoopsBetweenWaits(PluginBase):
    @hookimpl
    async def pre_bind(self, pod: Pod) -> None:
        await trio.sleep(1)
        while True:
            pass


class LoopsInAHint(PluginBase):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> None: ...

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.NODE, Action.ADD, self._hint)]

    def _hint(self, pod: Pod, old: object, new: object) -> Hint:
        while True:
            pass


class WaitsForItself(PluginBase):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> None:
        lock = threading.Lock()
        lock.acquire()
        lock.acquire()


class SwallowsWhatInterruptsIt(PluginBase):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> None:
        try:
            while True:
                pass
        except BaseException:
            return


def schedule_with(plugin: type[Any]) -> None:
    schedule(pod("p"), on=NODES, plugins=[plugin], hook_seconds=SECONDS)


def in_a_thread(function: Callable[[], object]) -> BaseException | None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            function()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return raised[0] if raised else None


def test_schedule_ends_with_the_plugin_and_the_line() -> None:
    with pytest.raises(HookNeverReturned) as caught:
        schedule_with(Loops)
    error = caught.value
    assert (error.plugin, error.hook) == ("Loops", "filter_node")
    first, *stack = str(error).splitlines()
    assert first == (
        "plugin Loops: filter_node had not returned after 0.2 s and was interrupted; nothing else runs while a hook "
        "computes. It stood at:"
    )
    assert stack[-1].startswith(f"  {__file__}, line ")
    assert stack[-1].endswith(", in filter_node")


@pytest.mark.parametrize("plugin", [WaitsForItself, SwallowsWhatInterruptsIt])
def test_one_that_waits_and_one_that_catches_everything_end_too(plugin: type[Any]) -> None:
    with pytest.raises(HookNeverReturned, match=f"plugin {plugin.__name__}: filter_node had not returned"):
        schedule_with(plugin)


def test_a_test_in_another_thread_ends_too() -> None:
    error = in_a_thread(lambda: schedule_with(Loops))
    assert isinstance(error, HookNeverReturned)
    assert in_a_thread(lambda: schedule(pod("p"), on=NODES, plugins=[])) is None


def test_a_hint_that_loops_ends() -> None:
    with pytest.raises(HookNeverReturned, match="plugin LoopsInAHint: hint had not returned"):
        ask_hint(LoopsInAHint, ClusterEvent(Resource.NODE, Action.ADD), pod("p"), new=NODES[0], hook_seconds=SECONDS)


async def settle_with(plugin: type[Any]) -> None:
    async with virtual_cluster(nodes=1, plugins=[plugin], hook_seconds=SECONDS) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()


@pytest.mark.parametrize(
    ("plugin", "hook", "place"),
    [
        (Loops, "filter_node", "in filter_node"),
        (LoopsInAHelper, "reserve", "in loop_in_a_helper"),
        (LoopsInTheBackground, "run", "in run"),
        (LoopsBetweenWaits, "pre_bind", "in pre_bind"),
    ],
)
async def test_a_virtual_cluster_ends(plugin: type[Any], hook: str, place: str, autojump_clock: MockClock) -> None:
    with pytest.raises(HookNeverReturned) as caught:
        await settle_with(plugin)
    assert (caught.value.plugin, caught.value.hook) == (plugin.__name__, hook)
    assert any(line.endswith(place) for line in caught.value.stack)


@pytest.mark.parametrize("plugin", [Loops, LoopsBetweenWaits])
def test_conformance_says_so_and_tries_nothing_else(plugin: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.testing.hook_limit.default_seconds", SECONDS)
    with pytest.raises(NotConforming) as caught:
        check_conformance(plugin, pods=[pod("p")])
    (problem,) = caught.value.problems
    assert problem.startswith(f"plugin {plugin.__name__}: ")
    assert "had not returned after 0.2 s" in problem
    test = conformance_test(plugin, pods=[pod("p")])
    with pytest.raises(NotConforming, match="had not returned"):
        test("blocking")
    test("mutation")


async def test_conformance_of_a_pre_bind_says_so_inside_of_trio(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.testing.hook_limit.default_seconds", SECONDS)
    with pytest.raises(NotConforming, match="plugin LoopsBetweenWaits: pre_bind had not returned"):
        check_conformance(LoopsBetweenWaits, pods=[pod("p")])


def watched(function: Callable[..., Any], seconds: float = 10.0, hook: str = "add_pod") -> BoundHook:
    return BoundHook("Watched", hook, function)


def test_many_short_calls_are_fine_however_long_they_take_together() -> None:
    limit = HookLimit(10.0)
    for second in range(0, 40, 4):
        call_status_hook(watched(partial(limit.look, now=second)))
    assert limit.never_returned is None


async def test_a_coroutine_that_waits_again_and_again_is_fine(autojump_clock: MockClock) -> None:
    limit = HookLimit(10.0)

    async def polls() -> None:
        for second in range(0, 40, 4):
            limit.look(now=second, step=4)
            await trio.sleep(1)

    with limit:
        result = await make_call(HookCall(watched(polls, hook="post_bind"), ()))
    assert (result.error, limit.never_returned) == (None, None)


def test_a_process_that_was_stopped_for_a_while_goes_on() -> None:
    limit = HookLimit(10.0)

    def goes_on() -> None:
        limit.look(now=0.0)
        limit.look(now=3600.0)

    call_status_hook(watched(goes_on))
    assert limit.never_returned is None


def test_a_debugger_may_stand_in_a_hook() -> None:
    limit = HookLimit(10.0)
    debugger: dict[str, Any] = {"__name__": "bdb", "limit": limit}
    exec("def wait():\n    for second in range(60):\n        limit.look(now=float(second))", debugger)
    call_status_hook(watched(debugger["wait"]))
    assert limit.never_returned is None


def test_the_hook_that_never_returns_is_named_not_one_that_it_calls_again_and_again() -> None:
    limit = HookLimit(10.0)
    inner = BoundHook("Inner", "remove_pod", lambda second: limit.look(now=second))

    def calls_another() -> None:
        for second in itertools.count(0.0):
            call_status_hook(inner, second)

    with pytest.raises(HookInterrupted):
        call_status_hook(watched(calls_another))
    assert limit.never_returned is not None
    assert (limit.never_returned.plugin, limit.never_returned.hook) == ("Watched", "add_pod")


def test_without_a_limit_nothing_is_watched() -> None:
    assert schedule(pod("p"), on=NODES, plugins=[], hook_seconds=math.inf).node_name in ("a", "b")
