from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_sched.daemon.hooks.hook_calls import run_steps
from trio_sched.engine.evaluation.decision import SchedulingFailure, fit_failure
from trio_sched.engine.evaluation.hook_steps import post_filter_steps
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.plugin_api import (
    SKIP,
    Code,
    Diagnosis,
    Handle,
    NodeStatuses,
    PostFilterResult,
    Status,
    failure,
    hookimpl,
    pending,
    unresolvable,
    unschedulable,
)
from trio_sched.testing import make_profile, pod

HOSTNAME = "kubernetes.io/hostname"
NOWHERE = Diagnosis(NodeStatuses((), (), unschedulable("no room")))


def saying(name: str, answer: Any, *, later: bool = False) -> type[Any]:
    """A plugin that answers *answer*, or raises it."""

    class Saying:
        def __init__(self, args: None, handle: Handle) -> None:
            self.asked = 0

        def _answer(self) -> Any:
            self.asked += 1
            if isinstance(answer, Exception):
                raise answer
            return answer

        if later:

            @hookimpl
            async def post_filter(self) -> PostFilterResult:
                await trio.sleep(1)
                return self._answer()  # type: ignore[no-any-return]
        else:

            @hookimpl
            def post_filter(self) -> PostFilterResult:
                return self._answer()  # type: ignore[no-any-return]

    Saying.name = name  # type: ignore[attr-defined]
    return Saying


async def outcome(*plugins: type[Any]) -> tuple[tuple[str, str | None], list[int]]:
    """The message and the nomination of post_filter, and how often each plugin was called."""
    profile = make_profile(plugins)
    found = await run_steps(post_filter_steps(profile.post_filter, pod(), fit_failure(NOWHERE), PluginFailures()))
    assert isinstance(found, SchedulingFailure)
    assert found.diagnosis is not None
    result = found.diagnosis.post_filter_message, found.nominated_node_name
    return result, [profile.plugins[plugin.name].asked for plugin in plugins]


def no(text: str, nominated: str | None = None) -> PostFilterResult:
    return PostFilterResult(unschedulable(text), nominated)


async def test_the_reasons_of_all_unschedulable_post_filters_are_joined() -> None:
    found, asked = await outcome(saying("A", no("a")), saying("B", no("b")), saying("C", None))
    assert (found, asked) == (("a, b", None), [1, 1, 1])


async def test_the_first_successful_post_filter_ends_the_phase() -> None:
    found, asked = await outcome(saying("A", no("a")), saying("B", PostFilterResult(None, "n")), saying("C", no("c")))
    assert (found, asked) == (("", "n"), [1, 1, 0])


async def test_an_unresolvable_post_filter_ends_the_phase() -> None:
    firm = PostFilterResult(unresolvable("never"), "")
    found, asked = await outcome(saying("A", firm), saying("B", no("b")))
    assert (found, asked) == (("never", ""), [1, 0])


async def test_a_cleared_nomination_stays_cleared_unless_a_later_plugin_nominates() -> None:
    found, _asked = await outcome(saying("A", no("a", "")), saying("B", no("b")))
    assert found == ("a, b", "")
    found, _asked = await outcome(saying("A", no("a")), saying("B", no("b")))
    assert found[1] is None


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (PostFilterResult(failure("oops"), "n"), "oops"),
        (RuntimeError("oops"), 'running PostFilter plugin "B": post_filter raised RuntimeError: oops'),
        (unschedulable("oops"), 'running PostFilter plugin "B": post_filter returned Status; return None or a P'),
    ],
)
async def test_a_failure_ends_the_phase_and_leaves_the_nomination_as_it_was(answer: Any, message: str) -> None:
    (reported, nominated), asked = await outcome(saying("A", no("a", "")), saying("B", answer), saying("C", no("c")))
    assert reported.startswith(message)
    assert (nominated, asked) == (None, [1, 1, 0])


async def test_a_pending_post_filter_does_not_end_the_phase() -> None:
    soon = PostFilterResult(pending("wait for it"))
    found, asked = await outcome(saying("A", soon), saying("B", no("b")))
    assert (found, asked) == (("wait for it, b", None), [1, 1])


async def test_post_filter_may_be_async(autojump_clock: MockClock) -> None:
    found, _asked = await outcome(
        saying("A", no("a"), later=True), saying("B", PostFilterResult(None, "n"), later=True)
    )
    assert found == ("", "n")
    assert trio.current_time() == 2.0


@pytest.mark.parametrize("status", [SKIP, Status(Code.WAIT)], ids=["Skip", "Wait"])
async def test_a_post_filter_has_no_skip_and_no_wait(status: Status, autojump_clock: MockClock) -> None:
    first, second = saying("A", PostFilterResult(status, "n")), saying("B", no("nothing"))
    found, asked = await outcome(first, second)
    text = (
        f'running PostFilter plugin "A": post_filter returned a PostFilterResult whose status is {status.code.label}; '
    )
    assert found == (text + 'use unschedulable("why"), or no status for success', None)
    assert asked == [1, 0]
