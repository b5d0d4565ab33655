"""Plugins that keep the contract, in ways that the checks could mistake for faults, are not accused."""

import random
import socket
import time
from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest
import trio

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.plugin_api import (
    Action,
    CycleState,
    Domain,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    NodeColumns,
    NodeView,
    Pod,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    on,
    pending,
    unschedulable,
)
from trio_sched.testing import FakeHandle, NotConforming, check_conformance, conformance_test

TEAM = "example.com/team"
HONEST: list[type[Any]] = []


def honest(plugin: type[Any]) -> type[Any]:
    plugin.name = "Honest"
    HONEST.append(plugin)
    return plugin


class Base:
    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle


@honest
class ChoosesByChance(Base):
    """With the generator of the handle, which tests can seed."""

    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.array([self.handle.rng.randint(0, 100) for _ in range(len(nodes))])

    @hookimpl
    def filter_node(self) -> Status | None:
        return unschedulable("unlucky") if self.handle.rng.random() < 0.3 else None


@honest
class LooksAtTheHandlesClock(Base):
    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        until = (node.node.metadata.annotations or {}).get("example.com/until", "")
        is_over = until.isdecimal() and float(until) < self.handle.wall_seconds()
        return unschedulable("its time is over") if is_over else None

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ANNOTATION)]


@honest
class MeasuresItself(Base):
    """A clock and a counter that no answer follows from."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.seconds, self.calls, self.seed = 0.0, 0, random.random()

    @hookimpl
    def score_node(self, node: NodeView) -> int:
        began = time.perf_counter()
        self.calls += 1
        score = len(node.labels)
        self.seconds += time.perf_counter() - began
        return score


@honest
class KeepsByVersion(Base):
    """What was computed before, for as long as it is right."""

    watches: ClassVar[tuple[str, ...]] = ("widgets.v1.example.com",)

    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle
        self.version, self.free = -1, 0

    @hookimpl
    def pre_filter(self) -> Status | None:
        version = self.handle.version("widgets.v1.example.com")
        if version != self.version:
            self.version = version
            self.free = sum(one.spec["free"] for one in self.handle.objects("widgets.v1.example.com"))
        return None if self.free > 0 else unschedulable("no widget is free")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on("widgets.v1.example.com", Action.ADD | Action.UPDATE, self._is_useful)]

    def _is_useful(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if new.spec["free"] > 0 else Hint.SKIP


@honest
class MatchesTeams(Base):
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.labels.get(TEAM)

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        return None if pod.labels.get(TEAM) == node.labels.get(TEAM) else unschedulable("another team")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._is_useful),
            on(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL),
        ]

    def _is_useful(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if new.labels.get(TEAM) == pod.labels.get(TEAM) else Hint.SKIP


@honest
class AllowsTwoPodsPerNode(Base):
    """A deleted pod matters on its own node only."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.AMOUNTS})

    @hookimpl
    def sign(self) -> Hashable:
        return ()

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(nodes.pod_count < 2, unschedulable("full"))

    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return 2 * nodes.pod_count

    @hookimpl
    def normalize_score(self, scores: Int64Array) -> Int64Array:
        highest = max(1, int(scores.max(initial=0)))
        scores *= 100
        return scores // highest

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [
            on(Resource.NODE, Action.ADD),
            on(Resource.ASSIGNED_POD, Action.DELETE, node_local=True),
        ]


@honest
class RegistersForEverything(Base):
    """As a plugin without events_to_register: its pods move after any event."""

    @hookimpl
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        return pending("later") if node_name.endswith("1") else None

    @hookimpl
    def reserve(self, node_name: str) -> Status | None:
        return unschedulable("reserved") if node_name.endswith("2") else None


@honest
class WorksWhileItBinds(Base):
    """Everything that takes time is awaited, in threads and by trio."""

    @hookimpl
    async def pre_bind(self) -> Status | None:
        await trio.sleep(30)
        await trio.to_thread.run_sync(time.sleep, 0.01)
        await trio.run_process(["true"])
        return None

    @hookimpl
    async def post_bind(self) -> None:
        with trio.move_on_after(1), trio.socket.socket() as one:
            try:
                await one.connect(("127.0.0.1", 9))
            except OSError:
                assert socket.AF_INET


@honest
class ImportsLazily(Base):
    @hookimpl
    def filter_node(self) -> Status | None:
        import colorsys

        return unschedulable("grey") if colorsys.rgb_to_hsv(1, 1, 1)[1] else None


@honest
class NeedsTwoThings(Base):
    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        conditions = {one.type: one.status for one in node.node.status.conditions or ()}
        is_tainted = any(taint.key == "example.com/slow" for taint in node.taints)
        return unschedulable("not now") if is_tainted or conditions.get("GpuHealthy") == "False" else None

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_CONDITION)]


