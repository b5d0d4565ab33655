import math

from trio_sched.engine.pod_groups.gang_holds import HOLD_AFTER_SECONDS, HOLD_SECONDS, GangHolds


def test_a_gang_may_hold_places_once_it_has_waited_for_long() -> None:
    holds = GangHolds()
    assert not holds.may_hold("a", 0, waiting_since=10.0, now=HOLD_AFTER_SECONDS)
    assert holds.may_hold("a", 0, waiting_since=0.0, now=HOLD_AFTER_SECONDS)


def test_one_gang_at_a_time_holds_places_for_each_priority() -> None:
    holds = GangHolds()
    holds.hold("a", 0, {}, 100.0)
    assert holds.may_hold("a", 0, waiting_since=0.0, now=101.0)
    assert not holds.may_hold("b", 0, waiting_since=0.0, now=101.0)
    assert holds.may_hold("b", 5, waiting_since=0.0, now=101.0)


def test_places_are_released_after_a_while_and_stay_free_for_as_long() -> None:
    holds = GangHolds()
    holds.hold("a", 0, {"uid": "n"}, 0.0)
    assert holds.targets("a") == {"uid": "n"}
    assert holds.next_check() == HOLD_SECONDS
    assert holds.take_expired(HOLD_SECONDS - 1) == []
    assert holds.take_expired(HOLD_SECONDS) == ["a"]
    assert holds.take_expired(HOLD_SECONDS) == []
    assert holds.targets("a") is None
    assert holds.next_check() == math.inf
    for gang in ("a", "b"):
        assert not holds.may_hold(gang, 0, waiting_since=0.0, now=2 * HOLD_SECONDS - 1)
        assert holds.may_hold(gang, 0, waiting_since=0.0, now=2 * HOLD_SECONDS)


def test_after_a_gang_was_scheduled_the_others_get_as_long_as_it_has_held_places() -> None:
    holds = GangHolds()
    holds.hold("a", 0, {}, 100.0)
    holds.release("a", 110.0)
    assert holds.take_expired(115.0) == []
    assert not holds.may_hold("b", 0, waiting_since=0.0, now=119.0)
    assert holds.may_hold("b", 0, waiting_since=0.0, now=120.0)


def test_holds_that_are_over_are_forgotten() -> None:
    holds = GangHolds()
    for priority in range(100):
        holds.hold(f"gang-{priority}", priority, {}, 0.0)
    holds.take_expired(2 * HOLD_SECONDS)
    assert holds._by_priority == {}
