"""The plugin for pytest: async tests of plugins run on a clock that jumps, without any configuration.

pytest loads this module in every run on the machine, so it imports nothing until a test needs it. It runs async test
functions that no other plugin for async tests has claimed, if they ask for one of the fixtures below or if their
module uses `trio_sched`; all others are left alone. Tests that pytest-trio runs get a clock that jumps if they use
``virtual_cluster`` and bring no clock.
"""

from __future__ import annotations

import functools
import inspect
import math
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from trio_sched.testing import FakeHandle

_PACKAGE = "trio_sched"
_HOOK_SECONDS = "plugin_hook_seconds"
_FIXTURES = ("fake_handle", "virtual_cluster")


stderr_fd: int = 2
"""Where what is written is seen, although pytest captures it."""
faulthandler_is_free: bool = True
"""Whether pytest does not use Python's only timer for stacks of threads itself."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option is for the configuration file: it is about plugins, not about one run."""
    parser.addini(_HOOK_SECONDS, "how long one call of a plugin's hook may take before it is interrupted (20)")


def pytest_configure(config: pytest.Config) -> None:
    """Read the options."""
    global stderr_fd, faulthandler_is_free
    stderr_fd = os.dup(2)  # before it is captured
    if config.pluginmanager.hasplugin("faulthandler"):
        faulthandler_is_free = not float(config.getini("faulthandler_timeout") or 0)
    given = config.getini(_HOOK_SECONDS)
    if given:
        try:
            seconds = float(given)
        except ValueError:
            seconds = math.nan
        if not seconds > 0:
            raise pytest.UsageError(f"{_HOOK_SECONDS} = {given}: must be a number of seconds above 0, or inf")
        from trio_sched.testing import hook_limit

        hook_limit.default_seconds = seconds


def pytest_unconfigure() -> None:
    """Close what was opened."""
    global stderr_fd
    if stderr_fd != 2:
        os.close(stderr_fd)
        stderr_fd = 2


@pytest.fixture
def fake_handle() -> FakeHandle:
    """A new `trio_sched.testing.FakeHandle`."""
    from trio_sched.testing import FakeHandle

    return FakeHandle()


@pytest.fixture
def replayed_cluster() -> Any:
    """What replays recordings: see `trio_sched.testing.replays`."""
    from trio_sched.testing.replays import replayed_cluster

    return replayed_cluster


@pytest.fixture
def virtual_cluster() -> Any:
    """What makes virtual clusters, for ``async with``: see `trio_sched.testing.cluster`."""
    from trio_sched.testing.cluster import virtual_cluster

    return virtual_cluster


@pytest.hookimpl(trylast=True)  # after pytest-trio has marked the tests that are its own
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have pytest-trio run tests that use a virtual cluster on a clock that jumps, unless they bring a clock."""
    for item in items:
        marker = item.get_closest_marker("trio")
        if marker is None or not isinstance(item, pytest.Function):
            continue
        if marker.kwargs.get("run") not in (None, getattr(sys.modules.get("trio"), "run", None)):
            continue  # trio_mode gives trio.run; this is another one, which somebody has chosen
        if _names_virtual_cluster(item.function):
            item.add_marker(pytest.mark.trio(run=_run_on_jumping_clock), append=False)


def _run_on_jumping_clock(function: Any, *args: Any, clock: Any = None, **options: Any) -> Any:
    import trio

    from trio_sched.simulator import jumping_clock

    return trio.run(function, *args, clock=clock or jumping_clock(), **options)


@pytest.hookimpl
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an async test that uses trio_sched; pytest itself, which comes later, would refuse it."""
    function = pyfuncitem.obj
    of_hypothesis = getattr(function, "hypothesis", None)
    inner = getattr(of_hypothesis, "inner_test", None)
    if not (inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inner)) or not _is_ours(pyfuncitem):
        return None
    from trio_sched.testing.virtual_time import run_virtual

    if inner is not None:  # Hypothesis calls the inner function for every example

        @functools.wraps(inner)
        def run_example(*args: Any, **kwargs: Any) -> None:
            run_virtual(functools.partial(inner, *args, **kwargs))

        of_hypothesis.inner_test = run_example  # type: ignore[union-attr]  # it has one, see above
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    run_virtual(functools.partial(function, **arguments))
    return True


def _is_ours(item: pytest.Function) -> bool:
    """Whether a test uses trio_sched, and no other plugin runs it."""
    if any(item.get_closest_marker(marker) for marker in ("trio", "asyncio", "anyio")) or (
        "anyio_backend" in item.fixturenames
    ):
        return False
    return any(fixture in item.fixturenames for fixture in _FIXTURES) or any(
        _is_of_package(value) for value in vars(item.module).values()
    )


def _is_of_package(value: object) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and (name == _PACKAGE or name.startswith(f"{_PACKAGE}."))


def _names_virtual_cluster(function: Any, depth: int = 3) -> bool:
    """Whether *function*, or one of its module that it calls, names it; *depth* is how far calls are followed."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if code is None or not depth:
        return False
    names = (*code.co_names, *code.co_varnames, *code.co_freevars)
    if "virtual_cluster" in names:
        return True
    known = getattr(function, "__globals__", {})
    called = [known.get(name) for name in names]
    return any(
        _names_virtual_cluster(one, depth - 1)
        for one in called
        if inspect.isfunction(one) and one.__module__ == function.__module__
    )
