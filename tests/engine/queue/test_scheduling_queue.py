import math
from collections.abc import Callable
from typing import Any

import pytest
from attrs import define, field

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.queue import in_flight
from trio_sched.engine.queue.backoff import Backoff
from trio_sched.engine.queue.cluster_changes import POD_EVENTS, SPLIT_POD_EVENTS
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import HintEntry, HintTable
from trio_sched.engine.queue.scheduling_queue import AlreadyQueued, SchedulingQueue
from trio_sched.plugin_api import Action, ClusterEvent, Hint, Pod, QueuedPod, Resource, Status, unschedulable
from trio_sched.testing import node, pod

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE)
GATE_GONE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def keeps_back(waiting: Pod) -> Status | None:
    if waiting.labels.get("gate") == "broken":
        raise LookupError("the gate is broken")
    return unschedulable("gated") if waiting.spec.scheduling_gates else None


def by_label(waiting: Pod, _old: Any, _new: Any) -> Hint:
    return Hint.SKIP if waiting.labels.get("stubborn") else Hint.QUEUE


HINTS = HintTable(
    (
        HintEntry("Fit", NODE_ADD, BoundHook("Fit", "hint", by_label)),
        HintEntry("Slow", NODE_ADD, None),
        HintEntry("Gates", GATE_GONE, None),
    )
)


def sorted_by(key: Callable[[QueuedPod], Any]) -> BoundHook:
    return BoundHook("Order", "queue_sort", key)


@define(eq=False)
class Line:
    """A queue with the pods that exist, and shorthands for its methods."""

    pop_from_backoff: bool = True
    nominates_gated: bool = False
    known: dict[str, Pod] = field(factory=dict)
    queue: SchedulingQueue = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.queue = SchedulingQueue(
            get_unassigned_pod=self.known.get,
            backoff=Backoff(align_to_window=self.pop_from_backoff),
            pop_from_backoff=self.pop_from_backoff,
            nominates_gated=self.nominates_gated,
            pod_events=SPLIT_POD_EVENTS if self.nominates_gated else POD_EVENTS,
        )
        self.install(HINTS)

    def install(self, hints: HintTable) -> None:
        gates = ProfileQueueing([BoundHook("Gates", "pre_enqueue", keeps_back)], hints)
        order = sorted_by(lambda queued: (-queued.pod.priority, queued.timestamp))
        self.queue.install_queueing({"default-scheduler": gates}, order)

    def add(self, *pods: Pod, now: float = 0.0) -> None:
        for each in pods:
            self.known[each.key] = each
            self.queue.add(each, now=now)

    def pop(self) -> QueuedPodInfo:
        info = self.queue.pop()
        assert info is not None
        return info

    def fail(self, info: QueuedPodInfo, *plugins: str, now: float, pending: tuple[str, ...] = ()) -> None:
        info.unschedulable_plugins, info.pending_plugins = set(plugins), set(pending)
        self.queue.add_unschedulable(info, now=now)

    def reject(self, waiting: Pod, *plugins: str, now: float = 0.0) -> QueuedPodInfo:
        self.add(waiting, now=now)
        info = self.pop()
        self.fail(info, *plugins, now=now)
        return info

    @property
    def where(self) -> dict[str, list[str]]:
        queue = self.queue
        places = {
            "active": [each.pod.name for each in queue.active],
            "backoff": [each.pod.name for each in queue.backing_off.pod_backoff_q],
            "errors": [each.pod.name for each in queue.backing_off.pod_error_backoff_q],
            "waiting": sorted(each.pod.name for each in queue.unschedulable.values() if not each.gating_plugin),
            "gated": sorted(each.pod.name for each in queue.unschedulable.values() if each.gating_plugin),
        }
        return {place: names for place, names in places.items() if names}


@pytest.fixture
def line() -> Line:
    return Line()


# --- adding and popping ---------------------------------------------------------------------------------------------


