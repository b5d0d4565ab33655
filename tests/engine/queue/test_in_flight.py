import pytest

from trio_sched.engine.queue import in_flight
from trio_sched.engine.queue.in_flight import InFlight, InFlightEvent
from trio_sched.plugin_api import Action, ClusterEvent, Resource

ADDED, GONE = (InFlightEvent(ClusterEvent(Resource.NODE, action)) for action in (Action.ADD, Action.DELETE))


def test_a_pod_gets_the_events_since_it_was_popped() -> None:
    flying = InFlight()
    flying.start("u1", "ns/a")
    flying.add_event(ADDED)
    flying.start("u2", "ns/b")
    flying.add_event(GONE)
    assert list(flying.since("u1")) == [ADDED, GONE]
    assert list(flying.since("u2")) == [GONE]
    assert list(flying) == [("ns/a", "u1"), ADDED.event, ("ns/b", "u2"), GONE.event]
    assert len(flying) == 2


def test_events_before_the_first_pod_in_flight_are_dropped() -> None:
    flying = InFlight()
    flying.start("u1", "ns/a")
    flying.add_event(ADDED)
    flying.start("u2", "ns/b")
    flying.add_event(GONE)
    flying.done("u1")
    assert list(flying) == [("ns/b", "u2"), GONE.event]
    flying.done("u2")
    assert list(flying) == []


def test_events_are_kept_while_an_earlier_pod_is_in_flight() -> None:
    flying = InFlight()
    flying.start("u1", "ns/a")
    flying.start("u2", "ns/b")
    flying.add_event(ADDED)
    flying.done("u2")
    flying.done("u2")
    assert list(flying.since("u1")) == [ADDED]
    assert "u2" not in flying


def test_no_pod_is_in_flight_after_clearing() -> None:
    flying = InFlight()
    flying.start("u1", "ns/a")
    flying.add_event(ADDED)
    flying.clear_markers()
    assert (len(flying), list(flying)) == (0, [])
    with pytest.raises(KeyError):
        list(flying.since("u1"))


def test_of_very_many_events_the_older_ones_become_one_that_says_that_anything_may_have_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(in_flight, "MAX_EVENTS", 10)
    flying = InFlight()
    flying.start("early", "ns/early")
    for _ in range(5):
        flying.add_event(ADDED)
    flying.start("between", "ns/between")
    for _ in range(3):
        flying.add_event(ADDED)
    flying.start("late", "ns/late")
    for _ in range(3):
        flying.add_event(GONE)
    (first, *others) = flying.since("early")
    assert (first.event.label, others) == ("TooManyEvents", [ADDED, ADDED, GONE, GONE, GONE])
    assert list(flying.since("between")) == [first, *others]
    assert list(flying.since("late")) == [GONE] * 3


def test_however_many_events_there_are_few_are_kept_and_all_are_dropped_in_the_end() -> None:
    flying = InFlight()
    flying.start("waits", "ns/waits")
    for number in range(10 * in_flight.MAX_EVENTS):
        flying.start(f"u{number}", f"ns/{number}")
        flying.add_event(ADDED)
        flying.done(f"u{number}")
        assert sum(flying.events.values()) <= in_flight.MAX_EVENTS
    assert next(flying.since("waits")).event is in_flight.TOO_MANY_EVENTS
    flying.done("waits")
    assert (list(flying), +flying.events) == ([], {})
