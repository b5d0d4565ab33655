from collections.abc import Iterator
from itertools import count

import numpy as np
import pytest

from trio_sched.engine.hooks import measurements
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.measurements import Measurements, ProfileMeasurements
from trio_sched.engine.hooks.plugin_times import PluginTimes, TimedHooks
from trio_sched.engine.hooks.status_labels import label_or_error
from trio_sched.plugin_api.status import SKIP, pending, unresolvable
from trio_sched.plugin_api.verdicts import PostFilterResult, Verdicts, Wait

NONE = frozenset[str]()
PLUGINS = {"PreFilter": ("A", "B"), "Filter": ("A", "B"), "PreScore": ("A",), "Score": ("A", "B")}


def ticking() -> Iterator[float]:
    return (float(second) for second in count())


@pytest.fixture
def measured() -> ProfileMeasurements:
    return Measurements(ticking().__next__).add_profile("p", plugins=PLUGINS)


def counts(measured: ProfileMeasurements) -> dict[tuple[str, str], int]:
    measured.fold()
    return {key: histogram.count for key, histogram in measured.points.items() if histogram.count}


def test_a_run_of_an_extension_point_is_timed_with_its_status(measured: ProfileMeasurements) -> None:
    with measured.point("PreFilter") as timer:
        timer.status = "Unschedulable"
    assert measured.points["PreFilter", "Unschedulable"].sum == 1.0


def test_a_failed_hook_makes_it_an_error(measured: ProfileMeasurements) -> None:
    hook = BoundHook("A", "filter", lambda: None)
    with pytest.raises(HookFailed), measured.point("Filter"):
        raise HookFailed(hook, "broken")
    assert counts(measured) == {("Filter", "Error"): 1}


def test_a_decision_from_the_cache_counts_once_at_each_point_of_a_decision(measured: ProfileMeasurements) -> None:
    measured.decided_from_cache(0.5, frozenset({"B"}), frozenset({"A"}))
    measured.decided_from_cache(0.5, NONE, None)  # a single node was left, so none was scored
    assert counts(measured) == {
        ("PreFilter", "Success"): 2,
        ("Filter", "Success"): 2,
        ("PreScore", "Success"): 1,
        ("Score", "Success"): 1,
    }
    assert measured.points["Filter", "Success"].sum == 1.0
    assert measured.points["Score", "Success"].sum == 0.0
    assert measured.evaluations == {
        ("PreFilter", "A"): 2,
        ("PreFilter", "B"): 2,
        ("Filter", "A"): 2,
        ("Filter", "B"): 1,
        ("PreScore", "A"): 1,
        ("Score", "B"): 1,
    }


def test_a_pre_filter_that_ends_the_cycle_is_the_last_that_was_evaluated(measured: ProfileMeasurements) -> None:
    measured.rejected_by_pre_filter(unresolvable("no").by("A"))
    assert measured.evaluations == {("PreFilter", "A"): 1}
    measured.rejected_by_pre_filter(pending("not yet").by("A"))  # after which the others are called all the same
    assert measured.evaluations == {("PreFilter", "A"): 2, ("PreFilter", "B"): 1}


def test_ever_new_sets_of_skipped_plugins_take_no_more_memory(
    measured: ProfileMeasurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurements, "MAX_SKIP_SETS", 10)
    for number in range(1000):
        measured.filtered(frozenset({f"plugin {number}"}))
        measured.scored(frozenset({f"plugin {number}"}))
        assert len(measured._filtered) <= 10
        assert len(measured._scored) <= 10
    measured.fold()
    assert measured.evaluations["Filter", "A"] == measured.evaluations["Score", "A"] == 1000


def test_one_cycle_of_the_gap_is_sampled() -> None:
    gaps = iter([3, 1, 2, 9])
    measured = Measurements(sample_gap=lambda: next(gaps)).add_profile("p")
    assert [measured.is_sampled() for _ in range(8)] == [False, False, True, True, False, True, False, False]


@pytest.mark.parametrize("built_in", [True, False])
def test_hooks_are_timed_inside_the_block_only(built_in: bool) -> None:
    def original(pod: object) -> object:
        if pod == "bad":
            raise ValueError("bad")
        return SKIP if pod == "skip" else None

    hook = BoundHook("A", "pre_filter", original, built_in=built_in)
    times = PluginTimes(ticking().__next__)
    hooks = TimedHooks([hook], times)
    hook.function("outside")
    with hooks.timing():
        assert hook.function("good") is None
        assert hook.function("skip") is SKIP
        with pytest.raises(ValueError, match="bad"):
            hook.function("bad")
    assert hook.function is original
    with pytest.raises(RuntimeError), hooks.timing():
        raise RuntimeError
    assert hook.function is original
    seen = {status: (one.count, one.sum) for (_plugin, _hook, status), one in times.by_hook.items()}
    assert seen == {"Success": (1, 1.0), "Skip": (1, 1.0), "Error": (1, 1.0)}


def test_a_function_that_was_replaced_meanwhile_is_the_one_that_is_timed() -> None:
    hook = BoundHook("A", "pre_filter", lambda: "first")
    hooks = TimedHooks([hook], PluginTimes())
    hook.function = replaced = lambda: "second"
    with hooks.timing():
        assert hook.function() == "second"
    assert hook.function is replaced


def codes(*values: int) -> Verdicts:
    return Verdicts(np.array(values), lambda _code: unresolvable("no"))


@pytest.mark.parametrize(
    ("returned", "label"),
    [
        (None, "Success"),
        (unresolvable("no"), "UnschedulableAndUnresolvable"),
        (pending("wait"), "Pending"),
        (Wait(timeout_seconds=1.0), "Wait"),
        (PostFilterResult(), "Success"),
        (PostFilterResult(SKIP), "Skip"),
        (codes(1, 0), "Success"),
        (codes(1, 2), "Unschedulable"),
        (codes(), "Success"),
        (Verdicts(None, lambda _code: SKIP), "Error"),  # type: ignore[arg-type]
    ],
)
def test_what_a_hook_returned_is_named(returned: object, label: str) -> None:
    assert label_or_error(returned) == label


def test_an_object_that_lies_about_its_class_is_none_of_ours() -> None:
    class Hostile:
        @property
        def __class__(self) -> type:  # type: ignore[override]
            raise SystemExit("no class")

    assert label_or_error(Hostile()) == "Success"


def test_a_reset_forgets_everything_and_counting_goes_on() -> None:
    all_of_them = Measurements()
    measured = all_of_them.add_profile("p", plugins=PLUGINS)
    measured.decided_from_cache(0.5, NONE, NONE)
    all_of_them.observe_hint("A", "NodeAdd", "Queue", 1.0)
    all_of_them.reset()
    assert counts(measured) == {}
    assert not measured.evaluations
    assert not all_of_them.hints
    measured.decided_from_cache(0.5, NONE, NONE)
    assert counts(measured)["Filter", "Success"] == 1


def test_a_profile_that_is_exchanged_keeps_its_counts_under_the_plugins_that_they_are_of() -> None:
    all_of_them = Measurements(ticking().__next__)
    measured = all_of_them.add_profile("p", plugins=PLUGINS)
    measured.filtered(NONE)
    assert all_of_them.add_profile("p", plugins={"PreFilter": ("C",), "Filter": ("C",)}) is measured
    measured.filtered(NONE)
    measured.fold()
    assert {plugin: measured.evaluations["Filter", plugin] for plugin in "ABC"} == {"A": 1, "B": 1, "C": 1}
    all_of_them.keep_profiles(["q"])
    assert all_of_them.profiles == {}