def test_pods_are_popped_by_priority_and_then_by_queueing_time(line: Line) -> None:
    line.add(pod("late"), now=2.0)
    line.add(pod("early"), now=1.0)
    line.add(pod("important", priority=5), now=3.0)
    assert [line.pop().pod.name for _ in range(3)] == ["important", "early", "late"]
    assert line.queue.pop() is None
    assert not line.queue.has_next
    assert line.queue.scheduling_cycle == 3


def test_popping_counts_an_attempt_and_keeps_the_time_of_the_first(line: Line) -> None:
    line.add(pod("p"), now=7.0)
    info = line.pop()
    assert (info.attempts, info.initial_attempt_timestamp, info.timestamp) == (1, 7.0, 7.0)
    assert info.uid in line.queue.in_flight
    line.queue.done(info.uid)
    assert info.uid not in line.queue.in_flight


def test_a_pod_in_flight_is_not_queued_again(line: Line) -> None:
    line.add(pod("p"))
    line.pop()
    line.queue.add(pod("p"), now=1.0)
    assert line.queue.pop() is None


def test_a_gated_pod_waits_until_its_gates_are_removed(line: Line) -> None:
    gated = pod("p", gates=["g"])
    line.add(gated)
    assert line.where == {"gated": ["p"]}
    assert line.queue.sizes() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert line.queue.counters.unschedulable["Gates", "default-scheduler"] == 1
    line.queue.update(gated, pod("p"), now=1.0)
    assert line.where == {"active": ["p"]}
    info = line.pop()
    assert (info.gating_plugin, line.queue.counters.unschedulable["Gates", "default-scheduler"]) == ("", 0)


def test_a_failing_pre_enqueue_gates_the_pod_and_is_recorded(line: Line) -> None:
    line.add(pod("p", labels={"gate": "broken"}))
    assert line.where == {"gated": ["p"]}
    (reported,) = line.queue.plugin_failures.drain()
    assert (reported.failed.hook.plugin, reported.pod) == ("Gates", "default/p")
    assert str(reported.failed.__cause__) == "the gate is broken"


def test_pods_of_an_unknown_profile_are_not_gated(line: Line) -> None:
    line.add(pod("p", scheduler_name="other", gates=["g"]))
    assert line.where == {"active": ["p"]}


# --- requeueing -----------------------------------------------------------------------------------------------------


def test_a_rejected_pod_waits_for_an_event_its_rejector_registered(line: Line) -> None:
    line.reject(pod("p"), "Fit")
    assert line.where == {"waiting": ["p"]}
    line.queue.move_all(NODE_DELETE, now=20.0)
    assert line.where == {"waiting": ["p"]}
    line.queue.move_all(NODE_ADD, new=node(), now=20.0)
    assert line.where == {"active": ["p"]}
    assert line.queue.counters.incoming["active", "NodeAdd"] == 1


def test_a_pod_whose_hint_skips_the_event_stays(line: Line) -> None:
    line.reject(pod("p", labels={"stubborn": "yes"}), "Fit")
    line.queue.move_all(NODE_ADD, new=node(), now=20.0)
    assert line.where == {"waiting": ["p"]}


def test_events_can_be_limited_to_some_pods(line: Line) -> None:
    line.reject(pod("p", priority=1), "Fit")
    line.reject(pod("q"), "Fit")
    line.queue.move_all(NODE_ADD, new=node(), now=20.0, only=lambda each: each.priority == 1)
    assert line.where == {"active": ["p"], "waiting": ["q"]}


def test_a_requeued_pod_backs_off_unless_its_backoff_has_ended(line: Line) -> None:
    line.reject(pod("p"), "Fit", now=10.0)
    line.queue.move_all(NODE_ADD, new=node(), now=10.5)
    assert line.where == {"backoff": ["p"]}
    assert line.queue.next_backoff_check() == 12.0
    line.queue.flush_backoff(now=11.9)
    assert line.where == {"backoff": ["p"]}
    line.queue.flush_backoff(now=12.0)
    assert line.where == {"active": ["p"]}
    assert line.queue.next_backoff_check() == math.inf


