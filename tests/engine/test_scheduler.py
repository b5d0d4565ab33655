from collections.abc import Callable
from random import Random
from typing import Any, ClassVar

import pytest
from msgspec import structs
from plugin_base import PluginBase

from trio_sched.engine.cache import Cache, CacheError
from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.reservation import PermitWait
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api import (
    CycleState,
    Handle,
    Input,
    NodeView,
    Pod,
    Status,
    Wait,
    failure,
    hookimpl,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import behaviour_at
from trio_sched.plugin_api.preemption import budgets_of
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import make_profile, node, pod, pod_group


class Deposit:
    """Records what is reserved; rejects or waits as the pod's labels say."""

    name: ClassVar[str] = "Deposit"

    def __init__(self, args: None, handle: Handle) -> None:
        self.held: list[str] = []

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        state.write("Deposit", node_name)
        self.held.append(pod.name)
        return unschedulable("no deposit") if pod.labels.get("deposit") == "refuse" else None

    @hookimpl
    def unreserve(self, pod: Pod, state: CycleState) -> None:
        if pod.labels.get("deposit") == "lost":
            raise LookupError("lost")
        self.held.remove(pod.name)

    @hookimpl
    def permit(self, pod: Pod, state: CycleState) -> Status | Wait | None:
        match pod.labels.get("permit"):
            case "wait":
                return Wait(3.0)
            case "refuse":
                return unschedulable(f"not on {state.read('Deposit')}")
        return None


class OneByOne:
    name: ClassVar[str] = "OneByOne"

    def __init__(self, args: None, handle: Handle) -> None:
        self.asked: list[str] = []

    @hookimpl
    def filter_node(self, node: NodeView) -> None:
        self.asked.append(node.name)


def scheduler(*plugins: Any, nodes: int = 3, percentage: int = 0) -> Scheduler:
    profile = make_profile(
        ["PrioritySort", *(plugins or ("NodeResourcesFit", Deposit))], percentage_of_nodes_to_score=percentage
    )
    cache, known = Cache(), dict[str, Pod]()
    made = Scheduler(cache=cache, queue=SchedulingQueue(get_unassigned_pod=known.get), rng=Random(0))
    made.install_profiles({profile.name: profile})
    for i in range(nodes):
        cache.add_node(node(f"n{i}", cpu="4"))
    return made


def popped(made: Scheduler, waiting: Pod) -> QueuedPodInfo:
    made.queue.add(waiting, now=0.0)
    info = made.queue.pop()
    assert info is not None
    return info


def place(made: Scheduler, waiting: Pod) -> tuple[ScheduleResult, PermitWait | SchedulingFailure | None]:
    decision = made.decide(popped(made, waiting))
    assert isinstance(decision, ScheduleResult)
    return decision, made.assume_and_reserve(waiting, decision, now=0.0)


def deposit(made: Scheduler) -> list[str]:
    held: list[str] = made.profiles["default-scheduler"].plugins["Deposit"].held
    return held


def test_the_next_pod_sees_the_assumed_pod_on_its_node() -> None:
    made = scheduler()
    nodes = [place(made, pod(f"p{i}", cpu="3"))[0].node_name for i in range(3)]
    assert sorted(nodes) == ["n0", "n1", "n2"]
    fourth = made.decide(popped(made, pod("p3", cpu="3")))
    assert isinstance(fourth, SchedulingFailure)
    assert fourth.message == "0/3 nodes are available: 3 Insufficient cpu."


def test_unschedulable_pods_of_one_signature_have_the_same_message() -> None:
    made = scheduler()
    first, second = (made.decide(popped(made, pod(f"p{i}", cpu="64"))) for i in range(2))
    assert isinstance(first, SchedulingFailure)
    assert isinstance(second, SchedulingFailure)
    assert first.message == second.message
    assert first.state is not second.state  # a post_filter of one pod leaves its notes to itself
    made.cache.add_node(node("big", cpu="65"))
    third = made.decide(popped(made, pod("p2", cpu="64")))
    assert isinstance(third, ScheduleResult)
    assert third.node_name == "big"


def test_a_placed_pod_is_assumed_and_reserved() -> None:
    made = scheduler()
    decision, outcome = place(made, pod("p", cpu="1"))
    assert outcome is None
    assert made.cache.is_assumed(pod("p").uid)
    assert deposit(made) == ["p"]
    assert decision.state.read("Deposit") == decision.node_name


def test_a_pod_may_have_to_wait_for_permission() -> None:
    made = scheduler()
    _decision, outcome = place(made, pod("p", labels={"permit": "wait"}))
    assert outcome == PermitWait({"Deposit": 3.0})
    assert made.cache.is_assumed(pod("p").uid)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ({"deposit": "refuse"}, "0/1 nodes are available: 1 no deposit."),
        ({"permit": "refuse"}, "0/1 nodes are available: 1 not on n0."),
    ],
)
def test_a_failed_reserve_is_undone(labels: dict[str, str], message: str) -> None:
    made = scheduler(nodes=1)
    _decision, outcome = place(made, pod("p", cpu="1", labels=labels))
    assert isinstance(outcome, SchedulingFailure)
    assert outcome.message == message
    assert (len(made.cache), deposit(made)) == (0, [])
    assert NodeColumns(made.cache.table).requested[0].tolist() == [0]


