from typing import Any

import pytest
from plugin_base import PluginBase

from trio_sched.config.resolved_profile import ResolvedProfile
from trio_sched.config.schema import PluginRef
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.evaluation.reservation import (
    MAX_PERMIT_WAIT_SECONDS,
    PermitWait,
    run_permit,
    run_reserve,
    run_unreserve,
)
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.engine.registry.profile import Profile, build_profile
from trio_sched.plugin_api import CycleState, Pod, Wait, failure, hookimpl, pending, unresolvable, unschedulable
from trio_sched.testing import FakeHandle, pod


def plugin(name: str, log: list[str], **answers: Any) -> type[Any]:
    """A plugin whose hooks return what *answers* has for them, or raise it if it is an exception."""

    def answer(hook: str) -> Any:
        log.append(f"{name}.{hook}")
        found = answers.get(hook)
        if isinstance(found, Exception):
            raise found
        return found

    class Answering(PluginBase):
        @hookimpl
        def reserve(self, pod: Pod, node_name: str) -> Any:
            return answer("reserve")

        @hookimpl
        def unreserve(self, pod: Pod, node_name: str) -> None:
            answer("unreserve")

        @hookimpl
        def permit(self, pod: Pod, node_name: str) -> Any:
            return answer("permit")

    Answering.name = name
    return Answering


def profile(*plugins: type[Any]) -> Profile:
    registry = PluginRegistry.of([])
    for each in plugins:
        registry.add(each)
    refs = tuple(PluginRef(each.name) for each in plugins)
    resolved = ResolvedProfile(name="p", points={"reserve": refs, "permit": refs}, arguments={})
    return build_profile(resolved, registry, FakeHandle().for_plugin)


def test_unreserve_is_called_in_reverse_order_of_reserve() -> None:
    log: list[str] = []
    both = profile(plugin("A", log), plugin("B", log))
    assert run_reserve(both, pod(), "n", CycleState()) is None
    failures = PluginFailures()
    run_unreserve(both, pod(), "n", CycleState(), failures)
    assert not failures
    assert log == ["A.reserve", "B.reserve", "B.unreserve", "A.unreserve"]


@pytest.mark.parametrize(
    ("answer", "message", "plugins", "waiting"),
    [
        (unschedulable("full"), "0/1 nodes are available: 1 full.", {"A"}, set()),
        (unresolvable("never"), "0/1 nodes are available: 1 never.", {"A"}, set()),
        (pending("soon"), "0/1 nodes are available: 1 soon.", {"A"}, {"A"}),
    ],
)
@pytest.mark.parametrize("hook", ["reserve", "permit"])
def test_a_rejection_ends_the_phase_with_the_reason_of_the_plugin(
    hook: str, answer: Any, message: str, plugins: set[str], waiting: set[str]
) -> None:
    log: list[str] = []
    run = run_reserve if hook == "reserve" else run_permit
    refused = run(profile(plugin("A", log, **{hook: answer}), plugin("B", log)), pod(), "n", CycleState())
    assert isinstance(refused, SchedulingFailure)
    assert (refused.message, refused.status.code) == (message, answer.code)
    assert refused.diagnosis is not None
    assert refused.diagnosis.unschedulable_plugins == plugins
    assert refused.diagnosis.pending_plugins == waiting
    assert refused.diagnosis.statuses.by_node() == {"n": answer.by("A")}
    assert log == [f"A.{hook}"]


@pytest.mark.parametrize("answer", [LookupError("broken"), failure("broken")])
@pytest.mark.parametrize(("hook", "words"), [("reserve", "Reserve"), ("permit", "Permit")])
def test_a_failure_has_the_text_of_kube_scheduler(hook: str, words: str, answer: Any) -> None:
    run = run_reserve if hook == "reserve" else run_permit
    failed = run(profile(plugin("A", [], **{hook: answer})), pod(), "n", CycleState())
    assert isinstance(failed, SchedulingFailure)
    said = f"{hook} raised LookupError: broken" if isinstance(answer, Exception) else "broken"
    assert (failed.message, failed.diagnosis) == (f'running {words} plugin "A": {said}', None)


def test_unreserve_continues_after_a_failure() -> None:
    log: list[str] = []
    broken = LookupError("broken")
    failures = PluginFailures()
    run_unreserve(profile(plugin("A", log), plugin("B", log, unreserve=broken)), pod(), "n", CycleState(), failures)
    ((failed, about),) = [(reported.failed, reported.pod) for reported in failures.drain()]
    assert (failed.hook.plugin, failed.__cause__, about) == ("B", broken, "default/pod")
    assert log == ["B.unreserve", "A.unreserve"]


def test_permit_waits_are_bounded() -> None:
    waiting = run_permit(
        profile(plugin("A", [], permit=Wait(5.0)), plugin("B", []), plugin("C", [], permit=Wait(99999.0))),
        pod(),
        "n",
        CycleState(),
    )
    assert waiting == PermitWait({"A": 5.0, "C": MAX_PERMIT_WAIT_SECONDS})


def test_a_rejection_outweighs_a_wait() -> None:
    both = profile(plugin("A", [], permit=Wait(5.0)), plugin("B", [], permit=unschedulable("no")))
    assert isinstance(run_permit(both, pod(), "n", CycleState()), SchedulingFailure)


def test_a_pod_that_all_plugins_permit_does_not_wait() -> None:
    assert run_permit(profile(plugin("A", [])), pod(), "n", CycleState()) is None