def test_the_backoff_doubles_with_every_rejection(line: Line) -> None:
    info = line.reject(pod("p"), "Fit", now=0.0)
    waits = []
    for now in (100.0, 200.0, 300.0, 400.0):
        line.queue.activate([info.pod], now=now)
        line.fail(line.pop(), "Fit", now=now)
        line.queue.move_all(NODE_ADD, new=node(), now=now)
        assert line.where == {"backoff": ["p"]}
        waits.append(info.sort_time - now)
    assert waits == [2.0, 4.0, 8.0, 10.0]


def test_an_empty_active_queue_pops_from_backoff(line: Line) -> None:
    line.reject(pod("p"), "Fit", now=10.0)
    line.queue.move_all(NODE_ADD, new=node(), now=10.0)
    assert line.queue.has_next
    assert line.pop().pod.name == "p"
    assert line.queue.counters.incoming["active", "PopFromBackoffQ"] == 1


def test_without_the_gate_nothing_is_popped_from_backoff() -> None:
    line = Line(pop_from_backoff=False)
    line.reject(pod("p"), "Fit", now=10.3)
    line.queue.move_all(NODE_ADD, new=node(), now=10.4)
    assert not line.queue.has_next
    line.queue.flush_backoff(now=11.3)
    assert line.where == {"backoff": ["p"]}
    line.queue.flush_backoff(now=11.31)
    assert line.where == {"active": ["p"]}


def test_a_pod_without_rejectors_has_failed_and_always_backs_off(line: Line) -> None:
    line.add(pod("p"))
    info = line.pop()
    line.fail(info, now=5.0)
    assert (line.where, info.consecutive_errors, info.unschedulable_count) == ({"errors": ["p"]}, 1, 0)
    assert not line.queue.has_next
    line.queue.flush_backoff(now=7.0)
    line.fail(line.pop(), "Fit", now=7.0)
    assert (info.consecutive_errors, info.unschedulable_count) == (0, 1)


def test_a_pod_with_pending_plugins_is_requeued_without_backoff(line: Line) -> None:
    line.add(pod("p"))
    info = line.pop()
    line.fail(info, "Slow", pending=("Slow",), now=10.0)
    line.queue.move_all(NODE_ADD, new=node(), now=10.0)
    assert line.where == {"active": ["p"]}


def test_events_during_an_attempt_are_taken_into_account(line: Line) -> None:
    line.add(pod("p"), pod("q"), pod("r"))
    first, second, third = (line.pop() for _ in range(3))
    line.queue.move_all(NODE_ADD, new=node(), now=1.0)
    line.fail(first, "Fit", now=10.0)
    line.fail(second, "Other", now=10.0)
    line.fail(third, "Slow", pending=("Slow",), now=10.0)
    assert line.where == {"active": ["r"], "backoff": ["p"], "waiting": ["q"]}


def test_of_the_events_during_an_attempt_one_for_a_pending_plugin_decides(line: Line) -> None:
    line.add(pod("p"), pod("q"))
    first, second = line.pop(), line.pop()
    line.queue.move_all(GATE_GONE, new=first.pod, now=1.0)
    line.queue.move_all(NODE_ADD, new=node(), now=2.0)
    line.fail(first, "Gates", pending=("Slow",), now=10.0)
    line.fail(second, "Gates", pending=("Other",), now=10.0)
    assert line.where == {"active": ["p"], "backoff": ["q"]}


def test_a_pod_that_too_many_events_have_passed_is_tried_again(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_flight, "MAX_EVENTS", 4)
    line.add(pod("early"), pod("late"))
    early = line.pop()
    for _ in range(4):
        line.queue.move_all(NODE_ADD, new=node(), now=1.0)
    late = line.pop()
    line.queue.move_all(NODE_ADD, new=node(), now=1.0)
    line.fail(early, "Other", now=10.0)
    line.fail(late, "Other", now=10.0)
    assert line.where == {"backoff": ["early"], "waiting": ["late"]}