def test_failures_of_unreserve_are_reported() -> None:
    made = scheduler(nodes=1)
    waiting = pod("p", labels={"deposit": "lost"})
    decision, _outcome = place(made, waiting)
    made.unreserve_and_forget(waiting, decision)
    (reported,) = made.plugin_failures.drain()
    plugin, error = reported.failed.hook.plugin, reported.failed.__cause__
    assert (plugin, str(error)) == ("Deposit", "lost")
    assert len(made.cache) == 0


def test_a_confirmed_pod_cannot_be_forgotten() -> None:
    made = scheduler(nodes=1)
    decision, _outcome = place(made, pod("p"))
    made.cache.add(structs.replace(pod("p"), spec=structs.replace(pod("p").spec, node_name="n0")))
    with pytest.raises(CacheError):
        made.unreserve_and_forget(pod("p"), decision)


def test_nominated_pods_reserve_their_node_against_lower_priority() -> None:
    made = scheduler(nodes=1)
    made.queue.get_unassigned_pod = {"default/preemptor": pod("preemptor")}.get
    made.queue.nominator = type(made.queue.nominator)(made.queue.get_unassigned_pod)
    preemptor = pod("preemptor", cpu="3", priority=5, nominated_node_name="n0")
    made.queue.nominator.add(preemptor, None)
    made.queue.nominator.add(pod("lost", cpu="3", priority=5), "no-such-node")
    assert isinstance(made.decide(popped(made, pod("small", cpu="2"))), SchedulingFailure)
    assert isinstance(made.decide(popped(made, pod("smaller", cpu="1"))), ScheduleResult)
    assert isinstance(made.decide(popped(made, pod("above", cpu="2", priority=6))), ScheduleResult)
    assert isinstance(made.decide(popped(made, preemptor)), ScheduleResult)


def test_a_placed_pod_is_no_longer_nominated() -> None:
    made = scheduler()
    waiting = pod("p", nominated_node_name="n2")
    made.queue.nominator.add(waiting, "n2")
    decision = made.decide(popped(made, waiting))
    assert isinstance(decision, ScheduleResult)
    assert decision.node_name == "n2"
    made.assume_and_reserve(waiting, decision, now=0.0)
    assert not made.queue.nominator


def nominated_to_n0(made: Scheduler, preemptor: Pod) -> tuple[QueuedPodInfo, Callable[[int], bool]]:
    """*preemptor*, popped; and whether the pod of a priority, which needs the room on n0, still waits."""
    made.queue.get_unassigned_pod = {preemptor.key: preemptor}.get
    made.queue.nominator = type(made.queue.nominator)(made.queue.get_unassigned_pod)
    nominated = popped(made, preemptor)
    made.queue.nominator.add(preemptor, "n0")
    for priority in (5, 6):
        info = popped(made, pod(f"p{priority}", cpu="3", priority=priority))
        info.unschedulable_plugins = {"NodeResourcesFit"}
        made.queue.add_unschedulable(info, now=0.0)
    return nominated, lambda priority: f"default/p{priority}" in made.queue.unschedulable


def test_a_pod_that_is_placed_elsewhere_leaves_its_nominated_node_to_pods_of_no_higher_priority() -> None:
    made = scheduler(nodes=2)
    preemptor = pod("preemptor", cpu="3", priority=5)
    info, is_waiting = nominated_to_n0(made, preemptor)
    made.cache.add(pod("taken", cpu="3", node_name="n0"))
    decision = made.decide(info)
    assert isinstance(decision, ScheduleResult)
    assert decision.node_name == "n1"
    made.cache.remove("uid-of-default/taken")
    assert (is_waiting(5), is_waiting(6)) == (True, True)
    made.assume_and_reserve(preemptor, decision, now=0.0)
    assert (is_waiting(5), is_waiting(6)) == (False, True)


def test_a_nomination_that_only_the_queue_knew_ends_for_pods_of_no_higher_priority() -> None:
    made = scheduler(nodes=1)
    preemptor = pod("preemptor", cpu="3", priority=5)
    info, is_waiting = nominated_to_n0(made, preemptor)
    failed = SchedulingFailure(unschedulable("no"), nominated_node_name="")
    made.requeue(info, failed, preemptor, now=0.0)
    assert (is_waiting(5), is_waiting(6)) == (False, True)


