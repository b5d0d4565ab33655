import pytest

from trio_sched.engine.lease_rules import Candidate, ObservedRecord, Step, jittered_retry_period
from trio_sched.objects.lease import LeaseSpec

ME = Candidate(identity="me", lease_duration_seconds=15)


def seen(
    holder: str | None, at: float = 100.0, *, duration: int | None = 15, transitions: int | None = 3
) -> ObservedRecord:
    spec = LeaseSpec(
        holder_identity=holder, lease_duration_seconds=duration, acquire_time="then", lease_transitions=transitions
    )
    return ObservedRecord(spec, b"text", at)


@pytest.mark.parametrize(
    ("observed", "now", "step"),
    [
        (None, 0.0, Step.ACQUIRE),
        (seen(None), 100.0, Step.ACQUIRE),
        (seen(""), 100.0, Step.ACQUIRE),
        (seen("me"), 100.0, Step.RENEW),
        (seen("me"), 999.0, Step.RENEW),
        (seen("other"), 100.0, Step.WAIT),
        (seen("other"), 114.9, Step.WAIT),
        (seen("other"), 115.0, Step.ACQUIRE),
        (seen("other", duration=None), 100.0, Step.ACQUIRE),
    ],
)
def test_a_lease_is_valid_for_its_duration_on_the_local_clock(
    observed: ObservedRecord | None, now: float, step: Step
) -> None:
    assert ME.next_step(observed, now) is step


def test_only_a_changed_record_restarts_the_duration() -> None:
    first = seen("other", at=100.0)
    assert first.observe(first.spec, b"text", 110.0) is first
    changed = first.observe(first.spec, b"renewed", 110.0)
    assert (changed.at, changed.is_valid(124.9), changed.is_valid(125.0)) == (110.0, True, False)


def test_renewing_keeps_when_it_was_acquired() -> None:
    assert ME.record_to_write(seen("me"), "now") == LeaseSpec(
        holder_identity="me", lease_duration_seconds=15, acquire_time="then", renew_time="now", lease_transitions=3
    )


@pytest.mark.parametrize(
    ("observed", "transitions"), [(None, 0), (seen("other"), 4), (seen(""), 4), (seen("other", transitions=None), 1)]
)
def test_taking_over_counts_a_transition(observed: ObservedRecord | None, transitions: int) -> None:
    assert ME.record_to_write(observed, "now") == LeaseSpec(
        holder_identity="me",
        lease_duration_seconds=15,
        acquire_time="now",
        renew_time="now",
        lease_transitions=transitions,
    )


def test_a_released_lease_can_be_acquired_at_once() -> None:
    released = ME.release(seen("me"), "now")
    assert (released.holder_identity, released.lease_duration_seconds, released.lease_transitions) == ("", 1, 3)
    other = Candidate(identity="other", lease_duration_seconds=15)
    assert other.next_step(ObservedRecord(released, b"", 100.0), 100.0) is Step.ACQUIRE


def test_the_lease_is_held_by_the_holder_of_the_last_observed_record() -> None:
    assert [ME.holds(each) for each in (None, seen("me"), seen("other"))] == [False, True, False]


def test_retries_are_spread_over_the_retry_period() -> None:
    assert [jittered_retry_period(2.0, draw) for draw in (0.0, 0.5, 1.0)] == pytest.approx([2.0, 3.2, 4.4])