def test_unregistered_events_are_not_recorded(line: Line) -> None:
    line.add(pod("p"))
    info = line.pop()
    line.queue.move_all(NODE_DELETE, now=1.0)
    assert list(line.queue.in_flight) == [("default/p", info.uid)]


def test_adding_an_unschedulable_pod_that_is_not_in_flight_goes_through_backoff(line: Line) -> None:
    line.add(pod("p"))
    info = line.pop()
    line.queue.done(info.uid)
    line.fail(info, "Fit", now=10.0)
    assert line.where == {"backoff": ["p"]}


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (lambda line: line.queue.add(pod("p"), now=1.0), "Pod default/p is already present in the active queue"),
        (
            lambda line: line.reject(pod("p", uid="second"), "Fit"),
            "Pod default/p is already present in unschedulable queue",
        ),
        (
            lambda line: line.reject(pod("p", uid="second"), now=5.0),
            "Pod default/p is already present in the backoff queue",
        ),
    ],
)
def test_a_queued_pod_cannot_be_added_as_unschedulable(line: Line, place: Callable[[Line], Any], text: str) -> None:
    line.add(pod("p"))
    info = line.pop()
    place(line)
    with pytest.raises(AlreadyQueued, match=f"^{text}$"):
        line.fail(info, "Fit", now=10.0)
    assert info.uid not in line.queue.in_flight


# --- updates and deletions ------------------------------------------------------------------------------------------


def test_an_updated_active_pod_is_popped_in_its_newest_version(line: Line) -> None:
    line.add(pod("p"), pod("q", priority=1))
    line.queue.update(pod("p"), pod("p", priority=9), now=1.0)
    info = line.pop()
    assert (info.pod.name, info.pod.priority) == ("p", 9)


def test_an_updated_pod_stays_in_backoff(line: Line) -> None:
    line.reject(pod("p"), "Fit", now=10.0)
    line.queue.move_all(NODE_ADD, new=node(), now=10.0)
    line.queue.update(pod("p"), pod("p", labels={"a": "b"}), now=10.0)
    assert line.where == {"backoff": ["p"]}
    assert line.pop().pod.labels == {"a": "b"}


def test_an_update_of_a_pod_in_flight_is_an_event_for_it(line: Line) -> None:
    line.add(pod("p"))
    info = line.pop()
    changed = pod("p", labels={"a": "b"})
    line.queue.update(pod("p"), changed, now=1.0)
    labels = [entry.label for entry in line.queue.in_flight if isinstance(entry, ClusterEvent)]
    assert labels == ["UnschedulablePodUpdatePodLabel"]
    assert info.pod.labels == {}


def test_an_update_of_an_unknown_pod_is_a_new_pod(line: Line) -> None:
    line.queue.update(pod("p"), pod("p", labels={"a": "b"}), now=1.0)
    assert line.where == {"active": ["p"]}
    assert line.queue.counters.incoming["active", "UnschedulablePodUpdate"] == 1


@pytest.mark.parametrize("state", ["active", "backoff", "waiting"])
def test_a_deleted_pod_leaves_every_part_of_the_queue(line: Line, state: str) -> None:
    if state == "active":
        line.add(pod("p"))
    else:
        line.reject(pod("p"), "Fit", now=10.0)
    if state == "backoff":
        line.queue.move_all(NODE_ADD, new=node(), now=10.0)
    assert list(line.where) == [state]
    line.queue.delete(pod("p"))
    assert line.where == {}
    if state == "waiting":
        assert line.queue.counters.unschedulable["Fit", "default-scheduler"] == 0