@pytest.mark.parametrize("shown", ["n0", ""])
def test_a_nomination_that_was_cleared_during_the_attempt_is_not_kept(shown: str) -> None:
    made = scheduler(nodes=1)
    preemptor = pod("preemptor", cpu="3", priority=5, nominated_node_name="n0")
    info, is_waiting = nominated_to_n0(made, preemptor)
    newest = pod("preemptor", cpu="3", priority=5, nominated_node_name=shown)
    made.requeue(info, SchedulingFailure(failure("broken"), nominated_node_name=None), newest, now=0.0)
    assert made.queue.nominator.node_of(preemptor.uid) == (shown or None)
    assert (is_waiting(5), is_waiting(6)) == (bool(shown), True)


def test_a_search_for_enough_nodes_starts_where_the_last_one_ended() -> None:
    made = scheduler(OneByOne, nodes=300, percentage=40)
    asked = made.profiles["default-scheduler"].plugins["OneByOne"].asked
    made.decide(popped(made, pod("p")))
    assert (asked[0], asked[-1], len(asked)) == ("n0", "n119", 120)
    asked.clear()
    made.decide(popped(made, pod("q")))
    assert (asked[0], asked[-1], len(asked)) == ("n120", "n239", 120)


def test_pods_of_an_unknown_profile_have_no_signature() -> None:
    made = scheduler()
    assert made.signatures.sign(pod(scheduler_name="other")) is None
    assert made.signatures.sign(pod()) is not None


class Signs(PluginBase):
    """Signs pods as the test sets it."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def filter_node(self) -> None:
        return None

    @hookimpl
    def sign(self, pod: Pod) -> Any:
        if pod.name == "raises":
            raise LookupError("no pen")
        return ["a list"] if pod.name == "unhashable" else pod.name


@pytest.mark.parametrize(
    ("name", "problem"),
    [("raises", "sign raised LookupError: no pen"), ("unhashable", "sign returned list, which is not hashable")],
)
def test_a_pod_whose_sign_fails_is_scheduled_without_the_cache(name: str, problem: str) -> None:
    engine = scheduler(Signs)

    signature = engine.signatures.sign(pod(name))
    decision = engine.decide(QueuedPodInfo(pod(name), 0.0, signature=signature))

    assert signature is None
    assert isinstance(decision, ScheduleResult)
    (reported,) = engine.plugin_failures.drain()
    assert reported.pod == f"default/{name}"
    assert reported.failed.problem.startswith(problem)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ((1, 36), [{"n0": ["g0"], "n1": ["low"]}] * 3),
        (
            (1, 37),
            [
                {"n0": ["g0"], "n1": ["low"], "n2": ["g1"]},
                {"n0": ["g0", "g1"], "n1": ["low"], "n2": ["g0", "g1"]},
                {"n1": ["low"]},
            ],
        ),
    ],
)
def test_what_is_kept_of_dry_runs_is_not_used_where_groups_have_pods(
    version: tuple[int, int], expected: list[dict[str, list[str]]]
) -> None:
    made = scheduler(nodes=3)
    made.behaviour = behaviour_at(version)
    made.object_cache.add_kind("PodGroup")
    for one in (
        pod("g0", cpu="3", node_name="n0", group="group"),
        pod("low", cpu="3", node_name="n1"),
        pod("g1", cpu="3", priority=10, node_name="n2", group="group"),
    ):
        made.cache.add(one)
    waiting, budgets, found = pod("waiting", cpu="3", priority=5), budgets_of(()), []
    for changed in (
        pod_group("group", disruption_mode="Pod"),
        pod_group("group", disruption_mode="PodGroup"),
        pod_group("group", disruption_mode="PodGroup", priority=5),
    ):
        made.object_cache.put("PodGroup", "group", "default", changed)
        failed = made.try_pod(waiting)
        assert isinstance(failed, SchedulingFailure)
        assert failed.state is not None
        tried = made.dry_run_preemption(waiting, failed.state, ["n0", "n1", "n2"], 3, budgets)
        found.append({name: [one.name for one in victims.pods] for name, victims in tried.candidates.items()})
    assert found == expected


def test_where_nobody_watches_groups_their_pods_are_evicted_one_by_one() -> None:
    made = scheduler(nodes=2)
    made.behaviour = behaviour_at((1, 37))
    for name in ("n0", "n1"):
        made.cache.add(pod(f"on-{name}", cpu="3", node_name=name, group="group"))
    waiting = pod("waiting", cpu="3", priority=5)
    failed = made.try_pod(waiting)
    assert isinstance(failed, SchedulingFailure)
    assert failed.state is not None
    tried = made.dry_run_preemption(waiting, failed.state, ["n0", "n1"], 2, budgets_of(()))
    assert [len(victims.pods) for victims in tried.candidates.values()] == [1, 1]
