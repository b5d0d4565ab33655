"""Which pods the deletion of another one wakes that NodeResourcesFit has refused."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from plugin_base import PluginBase

from trio_sched.engine.cache import Cache
from trio_sched.engine.evaluation.decision import SchedulingFailure
from trio_sched.engine.queue.cluster_changes import ASSIGNED_POD_DELETE
from trio_sched.engine.queue.queueing_hints import HintTable
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.plugin_api import (
    Action,
    EventRegistration,
    Hint,
    Pod,
    PostFilterResult,
    Resource,
    Verdicts,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import make_profile, node, pod


class Preempts(PluginBase):
    """Stands for DefaultPreemption."""

    @hookimpl
    def post_filter(self) -> PostFilterResult | None:
        return None


class Cluster:
    """Nodes of two cores, and pods that the engine has refused."""

    def __init__(self, *plugins: Any, running: Sequence[Pod]) -> None:
        self.known: dict[str, Pod] = {}
        self.queue = SchedulingQueue(get_unassigned_pod=self.known.get)
        self.cache = Cache()
        self.scheduler = Scheduler(cache=self.cache, queue=self.queue, rng=Random(1))
        profile = make_profile(["PrioritySort", "NodeResourcesFit", *plugins])
        self.scheduler.install_profiles({profile.name: profile})
        for name in ("n", "m"):
            self.cache.add_node(node(name, cpu=2))
        for one in running:
            self.cache.add(one)

    def refuse(self, *pods: Pod) -> None:
        for one in pods:
            self.known[one.key] = one
            self.queue.add(one, now=0.0)
            info = self.queue.pop()
            assert info is not None
            decision = self.scheduler.decide(info)
            assert isinstance(decision, SchedulingFailure)
            self.scheduler.requeue(info, decision, one, now=0.0)

    def delete(self, gone: Pod) -> list[str]:
        """Delete a running pod; the names of those that it wakes."""
        self.cache.remove(gone.uid)
        before = {info.pod.name for info in self.queue.unschedulable.values()}
        self.queue.move_all(ASSIGNED_POD_DELETE, gone, None, now=1.0)
        return sorted(before - {info.pod.name for info in self.queue.unschedulable.values()})


def running(name: str, on_node: str = "n", cpu: Any = 1, **more: Any) -> Pod:
    return pod(name, cpu=cpu, node_name=on_node, **more)


ALL = [running("a"), running("b"), running("c", "m"), running("d", "m")]
"""Both nodes are full."""


def test_only_pods_that_fit_now_are_woken() -> None:
    cluster = Cluster(running=ALL)
    cluster.refuse(pod("small", cpu=1), pod("small-too", cpu=1), pod("large", cpu=2), pod("large-too", cpu=2))
    assert cluster.delete(ALL[0]) == ["small", "small-too"]
    assert cluster.delete(ALL[1]) == ["large", "large-too"]


def test_the_room_of_nominated_pods_is_taken_except_for_themselves() -> None:
    cluster = Cluster(running=ALL)
    cluster.refuse(*(pod(name, cpu=1, priority=5) for name in ("x", "y", "z")), pod("higher", cpu=1, priority=6))
    cluster.queue.nominator.add(cluster.known["default/x"], "n")
    assert cluster.delete(ALL[0]) == ["higher", "x"]


def test_a_nomination_that_ends_leaves_its_room_to_others() -> None:
    cluster = Cluster(running=[ALL[0], *ALL[2:]])
    x = pod("x", cpu=1, priority=5)
    cluster.known[x.key] = x
    cluster.queue.nominator.add(x, "n")
    cluster.refuse(*(pod(name, cpu=1, priority=5) for name in ("y", "z")))
    cluster.queue.nomination_ended(pod("w", cpu=1, priority=5), "n", now=1.0)
    assert len(cluster.queue.unschedulable) == 2  # it is still the room of x
    cluster.queue.nominator.delete(x.uid)
    cluster.queue.nomination_ended(x, "n", now=2.0)
    assert len(cluster.queue.unschedulable) == 0


def test_pods_that_may_preempt_are_woken_where_others_would_have_to_go() -> None:
    less = running("less", cpu=1, priority=-5)
    cluster = Cluster(Preempts, running=[less, *ALL[1:]])
    cluster.refuse(
        pod("grand", cpu=2),
        pod("grand-too", cpu=2),
        pod("modest", cpu=2, preemption_policy="Never"),
        pod("huge", cpu=3),
    )
    assert cluster.delete(ALL[2]) == []  # m: d is as important
    assert cluster.delete(ALL[1]) == ["grand", "grand-too"]
    assert cluster.delete(less) == ["modest"]


def test_without_a_post_filter_nobody_preempts() -> None:
    less = running("less", cpu=1, priority=-5)
    cluster = Cluster(running=[less, *ALL[1:]])
    cluster.refuse(pod("grand", cpu=2), pod("grand-too", cpu=2))
    assert cluster.delete(ALL[1]) == []
    assert cluster.delete(less) == ["grand", "grand-too"]


def test_a_pod_on_a_node_that_is_gone_or_that_this_plugin_ignores_wakes_all_as_before() -> None:
    cluster = Cluster(running=ALL)
    cluster.refuse(pod("large", cpu=2), pod("large-too", cpu=2))
    cluster.cache.remove_node("n")
    assert cluster.delete(ALL[0]) == ["large", "large-too"]


class Waits(PluginBase):
    """Rejects nothing itself; some pods count it among their rejectors all the same."""

    @hookimpl
    def filter(self, pod: Pod, nodes: Any) -> Any:
        passes = np.full(len(nodes), "picky" not in pod.labels)
        return Verdicts.where(passes, unschedulable("no"))

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.POD, Action.DELETE, self._hint)]

    def _hint(self, pod: Pod, _old: Any, _new: Any) -> Hint:
        return Hint.QUEUE if "eager" in pod.labels else Hint.SKIP


def test_hints_of_other_plugins_count() -> None:
    cluster = Cluster(Waits, running=ALL[:2])
    cluster.refuse(
        pod("eager", cpu=2, labels={"picky": "", "eager": ""}),
        pod("lazy", cpu=2, labels={"picky": ""}),
        pod("lazy-too", cpu=2, labels={"picky": ""}),
    )
    assert cluster.delete(ALL[0]) == ["eager"]


def test_a_registration_that_is_never_worth_an_attempt_rules_nothing_in() -> None:
    class Gate(PluginBase):
        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(Resource.POD, Action.DELETE, Hint.SKIP), on(Resource.NODE, Action.ADD, Hint.QUEUE)]

        @hookimpl
        def pre_enqueue(self) -> None:
            return None

    table: HintTable = Cluster(Gate, running=()).queue.profiles["default-scheduler"].hints
    entries = {entry.event.action: entry for entry in table.entries if entry.plugin == "Gate"}
    assert (entries[Action.DELETE].is_never, entries[Action.ADD].is_never) == (True, False)
    assert entries[Action.ADD].hint is None


def test_a_signature_that_cannot_be_hashed_any_more_costs_nothing_but_time() -> None:
    class Odd:
        def __hash__(self) -> int:
            raise RuntimeError("not again")

    cluster = Cluster(running=ALL)
    cluster.refuse(pod("small", cpu=1), pod("large", cpu=2))
    for info in cluster.queue.unschedulable.values():
        assert info.signature is not None
        info.signature = tuple(Odd() for _part in info.signature)
    assert cluster.delete(ALL[0]) == ["small"]
