from typing import Any

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.queue.pre_enqueue import PreEnqueue, ProfileQueueing
from trio_sched.engine.queue.queue_counters import QueueCounters
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintTable
from trio_sched.plugin_api import Code, Pod, Status, unschedulable
from trio_sched.testing import pod


def gates(asked: list[str], *names: str) -> PreEnqueue:
    """PreEnqueue plugins *names*, each of which rejects pods labelled with its name."""

    def hook(name: str) -> BoundHook:
        def pre_enqueue(waiting: Pod) -> Status | None:
            asked.append(name)
            return unschedulable("closed") if name in waiting.labels else Status(Code.SUCCESS)

        return BoundHook(name, "pre_enqueue", pre_enqueue)

    profiles = {"default-scheduler": ProfileQueueing([*map(hook, names)], HintTable(()))}
    return PreEnqueue(profiles, QueueCounters(), PluginFailures())


def info(*closed: str, **more: Any) -> QueuedPodInfo:
    return QueuedPodInfo(pod("p", labels=dict.fromkeys(closed, "closed")), 0.0, **more)


def test_every_pre_enqueue_must_succeed() -> None:
    asked: list[str] = []
    waiting = info()
    assert gates(asked, "A", "B").run(waiting)
    assert (asked, waiting.gating_plugin) == (["A", "B"], "")


def test_the_first_failing_pre_enqueue_gates_the_pod_and_is_counted_once() -> None:
    asked: list[str] = []
    closed, waiting = gates(asked, "A", "B", "C"), info("B", "C")
    assert not closed.run(waiting)
    assert not closed.run(waiting)
    assert (waiting.gating_plugin, waiting.unschedulable_plugins) == ("B", {"B"})
    assert asked == ["A", "B", "B"]  # the one that keeps it back is asked first
    assert closed.counters.unschedulable == {("B", "default-scheduler"): 1}


def test_an_earlier_rejector_is_not_counted_again() -> None:
    closed = gates([], "A")
    assert not closed.run(info("A", pending_plugins={"A"}))
    assert closed.counters.unschedulable["A", "default-scheduler"] == 0


def test_an_opened_gate_is_no_longer_the_gating_plugin_but_still_a_rejector() -> None:
    opening, waiting = gates([], "A"), info("A")
    assert not opening.run(waiting)
    waiting.replace_pod(pod("p"))
    assert opening.run(waiting)
    assert (waiting.gating_plugin, waiting.unschedulable_plugins) == ("", {"A"})
