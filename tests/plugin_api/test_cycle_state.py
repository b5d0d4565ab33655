import pytest

from trio_sched.plugin_api import CycleState
from trio_sched.testing import pod


class Counts:
    def __init__(self, value: int) -> None:
        self.value = value

    def clone(self) -> "Counts":
        return Counts(self.value)


def test_values_are_read_as_they_were_written() -> None:
    state = CycleState()
    state.write(("Mine", "what"), 5)
    assert state.read(("Mine", "what")) == 5
    assert state.get("other") is None
    assert state.get("other", 7) == 7
    with pytest.raises(KeyError):
        state.read("other")


def test_a_clone_can_be_changed_without_the_original_noticing() -> None:
    state = CycleState()
    shared = object()
    for key, value in (("list", [1]), ("dict", {1: 2}), ("set", {1}), ("own", Counts(1)), ("shared", shared)):
        state.write(key, value)
    state.skip_filter, state.skip_score = frozenset({"A"}), frozenset({"B"})
    copy = state.clone()
    copy.read("list").append(2)
    copy.read("dict")[3] = 4
    copy.read("set").add(2)
    copy.read("own").value = 9
    copy.write("new", 1)
    assert (state.read("list"), state.read("dict"), state.read("set")) == ([1], {1: 2}, {1})
    assert (state.read("own").value, state.get("new")) == (1, None)
    assert copy.read("shared") is shared
    assert (copy.skip_filter, copy.skip_score) == ({"A"}, {"B"})
    assert copy.pods_to_activate is state.pods_to_activate


def test_a_fork_begins_with_the_same_values_for_another_pod() -> None:
    state = CycleState()
    state.write("list", kept := [1])
    state.skip_filter = frozenset({"A"})
    state.pods_to_activate["default/p"] = pod("p")
    other = state.fork()
    assert other.read("list") is kept
    other.write("list", [])
    assert state.read("list") is kept
    assert other.skip_filter == {"A"}
    assert other.pods_to_activate == {}