# --- activating, flushing, closing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [None, NODE_ADD], ids=["waiting", "backoff"])
def test_an_activated_pod_moves_to_the_active_queue(line: Line, event: ClusterEvent | None) -> None:
    line.reject(pod("p"), "Fit", now=10.0)
    if event is not None:
        line.queue.move_all(event, new=node(), now=10.0)
    line.queue.activate([pod("p"), pod("unknown")], now=10.0)
    assert line.where == {"active": ["p"]}
    assert line.queue.counters.incoming["active", "ForceActivate"] == 1


def test_activating_does_not_open_gates(line: Line) -> None:
    line.add(pod("p", gates=["g"]))
    line.queue.activate([pod("p")], now=1.0)
    assert line.where == {"gated": ["p"]}


def test_activating_a_pod_in_flight_requeues_it_after_its_attempt(line: Line) -> None:
    line.add(pod("p"), pod("q"))
    first, second = line.pop(), line.pop()
    line.queue.activate([first.pod], now=1.0)
    line.fail(first, "Other", now=10.0)
    line.fail(second, "Other", now=10.0)
    assert line.where == {"backoff": ["p"], "waiting": ["q"]}


def test_a_pod_unschedulable_for_too_long_is_requeued(line: Line) -> None:
    info = line.reject(pod("p"), "Fit", now=10.0)
    line.add(pod("gated", gates=["g"]), now=10.0)
    line.queue.flush_unschedulable(now=310.0)
    assert line.where == {"waiting": ["p"], "gated": ["gated"]}
    line.queue.flush_unschedulable(now=310.1)
    assert line.where == {"active": ["p"], "gated": ["gated"]}
    assert info.was_flushed
    assert line.queue.counters.incoming["active", "UnschedulableTimeout"] == 1


def test_a_retry_that_a_plugin_asked_for_is_no_flush(line: Line) -> None:
    line.add(pod("gated", gates=["g"]), now=10.0)
    (info,) = line.queue.unschedulable.values()
    line.queue.flush_unschedulable(now=310.1)
    assert info.was_flushed
    line.queue.retries.start(info.uid, info.key, "Gates", 320.0)
    line.queue.flush_retries(now=320.0)
    assert not info.was_flushed


def test_a_given_pod_can_be_popped(line: Line) -> None:
    line.reject(pod("p"), "Fit")
    line.add(pod("important", priority=5))
    info = line.queue.pop_specific(pod("p"), now=1.0)
    assert info is not None
    assert (info.pod.name, info.uid in line.queue.in_flight) == ("p", True)
    assert line.queue.pop_specific(pod("p"), now=1.0) is None
    line.add(pod("gated", gates=["g"]))
    assert line.queue.pop_specific(pod("gated"), now=1.0) is None


def test_a_closed_queue_still_pops_but_tracks_no_pod_in_flight(line: Line) -> None:
    line.add(pod("p"), pod("q"))
    line.pop()
    line.queue.close()
    assert (line.queue.closed, len(line.queue.in_flight)) == (True, 0)
    assert line.pop().pod.name == "q"


# --- nominations ----------------------------------------------------------------------------------------------------


def test_a_new_pod_is_nominated_by_its_status_until_it_is_deleted(line: Line) -> None:
    waiting = pod("p", nominated_node_name="n")
    line.add(waiting)
    (nominated,) = line.queue.nominated_pods("n")
    assert isinstance(nominated, QueuedPodInfo)
    assert nominated.pod is waiting
    assert line.queue.nominated_pods("elsewhere") == []
    line.queue.delete(waiting)
    assert line.queue.nominated_pods("n") == []


def test_a_nominated_pod_in_flight_is_returned_as_it_was_nominated(line: Line) -> None:
    waiting = pod("p", nominated_node_name="n")
    line.add(waiting)
    line.pop()
    assert line.queue.nominated_pods("n") == [waiting]