@honest
class WaitsForAnAnnotation(Base):
    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "example.com/approved" in pod.annotations else unschedulable("not approved")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_ANNOTATION)]


class Count:
    """One number is enough where it is an immutable one; the texts are shared, for nobody writes to them."""

    def __init__(self, count: int, texts: list[str]) -> None:
        self.count, self.texts = count, texts

    def clone(self) -> "Count":
        return Count(self.count, self.texts)


@honest
class CountsEverywhere(Base):
    """In the whole cluster: a pod that is assumed on one node counts for all."""

    @hookimpl
    def pre_filter(self, nodes: NodeColumns, state: CycleState) -> None:
        state.write("count", Count(int(nodes.pod_count.sum()), ["too many"]))

    @hookimpl
    def add_pod(self, added: Pod, state: CycleState) -> None:
        state.read("count").count += 1

    @hookimpl
    def remove_pod(self, removed: Pod, state: CycleState) -> None:
        state.read("count").count -= 1

    @hookimpl
    def filter_node(self, state: CycleState) -> Status | None:
        count = state.read("count")
        return unschedulable(*count.texts) if count.count > 8 else None


@honest
class CountsInTheColumns(Base):
    """Neither add_pod nor remove_pod: the columns show who is assumed, the state has nothing about it."""

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> None:
        state.write("limit", 1 + pod.priority // 100)

    @hookimpl
    def filter(self, nodes: NodeColumns, state: CycleState) -> Verdicts:
        return Verdicts.where(nodes.pod_count < state.read("limit"), unschedulable("taken"))


@honest
class AwaitsLater(Base):
    """Coroutines that are awaited elsewhere than where they are made, or closed."""

    @hookimpl
    async def pre_bind(self) -> None:
        first, second = self.wait(1), self.wait(2)
        second.close()
        await first
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.wait, 1)

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)


@honest
class ActivatesOnce(Base):
    """The others, when one pod has a reason to think that they fit; not at every attempt."""

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.count = -1

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns) -> Status | None:
        if len(nodes) != self.count:
            self.count = len(nodes)
            self.handle.activate([one.pod for one in self.handle.pending_pods()])
        return unschedulable("few nodes") if len(nodes) < 5 else None


@honest
class LooksAtItsZone(Base):
    """At all of it, which it declares; what pre_filter stores depends on the pod."""

    depends_on: ClassVar[frozenset[Domain]] = frozenset({Domain("topology.kubernetes.io/zone")})

    @hookimpl
    def pre_filter(self, pod: Pod, state: CycleState) -> None:
        state.write("limit", 4 if pod.priority else 3)

    @hookimpl
    def filter_node(self, node: NodeView, state: CycleState) -> Status | None:
        zone = node.labels.get("topology.kubernetes.io/zone")
        others = [one for one in self.handle.nodes if one.name != node.name]
        shared = [one for one in others if zone and one.labels.get("topology.kubernetes.io/zone") == zone]
        pods = len(node.pods) + sum(len(one.pods) for one in shared)
        return None if pods < state.read("limit") else unschedulable("crowded zone")

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return pod.priority


@honest
class HintsInAnyForm(Base):
    """All of these can be called with three arguments."""

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get(TEAM) == "green" else unschedulable("another team")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [
            on(Resource.NODE, Action.ADD, lambda *_changed: Hint.QUEUE),
            on(Resource.NODE, Action.UPDATE_NODE_LABEL, partial(self._hint, "green")),
        ]

    def _hint(self, team: str, pod: Pod, old: Any, new: Any, more: int = 0) -> Hint:
        return Hint.QUEUE if new.labels.get(TEAM) == team else Hint.SKIP


WIDGETS = [AnyObject(metadata=ObjectMeta(name=f"w{free}"), spec={"free": free}) for free in (0, 3)]


@pytest.mark.parametrize("plugin", HONEST, ids=lambda plugin: plugin.__name__)
def test_it_is_not_accused(plugin: type[Any]) -> None:
    check_conformance(plugin, objects={"widgets.v1.example.com": WIDGETS})


test_one_line_is_enough = conformance_test(MatchesTeams)


def test_an_instance_is_checked_with_its_handle() -> None:
    handle = FakeHandle(known_objects={"widgets.v1.example.com": list(WIDGETS)})
    check_conformance(KeepsByVersion(None, handle), handle=handle)
    with pytest.raises(NotConforming, match="asked again"):
        check_conformance(Forgetful(None, handle), handle=handle)


class Forgetful(Base):
    name: ClassVar[str] = "Forgetful"
    calls = 0

    @hookimpl
    def score_node(self) -> int:
        self.calls += 1
        return self.calls % 3
