"""Pods of a group are one entity in the queue: one place, one gate, one backoff."""

from typing import Any

import pytest
from attrs import define, field
from gangs import member
from msgspec import convert

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.group_queue import GroupQueue
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintEntry, HintTable
from trio_sched.plugin_api import Action, ClusterEvent, Hint, Pod, PodGroup, Resource, Status, unschedulable
from trio_sched.testing import pod

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
HINTS = HintTable(
    (
        HintEntry(
            "Fit",
            NODE_ADD,
            BoundHook("Fit", "hint", lambda one, _old, _new: Hint.SKIP if "stubborn" in one.labels else Hint.QUEUE),
        ),
        HintEntry("Gates", NODE_ADD, None),
    )
)


def keeps_back(waiting: Pod) -> Status | None:
    return unschedulable("gated") if waiting.labels.get("gate") else None


@define(eq=False)
class Line:
    """A queue in which groups a and b exist, with shorthands."""

    groups: dict[str, int] = field(factory=lambda: {"default/a": 0, "default/b": 0})
    """Key → priority."""
    roots: dict[str, str] = field(factory=dict)
    """Group → the root of its tree."""
    known: dict[str, Pod] = field(factory=dict)
    queue: GroupQueue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.queue = GroupQueue(
            get_unassigned_pod=self.known.get,
            backoff=Backoff(),
            groups_skip_hints=True,
            groups_back_off=True,
            find_group=self._group,
            root_of=lambda key: self.roots.get(key, key),
        )
        gates = ProfileQueueing([BoundHook("Gates", "pre_enqueue", keeps_back)], HINTS)
        order = BoundHook("Order", "queue_sort", lambda queued: (-queued.pod.priority, queued.timestamp))
        self.queue.install_queueing({"default-scheduler": gates}, order)

    def _group(self, key: str) -> PodGroup | None:
        priority = self.groups.get(key)
        return None if priority is None else convert({"spec": {"priority": priority}}, PodGroup)

    def add(self, *pods: Pod, now: float = 0.0) -> None:
        for each in pods:
            self.known[each.key] = each
            self.queue.add(each, now=now)

    def pop_group(self, *names: str, now: float = 0.0) -> list[QueuedPodInfo]:
        """Pop the next pod and the others *names* with it; all of a group."""
        first = self.queue.pop()
        assert first is not None
        others = [self.queue.pop_specific(self.known[f"default/{name}"], now=now) for name in names]
        found = [first, *(one for one in others if one is not None)]
        assert len({self.queue.entity_of(one.pod) for one in found}) == 1
        return found

    def fail(self, infos: list[QueuedPodInfo], *plugins: str, now: float) -> None:
        for info in infos:
            info.unschedulable_plugins = set(plugins)
            self.queue.add_unschedulable(info, now=now)

    def sizes(self) -> dict[str, int]:
        return {part: size for part, size in self.queue.sizes().items() if size}

    def entities(self) -> dict[tuple[str, str], int]:
        return {key: size for key, size in self.queue.entity_sizes().items() if size}


def pods(group: str, count: int, **fields: Any) -> list[Pod]:
    return [member(f"{group}{number}", group, **fields) for number in range(count)]


@pytest.mark.parametrize(("count", "longest"), [(1, 10.0), (4, 20.0), (16, 40.0)])
def test_the_longest_backoff_of_a_group_grows_with_the_square_root_of_its_pods(count: int, longest: float) -> None:
    line, now = Line(), 0.0
    members = pods("a", count)
    line.add(*members)
    waits = []
    for _ in range(8):
        infos = line.pop_group(*[one.name for one in members], now=now)
        assert len(infos) == count
        line.fail(infos, "Fit", now=now)
        line.queue.finish_group("default/a", is_scheduled=False, now=now)
        (waits_until,) = {info.backoff_expiry for info in line.queue.backing_off.pod_error_backoff_q}
        assert waits_until is not None
        waits.append(waits_until - now)
        now = waits_until + 1
        line.queue.flush_backoff(now=now)
        assert line.sizes() == {"active": count}
    assert waits == [min(2.0**n, longest) for n in range(8)]


def test_groups_are_ordered_by_their_own_priority_then_by_when_they_came() -> None:
    line = Line({"default/a": 1, "default/b": 5})
    line.add(pod("high", priority=3), *pods("a", 2, priority=100), *pods("b", 2), now=1.0)
    line.add(pod("higher", priority=5), now=2.0)
    order = [line.queue.pop() for _ in range(6)]
    assert [one.pod.name for one in order if one is not None] == ["b0", "b1", "higher", "high", "a0", "a1"]


