from gangs import member

from trio_sched.engine.cache import Cache
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.testing import node, pod


def states_with(*names: str) -> PodGroupStates:
    states = PodGroupStates()
    for name in names:
        states.add(member(name, "g"))
    return states


def sizes(states: PodGroupStates) -> tuple[int, int, int, int]:
    group = states.get("default/g")
    assert group is not None
    return group.pod_count, len(group.unscheduled), len(group.assumed), len(group.assigned)


def test_pods_go_from_unscheduled_over_assumed_to_assigned() -> None:
    states = states_with("a", "b")
    assert sizes(states) == (2, 2, 0, 0)
    states.assume(member("a", "g"), "n")
    assert sizes(states) == (2, 1, 1, 0)
    states.add(member("a", "g", node_name="n"))
    assert sizes(states) == (2, 1, 0, 1)
    group = states.get("default/g")
    assert group is not None
    assert group.scheduled_count == 1
    assert [one.name for one in group.unscheduled_pods] == ["b"]
    assert list(group.node_names.values()) == ["n"]


def test_a_forgotten_pod_is_unscheduled_again_unless_it_was_assigned_meanwhile() -> None:
    states = states_with("a", "b")
    for name in ("a", "b"):
        states.assume(member(name, "g"), "n")
    states.add(member("b", "g", node_name="n"))
    states.forget(member("a", "g"))
    states.forget(member("b", "g"))
    assert sizes(states) == (2, 1, 0, 1)


def test_an_update_of_an_assumed_pod_leaves_it_assumed() -> None:
    states = states_with("a")
    states.assume(member("a", "g"), "n")
    states.add(member("a", "g", labels={"new": "label"}))
    assert sizes(states) == (1, 0, 1, 0)


def test_a_group_without_pods_is_forgotten() -> None:
    states = states_with("a")
    states.remove(member("a", "g"))
    assert states.get("default/g") is None
    assert len(states) == 0
    states.remove(member("a", "g"))
    states.forget(member("a", "g"))


def test_an_assumed_pod_that_is_gone_is_ignored_but_makes_a_group_that_is_not_known() -> None:
    states = states_with("a")
    states.assume(member("b", "g"), "n")
    assert sizes(states) == (1, 1, 0, 0)
    states.assume(member("c", "other"), "n")
    other = states.get("default/other")
    assert other is not None
    assert other.scheduled_count == 1


def test_a_group_whose_last_pod_goes_while_it_is_tried_leaves_nothing_behind() -> None:
    states = states_with("a")
    states.remove(member("a", "g"))
    states.assume(member("a", "g"), "n")
    states.assume(member("b", "g"), "n")
    states.forget(member("a", "g"))
    assert len(states) == 0


def test_pods_without_a_group_are_not_counted() -> None:
    states = PodGroupStates()
    alone = pod("alone")
    states.add(alone)
    states.assume(alone, "n")
    states.forget(alone)
    states.remove(alone)
    assert len(states) == 0


def test_changes_are_reported_once() -> None:
    states = states_with("a")
    states.take_changed()
    states.assume(member("a", "g"), "n")
    assert states.take_changed() == {"default/g"}
    assert states.take_changed() == set()


def test_changes_of_groups_that_are_gone_are_not_kept_for_ever() -> None:
    states = states_with("a")
    for number in range(5000):
        one = member("p", f"group-{number}")
        states.add(one)
        states.remove(one)
    changed = states.take_changed()
    assert "default/g" in changed
    assert len(changed) < 2000


def test_the_cache_keeps_the_state() -> None:
    states = PodGroupStates()
    cache = Cache(groups=states)
    cache.add_node(node("n"))
    states.add(member("a", "g"))
    cache.assume(member("a", "g"), "n")
    assert sizes(states) == (1, 0, 1, 0)
    cache.forget(member("a", "g").uid)
    assert sizes(states) == (1, 1, 0, 0)
    bound = member("a", "g", node_name="n")
    cache.add(bound)
    cache.update(bound)
    assert sizes(states) == (1, 0, 0, 1)
    cache.remove(bound.uid)
    assert states.get("default/g") is None


def test_groups_that_are_not_followed_have_no_pods() -> None:
    states = PodGroupStates(is_followed=False)
    states.add(member("a", "g", node_name="n"))
    states.assume(member("b", "g"), "n")
    states.note_change("default/g")
    assert (len(states), states.get("default/g"), states.take_changed()) == (0, None, set())
