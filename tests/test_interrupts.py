"""A KeyboardInterrupt ends the process if a signal has raised it, and fails the plugin that raises it by itself."""

import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio
from plugin_base import PluginBase

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook, clone_state
from trio_sched.interrupts import is_interrupt
from trio_sched.plugin_api import CycleState, Pod, hookimpl
from trio_sched.testing import pod, run_virtual, virtual_cluster


def of_plugin(*_args: Any) -> None:
    raise KeyboardInterrupt


def of_signal(*_args: Any) -> None:
    signal.raise_signal(signal.SIGINT)


class Clones:
    def __init__(self, clone: Callable[..., None]) -> None:
        self.clone = clone


def state_with(clone: Callable[..., None]) -> CycleState:
    state = CycleState()
    state.write("a", Clones(clone))
    return state


CALLS: dict[str, Callable[[Callable[..., None]], object]] = {
    "a hook": lambda function: call_status_hook(BoundHook("P", "reserve", function)),
    "clone": lambda function: clone_state(state_with(function)),
}


@pytest.fixture(params=[signal.default_int_handler, lambda _number, _frame: None], ids=["Python", "daemon"])
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    """SIGINT is handled by Python, or as in the daemon: there no KeyboardInterrupt comes from a signal."""
    former = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, former)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_that_of_a_plugin_is_its_failure(call: Callable[..., object], handled: None) -> None:
    with pytest.raises(HookFailed, match="raised KeyboardInterrupt"):
        call(of_plugin)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_that_of_a_signal_is_passed_on(call: Callable[..., object]) -> None:
    former = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            call(of_signal)
    finally:
        signal.signal(signal.SIGINT, former)


def test_trio_raises_it_in_tests() -> None:
    found = []

    async def main() -> None:
        for raising in (of_signal, of_plugin):
            try:
                raising()
            except KeyboardInterrupt as error:
                found.append(is_interrupt(error))

    trio.run(main)
    assert found == [True, False]


def test_one_of_a_plugin_costs_its_pod() -> None:
    class Interrupting(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod) -> None:
            if pod.name == "unlucky":
                raise KeyboardInterrupt

        @hookimpl
        async def post_bind(self) -> None:
            await trio.sleep(1)
            raise BaseExceptionGroup("several", [KeyboardInterrupt()])

    async def main() -> None:
        async with virtual_cluster(nodes=1, plugins=[Interrupting]) as cluster:
            await cluster.create(pod("unlucky"))
            await cluster.create(pod("late"))
            await cluster.wait_scheduled("late")
            await trio.sleep(5)
            assert cluster.scheduler.running
            assert not cluster.pod("unlucky").node_name

    run_virtual(main)