def test_a_nomination_follows_updates_of_the_pod(line: Line) -> None:
    line.reject(pod("p"), "Fit")
    line.queue.update(pod("p"), pod("p", nominated_node_name="n"), now=1.0)
    assert [each.pod.name for each in line.queue.nominated_pods("n") if isinstance(each, QueuedPodInfo)] == ["p"]


# --- signatures -----------------------------------------------------------------------------------------------------


def test_a_pod_is_signed_once_per_version() -> None:
    signed: list[str] = []

    def sign(info: QueuedPodInfo) -> None:
        signed.append(info.pod.metadata.resource_version or info.pod.name)
        info.signature = (info.pod.name,)

    queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
    queue.install_queueing({}, sorted_by(lambda queued: queued.timestamp), sign)
    queue.add(pod("p"), now=0.0)
    queue.update(pod("p"), pod("p", labels={"a": "b"}), now=1.0)
    info = queue.pop()
    assert info is not None
    assert info.signature == ("p",)
    assert signed == ["p", "p"]


def test_the_sort_key_is_that_of_the_queue_sort_plugin() -> None:
    keys: list[QueuedPod] = []

    def by_name(queued: QueuedPod) -> str:
        keys.append(queued)
        return queued.pod.name

    queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
    queue.install_queueing({}, sorted_by(by_name))
    for name in ("c", "a", "b"):
        queue.add(pod(name), now=0.0)
    popped = [queue.pop() for _ in range(3)]
    assert [info.pod.name for info in popped if info] == ["a", "b", "c"]
    assert {key.attempts for key in keys} == {0}


def test_the_queue_is_sorted_again_by_new_keys_wherever_pods_wait_their_turn(line: Line) -> None:
    shares = {"a": 1, "b": 2, "c": 3}
    line.queue.install_queueing(line.queue.profiles, sorted_by(lambda queued: shares[queued.pod.name]))
    for name in shares:
        line.add(pod(name))
    line.fail(line.pop(), "Slow", now=1.0)
    line.queue.move_all(NODE_ADD, None, node(), now=1.0)
    shares.update(a=3, c=1, b=2)
    line.queue.sort_again()
    assert [info.pod.name for info in line.queue.active] == ["c", "b"]
    assert [info.sort_key for info in line.queue.backing_off.pod_backoff_q] == [(False, 3)]
    assert [line.pop().pod.name for _ in range(2)] == ["c", "b"]


def test_keys_that_do_not_compare_after_sorting_again_are_replaced_and_reported() -> None:
    keys: dict[str, Any] = {"a": 1, "b": 2}
    queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
    queue.install_queueing({}, sorted_by(lambda queued: keys[queued.pod.name]))
    queue.add(pod("a"), now=0.0)
    queue.add(pod("b", priority=1), now=0.0)
    keys["b"] = "two"
    queue.sort_again()
    popped = [queue.pop() for _ in range(2)]
    assert [info.pod.name for info in popped if info] == ["b", "a"]
    (reported,) = queue.plugin_failures.drain()
    assert "queue_sort" in reported.failed.problem


def test_a_pod_whose_sort_key_fails_is_popped_last_and_reported() -> None:
    def no_order(queued: QueuedPod) -> int:
        if queued.pod.name.startswith("odd"):
            raise LookupError("no order")
        return 0

    queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
    queue.install_queueing({}, sorted_by(no_order))
    for name, priority in (("odd", 1), ("odd-but-important", 2), ("even", 0)):
        queue.add(pod(name, priority=priority), now=0.0)
    popped = [queue.pop() for _ in range(3)]
    assert [info.pod.name for info in popped if info] == ["even", "odd-but-important", "odd"]
    (reported,) = queue.plugin_failures.drain()
    assert (reported.failed.hook.plugin, reported.pod, reported.count) == ("Order", "default/odd", 2)
    assert reported.failed.problem == "queue_sort raised LookupError: no order"