def test_one_pod_that_is_gated_gates_its_group() -> None:
    line = Line()
    line.add(*pods("a", 2))
    assert line.entities() == {("active", "podgroup"): 1}
    gated = member("late", "a", labels={"gate": "shut"})
    line.add(gated)
    assert (line.sizes(), line.entities()) == ({"gated": 3}, {("gated", "podgroup"): 1})
    opened = member("late", "a")
    line.known[opened.key] = opened
    line.queue.update(gated, opened, now=1.0)
    line.queue.move_all(NODE_ADD, now=1.0)
    assert line.sizes() == {"active": 3}


def test_an_event_that_helps_one_pod_moves_its_group_and_no_other() -> None:
    line = Line()
    line.add(
        member("a0", "a", labels={"gate": "shut"}),
        member("a1", "a", labels={"stubborn": ""}),
        member("b0", "b", labels={"gate": "shut"}),
    )
    assert line.sizes() == {"gated": 3}
    for name in ("a0", "a1"):
        opened = member(name, "a", labels={"stubborn": ""} if name == "a1" else {})
        line.queue.update(line.known[opened.key], opened, now=0.0)
    line.queue.move_all(NODE_ADD, now=1.0)
    assert {info.key for info in line.queue.active} == {"default/a0", "default/a1"}
    assert line.sizes() == {"active": 2, "gated": 1}


def test_pods_that_come_during_an_attempt_are_pending_and_tried_with_the_others() -> None:
    line = Line()
    line.add(*pods("a", 2), now=1.0)
    infos = line.pop_group("a1")
    late = member("late", "a")
    line.add(late, now=2.0)
    assert (line.sizes(), line.entities()) == ({"pending": 1}, {("pending", "podgroup"): 1})
    assert line.queue.find(late.key) is not None
    line.fail(infos[:1], "Fit", now=3.0)
    assert line.sizes() == {"pending": 2}
    line.queue.finish_group("default/a", is_scheduled=False, now=3.0)
    assert line.sizes() == {"backoff": 2}
    assert {info.timestamp for info in line.queue.backing_off.pod_error_backoff_q} == {3.0}


def test_pods_that_are_left_when_their_group_is_scheduled_are_tried_at_once_in_its_old_place() -> None:
    line = Line()
    line.add(*pods("a", 2), now=1.0)
    line.add(pod("other"), now=2.0)
    infos = line.pop_group("a1")
    line.fail(infos[1:], "Fit", now=3.0)
    line.queue.done(infos[0].uid)
    line.queue.finish_group("default/a", is_scheduled=True, now=3.0)
    assert [info.key for info in line.queue.active] == ["default/a1", "default/other"]
    (left,) = line.pop_group()
    line.queue.done(left.uid)
    line.queue.finish_group("default/a", is_scheduled=True, now=4.0)
    assert not line.queue.groups


def test_a_pod_that_could_not_be_bound_backs_off_and_joins_its_group() -> None:
    line = Line()
    line.add(*pods("a", 2))
    infos = line.pop_group("a1")
    line.queue.finish_group("default/a", is_scheduled=True, now=1.0)
    assert not line.queue.groups
    line.fail(infos[:1], now=5.0)
    assert line.sizes() == {"backoff": 1}
    line.fail(infos[1:], now=6.0)
    assert line.sizes() == {"backoff": 2}
    assert {info.backoff_expiry for info in line.queue.backing_off.pod_error_backoff_q} == {6.0}
    line.queue.flush_backoff(now=7.0)
    assert line.sizes() == {"active": 2}


def test_pods_wait_for_their_group_to_be_there_whatever_plugins_say() -> None:
    line = Line({})
    line.add(*pods("a", 2))
    assert (line.sizes(), line.entities()) == ({"incomplete": 2}, {("incomplete", "podgroup"): 1})
    line.queue.move_all(NODE_ADD, now=1.0)
    assert line.sizes() == {"incomplete": 2}
    line.groups["default/a"] = 0
    line.queue.pod_group_added("default/a", now=1.0)
    assert line.sizes() == {"active": 2}


def test_pods_that_go_leave_nothing_behind() -> None:
    line = Line()
    first, second, third = pods("a", 3)
    line.add(first, second)
    line.pop_group(second.name)
    line.add(third)
    line.queue.delete(third)
    assert (line.sizes(), line.queue.pending) == ({}, {})
    for one in (first, second):
        line.queue.done(one.uid)
        line.queue.delete(one)
    line.queue.finish_group("default/a", is_scheduled=False, now=1.0)
    line.add(first)
    line.queue.delete(first)
    assert not line.queue.groups


def test_activating_a_pod_activates_its_group() -> None:
    line = Line()
    line.add(*pods("a", 3))
    infos = line.pop_group("a1", "a2")
    line.fail(infos, "Fit", now=0.0)
    line.queue.finish_group("default/a", is_scheduled=False, now=0.0)
    assert line.sizes() == {"backoff": 3}
    line.queue.activate([line.known["default/a1"]], now=0.5)
    assert line.sizes() == {"active": 3}


