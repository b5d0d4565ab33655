"""Plugins that keep the contract, in ways that the checks could mistake for faults, are not accused."""

import random
import socket
import time
from collections.abc import Hashable, Iterable
from typing import Any, ClassVar

import numpy as np
import pytest
import trio

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.plugin_api import (
    Action,
    CycleState,
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
