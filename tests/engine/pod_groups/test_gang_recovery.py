import math

import msgspec
from gangs import member

from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS, GangRecovery
from trio_sched.objects.pod import Pod


class Case:
    """A gang that needs two pods."""

    def __init__(self, *pods: Pod, needed: int | None = 2) -> None:
        self.states = PodGroupStates()
        self.needed = needed
        for one in pods:
            self.states.add(one)
        self.recovery = GangRecovery(states=self.states, min_count=lambda _key: self.needed)

    def tried_at(self, now: float) -> str | None:
        self.recovery.update(now)
        group = self.recovery.next_to_try(now)
        return None if group is None else group.key


BOUND = member("bound", "g", node_name="n")
PENDING = member("pending", "g")


def test_an_incomplete_gang_is_tried_at_once_and_then_after_growing_pauses() -> None:
    case = Case(BOUND, PENDING)
    tried = [now for now in range(30) if case.tried_at(float(now))]
    assert tried == [0, 1, 3, 7, 15, 25]


def test_gangs_that_are_complete_or_have_no_pod_on_a_node_are_left_alone() -> None:
    assert Case(BOUND, member("other", "g", node_name="n"), PENDING).tried_at(0.0) is None
    assert Case(PENDING, member("other", "g")).tried_at(0.0) is None
    assert Case(BOUND, PENDING, needed=None).tried_at(0.0) is None


def test_a_gang_whose_other_pods_have_run_their_course_is_not_incomplete() -> None:
    case = Case(BOUND, needed=3)
    assert case.tried_at(0.0) is None
    assert case.recovery.take_overdue(10_000.0) == []
    assert case.recovery.next_check() == math.inf


def test_while_its_pods_are_being_bound_it_is_not_tried() -> None:
    case = Case(BOUND, PENDING)
    case.states.assume(PENDING, "n")
    assert case.tried_at(0.0) is None
    assert case.recovery.is_incomplete("default/g")
    case.states.forget(PENDING)
    assert case.tried_at(1.0) == "default/g"


def test_the_gang_that_has_been_incomplete_for_longest_comes_first() -> None:
    case = Case()
    case.states.add(member("b", "young", node_name="n"))
    case.states.add(member("c", "young"))
    case.recovery.update(5.0)
    case.states.add(BOUND)
    case.states.add(PENDING)
    case.recovery.update(6.0)
    group = case.recovery.next_to_try(7.0)
    assert group is not None
    assert group.key == "default/young"


def test_it_is_given_up_when_its_time_is_over_even_if_tries_came_to_nothing() -> None:
    case = Case(BOUND, PENDING)
    case.recovery.update(0.0)
    case.states.assume(PENDING, "n")
    case.recovery.update(50.0)
    case.states.forget(PENDING)
    case.recovery.update(60.0)
    assert case.recovery.take_overdue(INCOMPLETE_SECONDS - 1) == []
    ((key, pods),) = case.recovery.take_overdue(INCOMPLETE_SECONDS)
    assert (key, [one.name for one in pods]) == ("default/g", ["bound"])
    assert case.recovery.take_overdue(INCOMPLETE_SECONDS + 1) == []
    assert case.recovery.take_overdue(2 * INCOMPLETE_SECONDS) != []  # the eviction has failed


def test_pods_that_are_being_deleted_do_not_count_as_bound() -> None:
    leaving = msgspec.structs.replace(
        BOUND, metadata=msgspec.structs.replace(BOUND.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )
    case = Case(BOUND, PENDING)
    case.recovery.update(0.0)
    case.states.add(leaving)
    case.recovery.update(1.0)
    assert not case.recovery.is_incomplete("default/g")


def test_it_starts_over_once_it_was_complete() -> None:
    case = Case(BOUND, PENDING)
    case.recovery.update(0.0)
    case.states.add(member("pending", "g", node_name="n"))
    case.recovery.update(100.0)
    case.states.remove(member("pending", "g", node_name="n"))
    case.states.add(member("again", "g"))
    case.recovery.update(110.0)
    assert case.recovery.take_overdue(INCOMPLETE_SECONDS + 100) == []
    assert case.recovery.next_check() == 110.0
