import math

import msgspec
import pytest
from gangs import member

from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.pod_groups.gang_recovery import INCOMPLETE_SECONDS, GangRecovery
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import PodGroupTree
from trio_sched.testing import composite_pod_group, pod_group


class Case:
    """A gang that needs two pods."""

    def __init__(self, *pods: Pod, needed: int | None = 2, tree: PodGroupTree | None = None) -> None:
        self.states = PodGroupStates()
        self.needed = needed
        for one in pods:
            self.states.add(one)
        self.recovery = GangRecovery(states=self.states, min_count=lambda _key: self.needed, tree_of=lambda _key: tree)

    def tried_at(self, now: float) -> str | None:
        self.recovery.update(now)
        pods = self.recovery.next_to_try(now)
        return pods[0].group_key if pods else None


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
    assert [one.name for one in case.recovery.next_to_try(7.0)] == ["c"]


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


def tree(needed: int | None, *groups: str) -> PodGroupTree:
    return PodGroupTree(
        composite_pod_group("top", min_group_count=needed),
        tuple(PodGroupTree(pod_group(name, min_count=2)) for name in groups),
    )


def pods_of(name: str, *, bound: int, pending: int) -> list[Pod]:
    running = [member(f"{name}-{number}", name, node_name="n") for number in range(bound)]
    return [*running, *(member(f"{name}-{number}", name) for number in range(bound, bound + pending))]


A = pods_of("a", bound=2, pending=0)
B = pods_of("b", bound=0, pending=2)


@pytest.mark.parametrize(
    ("needed", "pods", "incomplete"),
    [
        pytest.param(2, [*A, *B], "default//top", id="a gang is bound, and needs the other"),
        pytest.param(2, [*A, *pods_of("b", bound=1, pending=1)], "default//top", id="the other is bound in part"),
        pytest.param(1, [*A, *B], None, id="it does not need the other"),
        pytest.param(1, [*A, *pods_of("b", bound=1, pending=1)], "default/b", id="the other is bound in part only"),
        pytest.param(2, [*A, *pods_of("b", bound=0, pending=1)], None, id="the other cannot be completed"),
        pytest.param(2, [*pods_of("a", bound=0, pending=2), *B], None, id="nothing is bound"),
        pytest.param(2, [*A, *pods_of("b", bound=2, pending=1)], None, id="enough is bound"),
    ],
)
def test_a_tree_is_incomplete_if_fewer_child_groups_are_bound_than_it_needs(
    needed: int, pods: list[Pod], incomplete: str | None
) -> None:
    case = Case(*pods, tree=tree(needed, "a", "b"))
    case.recovery.update(0.0)
    keys = ("default//top", "default/a", "default/b")
    assert [key for key in keys if case.recovery.is_incomplete(key)] == ([incomplete] if incomplete else [])
    unscheduled = [one.name for one in pods if not one.node_name]
    assert [one.name for one in case.recovery.next_to_try(0.0)] == (unscheduled if incomplete else [])
    overdue = dict(case.recovery.take_overdue(INCOMPLETE_SECONDS))
    assert list(overdue) == ([incomplete] if incomplete else [])
    if incomplete == "default//top":
        assert [one.name for one in overdue[incomplete]] == [one.name for one in pods if one.node_name]


def test_while_pods_of_a_tree_are_being_bound_it_is_neither_tried_nor_given_up() -> None:
    case = Case(*A, *B, tree=tree(2, "a", "b"))
    case.states.assume(B[0], "n")
    case.recovery.update(0.0)
    assert case.recovery.is_incomplete("default//top")
    assert case.recovery.next_to_try(0.0) == []
    assert case.recovery.take_overdue(INCOMPLETE_SECONDS) == []
    case.states.forget(B[0])
    case.recovery.update(1.0)
    assert len(case.recovery.next_to_try(1.0)) == 2
    assert len(case.recovery.take_overdue(INCOMPLETE_SECONDS)) == 1
    case.states.add(member("b-0", "b", node_name="n"))
    case.states.add(member("b-1", "b", node_name="n"))
    case.recovery.update(2.0)
    assert case.recovery.next_check() == math.inf


def test_after_others_have_decided_its_time_begins_again() -> None:
    case = Case(BOUND, PENDING)
    assert case.tried_at(0.0) == "default/g"
    case.recovery.start_over()
    assert not case.recovery.is_incomplete("default/g")
    assert case.tried_at(INCOMPLETE_SECONDS) == "default/g"
    assert case.recovery.take_overdue(INCOMPLETE_SECONDS + 1) == []
