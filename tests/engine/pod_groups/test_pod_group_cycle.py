"""One attempt of a pod group: later pods see earlier ones, and at the end nothing is assumed any more."""

from collections.abc import Iterable
from random import Random
from typing import Any

import trio
from gangs import member

from trio_sched.daemon.pod_groups.pod_group_steps import run_group_steps
from trio_sched.engine.cache import Cache
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.pod_groups.group_steps import in_order
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult
from trio_sched.engine.pod_groups.pod_group_trial import PodGroupTrial
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm
from trio_sched.objects.selector import LabelSelector
from trio_sched.plugin_api import (
    Code,
    CycleState,
    Handle,
    Node,
    Placement,
    PlacementProgress,
    Pod,
    PodGroupInfo,
    Status,
    Wait,
    failure,
    hookimpl,
    not_yet,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import behaviour_at
from trio_sched.testing import FakeHandle, make_profile, node, pod


class Recorder:
    """Reserves and permits as it is told, and records."""

    name = "Recorder"
    calls: list[str]
    is_trial: set[bool]
    """What pre_filter has seen."""
    refuse_reserve: frozenset[str] = frozenset()
    permit_answers: dict[str, Any]
    placements: Any = None
    feasible: Any = staticmethod(lambda _progress: None)

    def __init__(self, args: None, handle: Handle) -> None:
        self.calls, self.permit_answers, self.is_trial = [], {}, set()

    @hookimpl
    def pre_filter(self, state: CycleState) -> None:
        self.is_trial.add(state.is_trial)

    @hookimpl
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        self.calls.append(f"reserve {pod.name} {node_name} trial={state.is_trial}")
        return unschedulable("not today") if pod.name in self.refuse_reserve else None

    @hookimpl
    def unreserve(self, pod: Pod, node_name: str) -> None:
        self.calls.append(f"unreserve {pod.name} {node_name}")

    @hookimpl
    def permit(self, pod: Pod) -> Status | Wait | None:
        return self.permit_answers.get(pod.name)

    @hookimpl
    def placement_generate(self) -> Any:
        return self.placements

    @hookimpl
    def placement_feasible(self, progress: PlacementProgress) -> Status | None:
        self.calls.append(f"feasible? {progress.scheduled} + {progress.remaining}")
        return self.feasible(progress)


class Case:
    """A cluster, a group, and its attempts."""

    def __init__(
        self,
        nodes: Iterable[Node],
        members: Iterable[Pod],
        running: Iterable[Pod] = (),
        version: tuple[int, int] = (1, 36),
    ) -> None:
        self.groups = PodGroupStates()
        cache = Cache(groups=self.groups)
        for one in nodes:
            cache.add_node(one)
        for other in running:
            cache.add(other)
        pods = {one.key: one for one in members}
        queue = SchedulingQueue(get_unassigned_pod=pods.get, groups_skip_hints=True)
        self.scheduler = Scheduler(cache=cache, queue=queue, rng=Random(0), behaviour=behaviour_at(version))
        self.profile = make_profile(
            ["PrioritySort", "NodeResourcesFit", "InterPodAffinity", Recorder], handle=FakeHandle()
        )
        self.recorder: Recorder = self.profile.plugins["Recorder"]
        self.scheduler.install_profiles({"default-scheduler": self.profile})
        for one in pods.values():
            self.groups.add(one)
        self.infos = in_order(QueuedPodInfo(one, 0.0) for one in pods.values())
        self.by_placement = self.tries_all = False

    @property
    def cycle(self) -> PodGroupCycle:
        pods = tuple(info.pod for info in self.infos)
        return PodGroupCycle(
            scheduler=self.scheduler,
            profile=self.profile,
            infos=self.infos,
            group=PodGroupInfo("default", "g", pods),
            by_placement=self.by_placement,
            tries_all=self.tries_all,
        )

    def run(self) -> GroupResult:
        before = self.state()
        result: GroupResult = trio.run(run_group_steps, self.cycle.run())
        assert self.state() == before
        return result

    def state(self) -> Any:
        cache = self.scheduler.cache
        (group,) = self.groups
        views = cache.table.views
        nominated = {node: list(pods) for node, pods in self.scheduler.queue.nominator.nodes.items()}
        sets = (set(group.unscheduled), dict(group.assumed), dict(group.assigned))
        return views.requested.tolist(), cache.assumed_count, sets, nominated, dict(cache.table.unlisted_pods)


def members(count: int, **fields: Any) -> list[Pod]:
    return [member(f"p{number}", "g", **{"cpu": "1", **fields}) for number in range(count)]


def nodes_of(result: GroupResult) -> list[str]:
    return ["" if one.placed is None else one.placed.node_name for one in result.pods]


def test_later_pods_see_those_before_them_and_all_are_reverted_in_reverse_order() -> None:
    case = Case([node("a", cpu="1"), node("b", cpu="1")], members(3))
    result = case.run()
    assert result.status is None
    assert sorted(nodes_of(result)) == ["", "a", "b"]
    first, second = (name for name in nodes_of(result) if name)
    assert case.recorder.calls == [
        f"reserve p0 {first} trial=True",
        f"reserve p1 {second} trial=True",
        f"unreserve p1 {second}",
        f"unreserve p0 {first}",
    ]
    assert case.recorder.is_trial == {True}
    assert not any(one.placed.state.is_trial for one in result.pods if one.placed is not None)
    case.scheduler.decide(case.infos[0])
    assert case.recorder.is_trial == {True, False}


def test_the_group_is_schedulable_when_permit_says_so_for_any_pod() -> None:
    case = Case([node("a", cpu="4")], members(3))
    case.recorder.permit_answers = {"p0": Wait(1.0), "p1": Wait(1.0), "p2": Wait(1.0, "not yet")}
    refused = case.run()
    assert refused.status is not None
    assert refused.status.message == "pod group is unschedulable"
    assert refused.pods[2].permit_message.startswith("not yet, one or more plugins asked to wait")
    del case.recorder.permit_answers["p1"]
    assert case.run().status is None


def test_a_pod_that_reserve_or_permit_rejects_is_left_out() -> None:
    case = Case([node("a", cpu="4")], members(3))
    case.recorder.refuse_reserve = frozenset({"p0"})
    case.recorder.permit_answers = {"p1": unschedulable("no")}
    result = case.run()
    assert nodes_of(result) == ["", "", "a"]
    assert [one.failed.message for one in result.pods if one.failed is not None] == [
        "0/1 nodes are available: 1 not today.",
        "0/1 nodes are available: 1 no.",
    ]


def test_an_error_ends_the_attempt_for_the_whole_group() -> None:
    case = Case([node("a", cpu="4")], members(3))
    case.recorder.permit_answers = {"p1": failure("broken")}
    result = case.run()
    assert result.is_error
    assert len(result.pods) == 2
    assert result.status is not None
    assert result.status.message.startswith("failed to schedule other pod from a pod group: ")


def enough(count: int) -> Any:
    """What a plugin says that needs *count* pods."""

    def feasible(progress: PlacementProgress) -> Status | None:
        if progress.scheduled + progress.remaining < count:
            return unschedulable("too few")
        return not_yet("more are needed") if progress.scheduled < count else None

    return feasible


def test_from_1_37_on_an_attempt_ends_when_it_cannot_succeed_any_more() -> None:
    case = Case([node("a", cpu="1")], members(4), version=(1, 37))
    case.recorder.feasible = enough(3)
    result = case.run()
    assert result.status is not None
    assert result.status.message == "pod group is unschedulable, too few"
    assert nodes_of(result) == ["a", "", ""]
    asked = [call for call in case.recorder.calls if call.startswith("feasible?")]
    assert asked == ["feasible? 0 + 4", "feasible? 1 + 3", "feasible? 1 + 2", "feasible? 1 + 1"]
    case.tries_all = True
    tried = case.run()
    assert str(tried.status) == str(result.status)
    assert nodes_of(tried) == ["a", "", "", ""]
    case.tries_all = False
    case.recorder.feasible = enough(5)
    assert case.run().pods == []
    case.recorder.feasible = enough(1)
    assert case.run().status is None


def test_from_1_37_on_permit_does_not_decide_about_the_group_and_pods_with_a_node_count() -> None:
    running = [member(f"r{number}", "g", cpu="0", node_name="a") for number in range(2)]
    case = Case([node("a", cpu="2")], members(2), running, version=(1, 37))
    case.recorder.permit_answers = {"p0": unschedulable("no"), "p1": Wait(1.0)}
    case.recorder.feasible = enough(4)
    assert case.run().status is None
    assert case.recorder.calls[0] == "feasible? 2 + 2"


def test_from_1_37_on_what_is_not_enough_at_the_end_is_not_scheduled() -> None:
    case = Case([node("a", cpu="1")], members(2), version=(1, 37))
    case.recorder.feasible = lambda _progress: not_yet("wait for the others")
    result = case.run()
    assert result.status is not None
    assert result.status.message == "pod group is unschedulable, wait for the others"
    full = Case([node("a", cpu="0")], members(2), version=(1, 37))
    refused = full.run()  # the plugin has nothing against it, but no pod fits
    assert refused.status is not None
    assert refused.status.message == "pod group is unschedulable"


def test_a_plugin_that_fails_to_say_whether_a_placement_is_feasible_fails_the_group() -> None:
    case = Case([node("a", cpu="4")], members(2), version=(1, 37))
    case.recorder.feasible = lambda _progress: Status(Code.PENDING, ("later",))
    result = case.run()
    assert result.is_error
    assert result.status is not None
    assert result.status.message.startswith(
        'failed to evaluate placement feasibility: running PlacementFeasible plugin "Recorder": '
    )
    assert case.scheduler.plugin_failures


def test_nominations_are_as_before_afterwards() -> None:
    case = Case([node("a", cpu="4"), node("b", cpu="4")], members(2))
    case.scheduler.queue.nominator.add(case.infos[0].pod, "b")
    assert nodes_of(case.run())[0] == "b"
    assert case.scheduler.queue.nominator.node_of(case.infos[0].uid) == "b"


def test_the_order_is_by_priority_then_by_first_attempt() -> None:
    infos = [
        QueuedPodInfo(member("late", "g"), 0.0, initial_attempt_timestamp=2.0),
        QueuedPodInfo(member("early", "g"), 0.0, initial_attempt_timestamp=1.0),
        QueuedPodInfo(member("high", "g", priority=5), 0.0, initial_attempt_timestamp=3.0),
    ]
    assert [info.pod.name for info in in_order(infos)] == ["high", "early", "late"]


def test_a_placement_limits_the_nodes_and_the_reasons() -> None:
    case = Case([node(name, cpu="1") for name in "abc"], members(2))
    case.by_placement = True
    case.recorder.placements = [Placement("ab", frozenset("ab"))]
    assert sorted(nodes_of(case.run())) == ["a", "b"]
    case.recorder.placements = [Placement("c", frozenset("c"))]
    failed = case.run().pods[1].failed
    assert failed is not None
    assert failed.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_if_no_placement_fits_the_first_one_is_reported_and_the_best_is_explained() -> None:
    case = Case([node(name, cpu="1") for name in "abc"], members(3))
    case.by_placement = True
    case.recorder.permit_answers = {f"p{number}": Wait(1.0) for number in range(3)}
    case.recorder.placements = [Placement("c", frozenset("c")), Placement("ab", frozenset("ab"))]
    result = case.run()
    assert result.status is not None
    text = "0/2 placements are available, first placement status: pod group is unschedulable"
    assert result.status.message == text
    assert nodes_of(result) == ["c", "", ""]
    assert (result.placement.name, result.fitting) == ("ab", 2)
    assert [(one.name, one.fitting, one.shortage) for one in result.tried] == [
        ("c", 1, "pod default/p1 lacks 1 cpu"),
        ("ab", 2, "pod default/p2 lacks 1 cpu"),
    ]


def test_no_placement_and_wrong_ones_are_told() -> None:
    case = Case([node("a")], members(1))
    case.by_placement = True
    case.recorder.placements = []
    assert case.run().status == unschedulable("no feasible placements found").by("Recorder")
    case.recorder.placements = ["r1"]
    status = case.run().status
    assert status is not None
    assert status.message.startswith("placement_generate returned str among its placements")


def test_affinity_terms_of_the_group_are_seen_where_such_terms_were_before() -> None:
    """As in kube-scheduler: p0 keeps pods with the label off its node only if another pod there has such a term."""
    term = PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "x"}), topology_key="name")
    apart = Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=(term,)))
    two = [member("p0", "g", cpu="1", affinity=apart, priority=1), member("p1", "g", cpu="1", labels={"app": "x"})]
    one_node = [node("a", cpu="4", labels={"name": "a"})]
    assert nodes_of(Case(one_node, two).run()) == ["a", "a"]
    running = pod("running", affinity=apart, node_name="a", namespace="other")
    assert nodes_of(Case(one_node, two, [running]).run()) == ["a", ""]


def test_a_trial_says_whether_the_group_fits_without_some_pods_and_puts_them_back() -> None:
    running = [pod(name, cpu="1", node_name="a") for name in ("x", "y")]
    case = Case([node("a", cpu="2")], members(2), running)
    for number in range(2):
        case.recorder.permit_answers[f"p{number}"] = Wait(1.0)
    del case.recorder.permit_answers["p1"]
    before = case.state()
    with PodGroupTrial(case.cycle) as trial:
        assert sorted(one.name for one, _node_name in trial.assigned_pods) == ["x", "y"]
        assert trial.run() is not None
        trial.remove(running)
        trial.remove(running)
        assert trial.run() is None
        assert trial.node_names == {"a"}
        trial.restore(running[:1])
        assert trial.run() is not None
    assert case.state() == before
