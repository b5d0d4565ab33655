"""Which group is below which, and what is wrong with trees that are not whole."""

from trio_sched.engine.group_forest import BROKEN_SECONDS, GroupForest, is_composite, key_of
from trio_sched.plugin_api import CompositePodGroup, PodGroup, PodGroupTree, Status
from trio_sched.testing import composite_pod_group, pod_group

LEAF = "default/leaf"


def forest_of(*groups: PodGroup | CompositePodGroup) -> GroupForest:
    forest = GroupForest()
    for group in groups:
        forest.put(group, 0.0)
    return forest


def chain(*names: str) -> list[CompositePodGroup]:
    """Each is below the next one."""
    return [composite_pod_group(name, parent=parent) for name, parent in zip(names, [*names[1:], None], strict=True)]


def test_a_composite_group_and_a_pod_group_of_one_name_have_different_keys() -> None:
    one, other = key_of(composite_pod_group("a")), key_of(pod_group("a"))
    assert (other, one != other, is_composite(one), is_composite(other)) == ("default/a", True, True, False)


def test_a_group_without_parents_is_its_own_root() -> None:
    forest = forest_of(pod_group("leaf"))
    assert (forest.root_of(LEAF), forest.problem(LEAF)) == (LEAF, "")
    tree = forest.tree_of(LEAF)
    assert isinstance(tree, PodGroupTree)
    assert (tree.group.name, tree.children, [one.name for one in tree.leaves]) == ("leaf", (), ["leaf"])


def test_the_root_is_found_over_all_levels_and_the_tree_from_there() -> None:
    forest = forest_of(pod_group("leaf", parent="low"), pod_group("other", parent="top"), *chain("low", "mid", "top"))
    root = forest.root_of(LEAF)
    assert root == key_of(composite_pod_group("top")) == forest.root_of("default/other")
    tree = forest.tree(root)
    assert tree is not None
    assert sorted(one.name for one in tree.leaves) == ["leaf", "other"]
    assert [one.group.name for one in tree.children] == ["other", "mid"]  # as they came
    assert forest.root(LEAF) is None
    assert forest.root(root) is tree.group


def test_what_is_wrong_with_a_tree_is_said() -> None:
    deep = forest_of(pod_group("leaf", parent="a"), *chain("a", "b", "c", "d"))
    circle = forest_of(pod_group("leaf", parent="a"), composite_pod_group("a", parent="a"))
    orphan = forest_of(pod_group("leaf", parent="a"))
    texts = {
        deep: 'the tree of pod group "leaf" has more than 4 levels of groups',
        circle: "the parents of composite pod groups are a circle: a -> a",
        orphan: 'composite pod group "a" not found',
        forest_of(): 'pod group "leaf" not found',
    }
    for forest, text in texts.items():
        assert (forest.root_of(LEAF), forest.problem(LEAF), forest.root(LEAF)) == (LEAF, text, None)
        status = forest.tree_of(LEAF)
        assert isinstance(status, Status)
        assert status.message == text


def test_a_tree_shows_no_levels_below_the_fourth() -> None:
    forest = forest_of(pod_group("leaf", parent="a"), pod_group("good", parent="d"), *chain("a", "b", "c", "d"))
    tree = forest.tree_of("default/good")
    assert isinstance(tree, PodGroupTree)
    assert [one.name for one in tree.leaves] == ["good"]


def test_changes_name_the_pod_groups_that_may_have_another_root() -> None:
    forest = forest_of(pod_group("leaf", parent="low"), pod_group("other", parent="low"))
    low, top = chain("low", "top")
    both = {LEAF, "default/other"}
    assert forest.put(low, 0.0) == both
    assert forest.put(low, 0.0) == set()
    assert forest.put(top, 0.0) == both
    assert forest.remove(pod_group("other", parent="low"), 0.0) == {"default/other"}
    assert forest.remove(top, 0.0) == {LEAF}
    assert forest.remove(top, 0.0) == set()
    assert forest.put(composite_pod_group("low"), 0.0) == {LEAF}  # deleted and created between two lists
    assert forest.problem(LEAF) == ""


def test_a_broken_tree_is_reported_once_and_not_at_once() -> None:
    forest = forest_of(pod_group("leaf", parent="top"), pod_group("soon", parent="late"))
    assert (forest.take_broken(1.0), forest.next_check()) == ([], BROKEN_SECONDS)
    forest.put(composite_pod_group("late"), 2.0)
    assert forest.take_broken(BROKEN_SECONDS) == [(LEAF, 'composite pod group "top" not found')]
    assert (forest.take_broken(99.0), forest.next_check()) == ([], float("inf"))
    forest.put(composite_pod_group("top"), 99.0)
    forest.remove(composite_pod_group("top"), 100.0)
    assert forest.next_check() == 100.0 + BROKEN_SECONDS
    forest.remove(pod_group("leaf", parent="top"), 101.0)
    assert (forest.take_broken(999.0), forest.next_check()) == ([], float("inf"))


def test_nothing_is_kept_of_groups_that_are_gone() -> None:
    groups = [pod_group("leaf", parent="low"), *chain("low", "top"), pod_group("lost", parent="none")]
    forest = forest_of(*groups)
    for group in groups:
        forest.remove(group, 1.0)
    assert (forest._groups, forest._children, forest._broken, forest._unreported) == ({}, {}, {}, {})