def test_other_profiles_judge_groups_again() -> None:
    line = Line()
    line.add(*pods("a", 2), pod("single"))
    line.add(member("b0", "b", labels={"gate": "shut"}))
    line.queue.requeue_all(now=1.0)
    assert line.sizes() == {"active": 3, "gated": 1}
    assert line.entities() == {("active", "pod"): 1, ("active", "podgroup"): 1, ("gated", "podgroup"): 1}


def test_groups_and_pods_are_counted_apart() -> None:
    line = Line()
    line.add(*pods("a", 3), pod("single"))
    infos = line.pop_group("a1", "a2")
    line.fail(infos, "Fit", now=0.0)
    line.queue.finish_group("default/a", is_scheduled=False, now=0.0)
    assert line.queue.incoming_entities() == {
        ("active", "UnschedulablePodAdd", "pod"): 1,
        ("active", "UnschedulablePodAdd", "podgroup"): 1,
        ("backoff", "ScheduleAttemptFailure", "podgroup"): 1,
    }
    assert line.queue.counters.incoming["active", "UnschedulablePodAdd"] == 4


def test_a_pod_that_is_tracked_twice_does_not_leave_its_group_in_flight() -> None:
    line = Line()
    line.add(*pods("a", 1))
    (first,) = line.pop_group()
    line.queue.finish_group("default/a", is_scheduled=True, now=0.0)  # it waits on permit
    line.add(first.pod)
    assert line.queue.pop() is None
    assert not line.queue.groups


def line_of_tree() -> Line:
    """A line in which the groups a and b are below one root."""
    line = Line({"default/a": 0, "default/b": 0, "root": 3}, roots={"default/a": "root", "default/b": "root"})
    line.queue.roots_changed(line.roots, now=0.0)
    return line


def test_the_pods_of_a_tree_are_one_entity_with_the_priority_of_its_root() -> None:
    line = line_of_tree()
    line.add(pod("single", priority=2), *pods("a", 2), *pods("b", 1))
    assert line.entities() == {("active", "pod"): 1, ("active", "podgroup"): 1}
    assert {line.queue.entity_of(one) for one in line.known.values()} == {None, "root"}
    infos = line.pop_group("a1", "b0")
    assert [info.pod.name for info in infos] == ["a0", "a1", "b0"]
    line.add(member("b1", "b"))
    assert line.sizes() == {"active": 1, "pending": 1}
    line.fail(infos, "Fit", now=1.0)
    line.queue.finish_group("root", is_scheduled=False, now=1.0)
    assert line.entities() == {("active", "pod"): 1, ("backoff", "podgroup"): 1}
    line.queue.move_all(NODE_ADD, None, None, now=30.0)
    assert line.sizes() == {"active": 1, "backoff": 4}


def test_pods_move_with_their_group_when_it_gets_another_root() -> None:
    line = line_of_tree()
    line.add(*pods("a", 2), *pods("b", 2))
    line.roots = {"default/a": "root"}
    line.queue.roots_changed(["default/a", "default/b"], now=1.0)
    assert line.entities() == {("active", "podgroup"): 2}
    assert sorted(line.queue.groups) == ["default/b", "root"]
    infos = line.pop_group("a1") if line.queue.peek().pod.name == "a0" else line.pop_group("b1")
    line.roots = {"default/a": "root", "default/b": "root"}
    line.queue.roots_changed(["default/a", "default/b"], now=2.0)
    assert line.sizes() == {"pending": 2}
    for info in infos:
        line.queue.done(info.uid)
    line.queue.finish_group("root", is_scheduled=True, now=2.0)
    assert line.sizes() == {"active": 2}
    for one in line.known.values():
        line.queue.delete(one)
    line.roots = {}
    line.queue.roots_changed(["default/a", "default/b"], now=3.0)
    assert (line.queue.groups, line.queue._roots, line.queue.pending) == ({}, {}, {})


def test_pods_whose_tree_is_not_whole_wait_apart() -> None:
    line = line_of_tree()
    line.add(*pods("a", 2), *pods("b", 1))
    line.roots = {}
    del line.groups["default/a"]
    line.queue.roots_changed(["default/a"], now=1.0)
    assert line.sizes() == {"active": 1, "incomplete": 2}
    line.roots, line.groups["default/a"] = {"default/a": "root", "default/b": "root"}, 0
    line.queue.roots_changed(["default/a"], now=2.0)
    assert line.entities() == {("active", "podgroup"): 1}
    assert line.sizes() == {"active": 3}
