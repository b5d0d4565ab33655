import math

from trio_sched.engine.queue.retry_timers import PAUSE_SECONDS, RetryTimers


def test_timers_end_in_order_and_are_forgotten() -> None:
    timers = RetryTimers()
    assert timers.next_due == math.inf
    assert timers.start("u2", "ns/b", "P", 7.0)
    assert timers.start("u1", "ns/a", "P", 5.0)
    assert (len(timers), timers.next_due) == (2, 5.0)
    assert timers.pop_due(4.9) == []
    assert timers.pop_due(7.0) == [("u1", "ns/a", "P"), ("u2", "ns/b", "P")]
    assert (len(timers), timers.next_due) == (0, math.inf)
    assert "u1" not in timers


def test_of_two_of_one_plugin_for_one_pod_the_earlier_one_counts() -> None:
    timers = RetryTimers()
    assert timers.start("u", "ns/a", "P", 5.0)
    assert not timers.start("u", "ns/a", "P", 6.0)
    assert timers.start("u", "ns/a", "P", 3.0)
    assert timers.start("u", "ns/a", "Q", 9.0)
    assert len(timers) == 2
    assert timers.pop_due(5.0) == [("u", "ns/a", "P")]
    assert timers.next_due == 9.0


def test_those_of_a_pod_that_is_gone_are_forgotten() -> None:
    timers = RetryTimers()
    for plugin in "PQ":
        timers.start("u", "ns/a", plugin, 5.0)
    timers.start("v", "ns/b", "P", 6.0)
    timers.forget("u")
    timers.forget("u")
    assert (len(timers), timers.next_due) == (1, 6.0)


def test_a_plugin_that_changes_its_mind_for_ever_takes_no_memory() -> None:
    timers = RetryTimers()
    for step in range(10_000):
        timers.start("u", "ns/a", "P", 1e6 - step)
    assert len(timers._heap) <= 100
    assert timers.next_due == 1e6 - 9_999


def test_a_plugin_that_asks_at_once_again_and_again_has_to_wait() -> None:
    timers = RetryTimers()
    timers.start("u", "ns/a", "P", 5.0)
    assert timers.pop_due(5.0) == [("u", "ns/a", "P")]
    timers.start("u", "ns/a", "P", 5.0)
    timers.start("u", "ns/a", "Q", 5.0)  # another plugin
    timers.start("v", "ns/b", "P", 5.0)  # another pod
    assert {uid + plugin for uid, _key, plugin in timers.pop_due(5.0)} == {"uQ", "vP"}
    assert timers.next_due == 5.0 + PAUSE_SECONDS
    timers.pop_due(6.0)
    timers.start("u", "ns/a", "P", 9.0)  # late enough by itself
    assert timers.next_due == 9.0


def test_nothing_is_left_of_pods_that_are_gone() -> None:
    timers = RetryTimers()
    timers.start("u", "ns/a", "P", 5.0)
    timers.pop_due(5.0)
    timers.forget("u")
    assert not timers._ended
    timers.start("u", "ns/a", "P", 5.0)
    assert timers.next_due == 5.0