@pytest.mark.parametrize(
    "keys", [(1, "one", 2), ((1, 2), (1, "a"), (0, 0)), (float("nan"), 1, 2), (None, 1, {}), (b"", "", 0)], ids=repr
)
def test_incomparable_sort_keys_lose_their_order_but_no_pod(keys: tuple[Any, ...]) -> None:
    queue = SchedulingQueue(get_unassigned_pod=lambda _key: None)
    queue.install_queueing({}, sorted_by(lambda queued: keys[int(queued.pod.name) % 3]))
    for number in range(9):
        queue.add(pod(str(number)), now=float(number))
    assert len(list(queue.active)) == 9
    popped = [queue.pop() for _ in range(9)]
    assert {info.pod.name for info in popped if info} == {str(number) for number in range(9)}
    assert queue.pop() is None
    (reported,) = queue.plugin_failures.drain()
    assert "queue_sort" in reported.failed.problem


# --- set aside ------------------------------------------------------------------------------------------------------


def set_aside(line: Line, *pods: Pod) -> None:
    for each in pods:
        line.add(each)
        line.queue.put_aside(line.pop())


def pop_set_aside(line: Line) -> QueuedPodInfo:
    info = line.queue.pop_set_aside()
    assert info is not None
    return info


def test_a_pod_that_was_set_aside_is_in_flight_when_it_is_popped_again(line: Line) -> None:
    set_aside(line, pod("p"))
    info = line.queue.find("default/p")
    assert info is not None
    assert (line.queue.pop(), info.attempts) == (None, 0)
    line.queue.move_all(NODE_ADD, None, node("too-early"), now=1.0)
    assert pop_set_aside(line) is info
    assert (line.queue.pop_set_aside(), info.attempts) == (None, 1)
    line.fail(info, "Fit", now=2.0)
    assert line.where == {"waiting": ["p"]}


def test_events_after_a_pod_that_was_set_aside_is_popped_are_taken_into_account(line: Line) -> None:
    set_aside(line, pod("p"))
    info = pop_set_aside(line)
    line.queue.move_all(NODE_ADD, None, node("new"), now=1.0)
    line.fail(info, "Fit", now=2.0)
    assert line.where == {"backoff": ["p"]}


def test_an_update_of_a_pod_that_is_set_aside_leaves_it_in_its_place(line: Line) -> None:
    set_aside(line, pod("p"), pod("q"))
    changed = pod("p", labels={"new": "1"})
    line.queue.update(pod("p"), changed, now=1.0)
    assert line.where == {}
    assert [info.pod.name for info in line.queue.set_aside] == ["p", "q"]
    assert pop_set_aside(line).pod is changed


def test_a_pod_that_is_set_aside_counts_as_active_until_it_is_tried_or_gone(line: Line) -> None:
    set_aside(line, pod("p"), pod("q"))
    assert line.queue.sizes() == {"active": 2, "backoff": 0, "unschedulable": 0, "gated": 0}
    pop_set_aside(line)
    assert line.queue.sizes()["active"] == 1
    line.queue.delete(pod("q"))
    assert line.queue.sizes()["active"] == 0
    assert line.queue.pop_set_aside() is None


def test_a_pod_that_is_set_aside_counts_for_the_plugin_that_rejected_it_until_it_is_tried(line: Line) -> None:
    counted = line.queue.counters.unschedulable
    line.reject(pod("p"), "Fit")
    info = line.queue.pop_specific(pod("p"), now=0.0)
    assert info is not None
    line.queue.put_aside(info)
    assert counted["Fit", "default-scheduler"] == 1
    pop_set_aside(line)
    assert counted["Fit", "default-scheduler"] == 0


