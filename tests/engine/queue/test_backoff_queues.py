import math

from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.backoff_queues import BackoffQueues
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.testing import pod


def waiting(name: str, *, at: float, failures: int = 1, rejected: bool = True, sort_key: int = 0) -> QueuedPodInfo:
    info = QueuedPodInfo(pod(name), at, sort_key=sort_key)
    if rejected:
        info.unschedulable_plugins, info.unschedulable_count = {"Fit"}, failures
    else:
        info.consecutive_errors = failures
    return info


def queues(*infos: QueuedPodInfo, by_priority: bool = True) -> BackoffQueues:
    found = BackoffQueues(Backoff(), by_priority=by_priority)
    for info in infos:
        found.push(info)
    return found


def names(infos: object) -> list[str]:
    return [info.pod.name for info in infos]  # type: ignore[attr-defined]


def test_pods_leave_in_the_order_in_which_their_backoff_ends_errors_last() -> None:
    found = queues(
        waiting("late", at=3.0),
        waiting("failed", at=0.0, rejected=False),
        waiting("early", at=0.0),
        waiting("mid", at=1.0),
    )

    assert len(found) == 4
    assert names(found.pop_all_backoff_completed(3.0)) == ["early", "mid", "failed"]
    assert names(found.pop_all_backoff_completed(9.0)) == ["late"]
    assert len(found) == 0


def test_equal_backoff_ends_follow_the_order_of_the_active_queue_if_configured() -> None:
    low, high = waiting("low", at=0.1, sort_key=2), waiting("high", at=0.9, sort_key=1)

    assert names(queues(low, high).pod_backoff_q) == ["high", "low"]
    assert names(queues(low, high, by_priority=False).pod_backoff_q) == ["low", "high"]


def test_the_next_check_is_the_first_moment_at_which_a_backoff_ends() -> None:
    found = queues(waiting("a", at=2.5), waiting("b", at=0.5, rejected=False))

    moment = found.next_check()
    assert names(found.pop_all_backoff_completed(moment - 0.001)) == []
    assert names(found.pop_all_backoff_completed(moment)) == ["b"]
    assert queues().next_check() == math.inf


def test_an_updated_pod_keeps_its_place_in_backoff() -> None:
    info = waiting("a", at=0.0)
    found = queues(info)
    info.unschedulable_plugins = set()  # as if it had had an error

    found.push(info)

    assert names(found.pod_backoff_q) == ["a"]
    assert "default/a" in found
    assert found.remove("default/a") is info
    assert "default/a" not in found
    assert found.remove("default/a") is None
