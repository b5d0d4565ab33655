from typing import Any

from trio_sched.engine.gates import Gates, ProfileQueueing, QueueCounters
from trio_sched.engine.profile import Caller
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.queueing_hints import HintTable
from trio_sched.plugin_api import Code, Pod, Status, unschedulable
from trio_sched.testing import pod


def gates(asked: list[str], *names: str) -> Gates:
    """Gates that are closed for pods with their name as a label."""

    def caller(name: str) -> Caller:
        def pre_enqueue(waiting: Pod) -> Status | None:
            asked.append(name)
            return unschedulable("closed") if name in waiting.labels else Status(Code.SUCCESS)

        return Caller(name, pre_enqueue)

    return Gates({"default-scheduler": ProfileQueueing([*map(caller, names)], HintTable(()))}, QueueCounters())


def info(*closed: str, **more: Any) -> QueuedPodInfo:
    return QueuedPodInfo(pod("p", labels=dict.fromkeys(closed, "closed")), 0.0, **more)


def test_all_gates_must_be_open() -> None:
    asked: list[str] = []
    waiting = info()
    assert gates(asked, "A", "B").lets_pass(waiting)
    assert (asked, waiting.gating_plugin) == (["A", "B"], "")


def test_the_first_closed_one_keeps_the_pod_back_and_is_counted_once() -> None:
    asked: list[str] = []
    closed, waiting = gates(asked, "A", "B", "C"), info("B", "C")
    assert not closed.lets_pass(waiting)
    assert not closed.lets_pass(waiting)
    assert (waiting.gating_plugin, waiting.unschedulable_plugins) == ("B", {"B"})
    assert asked == ["A", "B", "B"]  # the one that keeps it back is asked first
    assert closed.counters.unschedulable == {("B", "default-scheduler"): 1}


def test_who_turned_the_pod_away_before_is_not_counted_again() -> None:
    closed = gates([], "A")
    assert not closed.lets_pass(info("A", pending_plugins={"A"}))
    assert closed.counters.unschedulable["A", "default-scheduler"] == 0


def test_an_opened_gate_is_no_longer_named_but_still_among_those_that_turned_the_pod_away() -> None:
    opening, waiting = gates([], "A"), info("A")
    assert not opening.lets_pass(waiting)
    waiting.replace_pod(pod("p"))
    assert opening.lets_pass(waiting)
    assert (waiting.gating_plugin, waiting.unschedulable_plugins) == ("", {"A"})