@pytest.mark.parametrize("uncounts_deleted", [False, True], ids=["1.36", "1.37"])
@pytest.mark.parametrize("event_at", [1.0, 100.0], ids=["backoff", "active"])
def test_a_rejected_pod_that_is_deleted_on_its_way_is_counted_no_more_since_1_37(
    line: Line, uncounts_deleted: bool, event_at: float
) -> None:
    line.queue.uncounts_deleted = uncounts_deleted
    line.reject(pod("p"), "Fit")
    line.queue.move_all(NODE_ADD, None, node("n"), now=event_at)
    assert line.where == {"active" if event_at > 10 else "backoff": ["p"]}
    line.queue.delete(pod("p"))
    assert line.queue.counters.unschedulable["Fit", "default-scheduler"] == (0 if uncounts_deleted else 1)


@pytest.mark.parametrize("flushes_gated", [False, True], ids=["1.36", "1.37"])
def test_a_gated_pod_is_asked_for_again_when_it_has_waited_too_long_since_1_37(line: Line, flushes_gated: bool) -> None:
    line.queue.flushes_gated = flushes_gated
    line.add(pod("p", gates=["wait"]), pod("q", gates=["wait"]))
    freed = line.queue.find("default/p")
    assert freed is not None
    freed.replace_pod(pod("p"))
    line.queue.flush_unschedulable(now=301.0)
    assert line.where == ({"active": ["p"], "gated": ["q"]} if flushes_gated else {"gated": ["p", "q"]})


def test_other_profiles_judge_pods_that_are_set_aside(line: Line) -> None:
    set_aside(line, pod("p"))
    line.queue.requeue_all(now=1.0)
    assert line.where == {"active": ["p"]}
    assert len(line.queue.set_aside) == 0


def annotated(name: str, **annotations: str) -> Pod:
    return pod(name, annotations={f"example.com/{key}": value for key, value in annotations.items()})


@pytest.mark.parametrize("action", [Action.UPDATE_POD_ANNOTATION, Action.UPDATE_POD_ANNOTATION | Action.ADD])
def test_other_annotations_are_an_event_for_those_who_have_asked_for_it(action: Action) -> None:
    seen: list[tuple[Any, Any]] = []

    def hint(_waiting: Pod, old: Any, new: Any) -> Hint:
        seen.append((old.annotations, new.annotations))
        return Hint.QUEUE

    line = Line(pop_from_backoff=False)
    entry = HintEntry("Asks", ClusterEvent(Resource.UNSCHEDULABLE_POD, action), BoundHook("Asks", "hint", hint))
    line.install(HintTable((*HINTS.entries, entry)))
    line.reject(annotated("p"), "Asks")
    line.reject(annotated("other"), "Slow")
    line.queue.update(annotated("p"), pod("p", priority=1), now=100.0)
    line.queue.update(annotated("other"), annotated("other", a="1"), now=100.0)
    assert line.where == {"waiting": ["other", "p"]}
    line.queue.update(annotated("p"), annotated("p", a="1"), now=100.0)
    assert line.where == {"waiting": ["other"], "active": ["p"]}
    assert seen == [({}, {"example.com/a": "1"})]


def test_an_attempt_under_way_sees_other_annotations_only_if_somebody_has_asked_for_it(line: Line) -> None:
    line.add(annotated("p"))
    info = line.pop()
    line.queue.update(annotated("p"), annotated("p", a="1"), now=1.0)
    assert [one.event.label for one in line.queue.in_flight.since(info.uid)] == ["UnschedulablePodUpdate"]


@pytest.mark.parametrize("since_1_37", [False, True])
def test_the_nomination_of_a_gated_pod_counts_and_its_event_has_another_name_since_1_37(since_1_37: bool) -> None:
    line = Line(nominates_gated=since_1_37)
    gated = pod("gated", gates=["wait"], nominated_node_name="n")
    line.known[gated.key] = gated
    line.queue.add(gated, now=0.0)
    assert line.queue.nominator.node_of(gated.uid) == ("n" if since_1_37 else None)
    label = "UnscheduledPodAdd" if since_1_37 else "UnschedulablePodAdd"
    assert line.queue.counters.incoming["unschedulable", label] == 1
