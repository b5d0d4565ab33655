"""Plugins with one fault each, which the conformance checks must find; and what their texts must say."""

import datetime
import os
import random
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Hashable, Iterable
from datetime import date
from pathlib import Path
from time import monotonic, sleep, thread_time
from typing import Any, ClassVar, Final

import msgspec
import numpy as np
import trio
import trio.lowlevel

from trio_sched.plugin_api import (
    SKIP,
    Action,
    Change,
    Clause,
    CycleState,
    Domain,
    EventRegistration,
    Handle,
    Hint,
    Input,
    Int64Array,
    NodeColumns,
    NodeView,
    PlacementProgress,
    Pod,
    PodSelector,
    PreFilterResult,
    Resource,
    Status,
    Verdicts,
    Wait,
    edit_node,
    edit_pod,
    hookimpl,
    on,
    replace_fields,
    unschedulable,
)

TEAM = "example.com/team"
FAULTS: list[tuple[type[Any], str, str]] = []
"""Plugin, the check that must find it, and a part of the text."""


def fault(check: str, text: str) -> Callable[[type[Any]], type[Any]]:
    def add(plugin: type[Any]) -> type[Any]:
        plugin.name = "Faulty"
        FAULTS.append((plugin, check, text))
        return plugin

    return add


class Base:
    def __init__(self, args: Any, handle: Handle) -> None:
        self.handle = handle


class Cached(Base):
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return ()


# --- mutation -------------------------------------------------------------------------------------------------------


@fault("mutation", "filter wrote to the columns requested")
class WritesToColumns(Base):
    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        column = nodes.requested
        column.flags.writeable = True
        column[0] += 1
        return Verdicts.where(np.ones(len(nodes), dtype=np.bool_), unschedulable())


@fault("mutation", "score_node changed node 'node-0', which everybody shares: metadata.labels.seen: nothing")
class LabelsNodes(Base):
    @hookimpl
    def score_node(self, node: NodeView) -> int:
        node.node.labels["seen"] = "yes"
        return 1


@fault("mutation", "changed pod 'default/small'")
class LabelsPods(Base):
    @hookimpl
    def reserve(self, pod: Pod) -> Status | None:
        if pod.metadata.labels:
            pod.metadata.labels["reserved"] = "yes"
        return None


@fault("mutation", "one of its hooks changed pod 'default/small'")
class LabelsPodsWhileBinding(Base):
    @hookimpl
    async def post_bind(self, pod: Pod) -> None:
        await trio.sleep(1)
        if pod.metadata.labels:
            pod.metadata.labels["bound"] = "yes"


@fault("mutation", "changed pod 'default/plain', which everybody shares: spec.priority: nothing → 7")
class ForcesFields(Base):
    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        msgspec.structs.force_setattr(pod.spec, "priority", 7)
        return None


@fault("mutation", "score overwrote the array that score had returned before")
class ReusesItsArray(Base):
    def __init__(self, args: Any, handle: Handle) -> None:
        self.array = np.zeros(100, dtype=np.int64)

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns) -> Int64Array:
        self.array[: len(nodes)] = len(pod.name)
        return self.array[: len(nodes)]


@fault("mutation", "pre_filter changed a value of another plugin in the CycleState")
class WritesToTheStateOfOthers(Base):
    @hookimpl
    def pre_filter(self, state: CycleState) -> PreFilterResult | None:
        for key in state.keys():  # noqa: SIM118  # a CycleState is no dict
            state.write(key, None)
        return None


@fault("mutation", "changed skip_filter, skip_score or zero_scores")
class SkipsOthers(Base):
    @hookimpl
    def pre_filter(self, state: CycleState) -> Status | None:
        state.skip_filter |= {"NodeResourcesFit"}
        return SKIP


# --- answers --------------------------------------------------------------------------------------------------------


@fault("subsets", "filter says something else about")
class JudgesByPosition(Base):
    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(np.arange(len(nodes)) > 0, unschedulable("the first"))


@fault("answers", "score returned")
class ScoresInFloats(Base):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Any:
        return np.ones(len(nodes)) / 2


@fault("answers", "filter returned")
class ReturnsTooFewCodes(Base):
    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(np.ones(1, dtype=np.bool_), unschedulable())


@fault("answers", "[0, 100]")
class ScoresTooHigh(Base):
    @hookimpl
    def score_node(self) -> int:
        return 1000


@fault("hooks", "permit returned")
class PermitsWithTrue(Base):
    @hookimpl
    def permit(self) -> Any:
        return True


@fault("hooks", "placement_feasible returned bool; return None, not_yet(")
class SaysWhetherAPlacementIsFeasibleByABool(Base):
    @hookimpl
    def placement_feasible(self, progress: PlacementProgress) -> Any:
        return progress.scheduled > 0


@fault("answers", "kind 'Namespace' is not watched")
class ReadsWhatIsNotWatched(Base):
    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return None if self.handle.object("Namespace", pod.namespace) else unschedulable("no namespace")


@fault("hooks", "reserve raised KeyError")
class FailsInReserve(Base):
    @hookimpl
    def reserve(self, pod: Pod) -> Status | None:
        return None if pod.labels["missing"] else unschedulable()


# --- blocking -------------------------------------------------------------------------------------------------------


@fault("blocking", "filter_node sleeps (faulty_plugins.py:")
class Sleeps(Base):
    @hookimpl
    def filter_node(self) -> Status | None:
        time.sleep(0.3)
        return None


@fault("blocking", "score_node sleeps (faulty_plugins.py:")
class SleepsByName(Base):
    @hookimpl
    def score_node(self) -> int:
        sleep(0.3)
        return 1


@fault("blocking", "pre_bind sleeps (faulty_plugins.py:")
class SleepsInAsync(Base):
    @hookimpl
    async def pre_bind(self) -> Status | None:
        await trio.sleep(1)
        time.sleep(0.3)  # noqa: ASYNC251  # the fault
        return None


@fault("blocking", "pre_filter opens a connection (faulty_plugins.py:")
class Connects(Base):
    @hookimpl
    def pre_filter(self) -> Status | None:
        with socket.socket() as one:
            one.settimeout(0.001)
            one.connect_ex(("127.0.0.1", 9))
        return None


@fault("blocking", "pre_score starts a process (faulty_plugins.py:")
class StartsProcesses(Base):
    @hookimpl
    def pre_score(self, pod: Pod) -> Status | None:
        if pod.name == "plain":
            subprocess.run(["true"], check=True)
        return None

    @hookimpl
    def score_node(self) -> int:
        return 1


@fault("blocking", "pre_enqueue waits")
class WaitsForALock(Base):
    @hookimpl
    def pre_enqueue(self) -> Status | None:
        threading.Event().wait(0.02)
        return None


# --- hidden state ---------------------------------------------------------------------------------------------------


@fault("hidden_state", "take handle.now()")
class LooksAtTheTime(Base):
    @hookimpl
    def filter_node(self) -> Status | None:
        return unschedulable("at night") if time.localtime().tm_hour < 6 else None


@fault("hidden_state", "take handle.now()")
class LooksAtTheDay(Base):
    @hookimpl
    def filter_node(self) -> Status | None:
        return unschedulable("on Sundays") if date.today().weekday() == 6 else None


@fault("hidden_state", "take handle.now()")
class LooksAtTheHour(Base):
    @hookimpl
    def score_node(self) -> int:
        return datetime.datetime.now(datetime.UTC).hour


@fault("hidden_state", "take handle.now()")
class LooksAtAClock(Base):
    @hookimpl
    def pre_enqueue(self) -> Status | None:
        return unschedulable("odd") if int(monotonic()) % 2 else None


@fault("hidden_state", "take handle.rng")
class ThrowsDice(Base):
    @hookimpl
    def score_node(self) -> int:
        return random.randint(0, 100)


@fault("hidden_state", "take handle.rng")
class ThrowsDiceOfNumpy(Base):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.random.randint(0, 100, len(nodes))


@fault("hidden_state", "asked again, the same instance answers otherwise")
class Counts(Base):
    def __init__(self, args: Any, handle: Handle) -> None:
        self.calls = 0

    @hookimpl
    def pre_score(self) -> Status | None:
        self.calls += 1
        return None

    @hookimpl
    def score_node(self) -> int:
        return self.calls % 7


@fault("hidden_state", "another instance of the plugin answers otherwise")
class CountsInstances(Base):
    made: ClassVar[int] = 0

    def __init__(self, args: Any, handle: Handle) -> None:
        type(self).made += 1
        self.number = self.made

    @hookimpl
    def score_node(self) -> int:
        return self.number % 2


@fault("hidden_state", "asked again, the same instance answers otherwise")
class KeepsThePodBefore(Base):
    last = ""

    @hookimpl
    def filter_node(self, pod: Pod) -> Status | None:
        was, self.last = self.last, pod.name
        return unschedulable("twice") if was > pod.name else None


@fault("hidden_state", "another instance of the plugin answers otherwise")
class LooksAtIdentities(Base):
    @hookimpl
    def score_node(self, node: NodeView) -> int:
        return id(node.node) // 16 % 100


# --- signatures and caches ------------------------------------------------------------------------------------------


@fault("signatures", "have one signature but get different results")
class HidesThePriority(Cached):
    @hookimpl
    def filter_node(self, pod: Pod) -> Status | None:
        return unschedulable("important pods only") if not pod.priority else None


@fault("caching", "sign gives it the signature")
class HidesALabel(Cached):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        return None if pod.labels.get(TEAM) == node.labels.get(TEAM) else unschedulable("another team")


@fault("dependencies", "depends_on needs Input.PODS")
class HidesThePods(Cached):
    @hookimpl
    def score_node(self, node: NodeView) -> int:
        return len(node.pods)


@fault("caching", "depends_on needs")
class HidesSomePods(Cached):
    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("has one") if any(TEAM in pod.labels for pod in node.pods) else None


@fault("dependencies", "depends_on needs Input.NODE")
class HidesTheNode(Cached):
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.PODS})

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("slow") if node.labels.get("disk") == "hdd" else None


@fault("dependencies", "depends_on needs Input.NODE or Input.AMOUNTS")
class HidesTheAmounts(Cached):
    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.PODS})

    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.minimum(nodes.allocatable[0] // 1000, 100)


@fault("dependencies", "depends_on needs Input.ALL_NODES")
class HidesTheOtherNodes(Cached):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.full(len(nodes), min(nodes.total_nodes, 100))


ZONE: Final = "topology.kubernetes.io/zone"
EVERY_POD: Final = PodSelector(())


class ByZone(Cached):
    depends_on: ClassVar[frozenset[Domain]] = frozenset({Domain(ZONE)})


@fault("dependencies", "change with nodes that have not the same 'topology.kubernetes.io/zone'")
class LooksBeyondItsZone(ByZone):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        in_zone = nodes.domain_counts(EVERY_POD, ZONE).counts
        return np.minimum(100 + in_zone[nodes.label_values(ZONE)] - int(in_zone.max(initial=0)), 100)


@fault("caching", "let pre_filter and pre_score store nothing that depends on nodes")
class CountsZonesOnce(ByZone):
    @hookimpl
    def pre_score(self, nodes: NodeColumns, state: CycleState) -> None:
        state.write("zones", nodes.domain_counts(EVERY_POD, ZONE).counts.copy())

    @hookimpl
    def score(self, nodes: NodeColumns, state: CycleState) -> Int64Array:
        in_zone: Int64Array = state.read("zones")
        return in_zone[nodes.label_values(ZONE)]


@fault("dependencies", "depends_on needs Input.PODS")
class HidesTheZone(Cached):
    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return nodes.domain_counts(EVERY_POD, ZONE).counts[nodes.label_values(ZONE)]


# --- events ---------------------------------------------------------------------------------------------------------


class Registering(Base):
    events: ClassVar[list[EventRegistration]] = []

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return self.events


@fault("events", "add on(Resource.NODE, Action.UPDATE_NODE_LABEL) to what events_to_register returns")
class ForgetsLabelsOfNodes(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD)]

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get(TEAM) == "green" else unschedulable("another team")


@fault("events", "add on(Resource.NODE, Action.ADD) to what events_to_register returns")
class ForgetsNewNodes(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.UPDATE_NODE_LABEL)]

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get("disk") == "ssd" else unschedulable("slow")


@fault("events", "add on(Resource.NODE, Action.UPDATE_NODE_TAINT) to what events_to_register returns")
class ForgetsTaints(Registering):
    events: ClassVar[list[EventRegistration]] = []

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(~nodes.unschedulable, unschedulable("cordoned"))


@fault("events", "on(Resource.NODE, Action.UPDATE_NODE_ANNOTATION)")
class ForgetsAnnotations(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        window = (node.node.metadata.annotations or {}).get("example.com/maintenance")
        return None if window == "over" else unschedulable("in maintenance")


@fault("events", "on(Resource.NODE, Action.UPDATE_NODE_CONDITION)")
class ForgetsConditions(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        found = {one.type: one.status for one in node.node.status.conditions or ()}
        return None if found.get("GpuHealthy") == "True" else unschedulable("no healthy GPU")


@fault("events", "on(Resource.NODE, Action.UPDATE_NODE_ALLOCATABLE)")
class ForgetsAmounts(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD)]

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(nodes.allocatable[1] >= 20 << 30, unschedulable("small"))


@fault("events", "add on(Resource.ASSIGNED_POD, Action.DELETE) to what events_to_register returns")
class ForgetsDeletedPods(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD)]

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(nodes.pod_count < 1, unschedulable("taken"))


@fault("events", "on(Resource.ASSIGNED_POD, Action.ADD)")
class ForgetsNewPods(Registering):
    """Wants to be beside another pod."""

    events: ClassVar[list[EventRegistration]] = [on(Resource.NODE, Action.ADD)]

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        return Verdicts.where(nodes.pod_count > 0, unschedulable("lonely"))


@fault("events", "on(Resource.TARGET_POD, Action.UPDATE_POD_LABEL)")
class ForgetsTheLabelsOfThePod(Registering):
    events: ClassVar[list[EventRegistration]] = []

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "example.com/approved" in pod.labels else unschedulable("not approved")


@fault("events", "add on(Resource.TARGET_POD, Action.UPDATE_POD_ANNOTATION) to what")
class ForgetsTheAnnotationsOfThePod(Registering):
    events: ClassVar[list[EventRegistration]] = [on(Resource.UNSCHEDULABLE_POD, Action.UPDATE_POD_LABEL)]

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return None if "example.com/approved" in pod.annotations else unschedulable("not approved")


@fault("events", "is registered, but its hint function returned SKIP for this change")
class HintsWrongly(Registering):
    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._is_useful)]

    def _is_useful(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if old is None else Hint.SKIP  # forgets that labels change

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get(TEAM) == "green" else unschedulable("another team")


@fault("events", "hint raised AttributeError")
class HintsFail(Registering):
    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._is_useful)]

    def _is_useful(self, pod: Pod, old: Any, new: Any) -> Hint:
        return Hint.QUEUE if old.labels != new.labels else Hint.SKIP  # forgets that there may be no old one

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get(TEAM) == "green" else unschedulable("another team")


@fault("events", "node_local=True rules it out")
class IsNotLocal(Registering):
    """Looks at all nodes, but says that only the node of a deleted pod matters."""

    events: ClassVar[list[EventRegistration]] = [
        on(Resource.NODE, Action.ALL),
        on(Resource.ASSIGNED_POD, Action.ALL & ~Action.DELETE),
        on(Resource.ASSIGNED_POD, Action.DELETE, node_local=True),
    ]

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        everywhere = int(self.handle.nodes.pod_count.sum())
        wanted = ~nodes.unschedulable & (nodes.pod_count == 0) & (everywhere < 2)
        return Verdicts.where(wanted, unschedulable("crowded"))


@fault("events", "on('Namespace', Action.UPDATE)")
class ForgetsNamespaces(Registering):
    watches: ClassVar[tuple[str, ...]] = ("Namespace",)
    events: ClassVar[list[EventRegistration]] = [on("Namespace", Action.ADD)]

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        found = self.handle.object("Namespace", pod.namespace)
        open_ = found is not None and (found.metadata.labels or {}).get("example.com/open") == "yes"
        return None if open_ else unschedulable("closed")


@fault("events", "on('widgets.v1.example.com', Action.UPDATE)")
class ForgetsCustomResources(Registering):
    watches: ClassVar[tuple[str, ...]] = ("widgets.v1.example.com",)

    @hookimpl
    def permit(self) -> Status | Wait | None:
        free = [one for one in self.handle.objects("widgets.v1.example.com") if one.spec["free"] > 0]
        return None if free else unschedulable("no widget is free")


@fault("events", "its hint function returned SKIP for this change")
class WaitsForNewNodesOnly(Registering):
    """A label of the node matters only to pods with a label, which none of the examples has."""

    events: ClassVar[list[EventRegistration]] = [
        on(Resource.NODE, Action.ADD),
        on(Resource.NODE, Action.UPDATE_NODE_LABEL, Hint.SKIP),
        on(Resource.POD, Action.UPDATE_POD_LABEL),
    ]

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        wanted = pod.labels.get("example.com/rack")
        return unschedulable("rack") if wanted and node.labels.get("example.com/rack") != wanted else None


@fault("signatures", "with another container, but gets a different result")
class HidesContainers(Cached):
    @hookimpl
    def score_node(self, pod: Pod) -> int:
        return len((pod.spec.containers or ())[0].name)


@fault("signatures", "sign returns another value each time")
class SignsWithChance(Cached):
    @hookimpl
    def sign(self, pod: Pod) -> Hashable:
        return object()

    @hookimpl
    def score_node(self) -> int:
        return 1


@fault("undone", "after reserve and unreserve, pod 'small' gets a different result")
class KeepsReservations(Base):
    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self.reserved: set[str] = set()

    @hookimpl
    def reserve(self, node_name: str) -> None:
        self.reserved.add(node_name)

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return unschedulable("reserved") if node.name in self.reserved else None


@fault("undone", "remove_pod on a clone of the state changes what filter says with the original")
class CountsInside(Base):
    """A list in a dict is shared by the copies of the dict."""

    @hookimpl
    def pre_filter(self, nodes: NodeColumns, state: CycleState) -> None:
        state.write("counted", {"pods": [int(nodes.pod_count.sum())]})

    @hookimpl
    def remove_pod(self, state: CycleState) -> None:
        state.read("counted")["pods"][0] -= 1

    @hookimpl
    def filter_node(self, state: CycleState) -> Status | None:
        return unschedulable("full") if state.read("counted")["pods"][0] > 3 else None


@fault("blocking", "score_node opens a file (faulty_plugins.py:")
class ReadsFiles(Base):
    @hookimpl
    def score_node(self) -> int:
        return len(Path(__file__).read_text()) % 100


@fault("blocking", "permit lists a folder (faulty_plugins.py:")
class ListsFolders(Base):
    @hookimpl
    def permit(self) -> None:
        os.listdir()


@fault("blocking", "post_bind computes for")
class ComputesWhileAsync(Base):
    @hookimpl
    async def post_bind(self) -> None:
        began = thread_time()
        while thread_time() - began < 0.11:
            pass


@fault("blocking", "in each node, and nothing else runs meanwhile")
class ComputesForEachNode(Base):
    @hookimpl
    def score_node(self) -> int:
        began = thread_time()
        while thread_time() - began < 0.011:
            pass
        return 1


# --- assumed pods ---------------------------------------------------------------------------------------------------


class PodCounts:
    """Pods with a label, by node."""

    def __init__(self, array: Int64Array) -> None:
        self.array = array


class SharesItsArray(PodCounts):
    def clone(self) -> "SharesItsArray":
        return SharesItsArray(self.array)


class CopiesItsArray(PodCounts):
    def clone(self) -> "CopiesItsArray":
        return CopiesItsArray(self.array.copy())


class OnePerTeam(Base):
    """A node takes one pod with a label."""

    kind: ClassVar[type[PodCounts]] = CopiesItsArray

    @hookimpl
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> None:
        counted = [sum("app" in one.labels for one in node.pods) for node in nodes]
        state.write("counts", self.kind(np.array(counted, dtype=np.int64)))

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return unschedulable("taken") if state.read("counts").array[self.row(node)] > 2 else None

    def row(self, node: NodeView) -> int:
        return self.handle.nodes.names.index(node.name)

    def count(self, other: Pod, node: NodeView, state: CycleState, by: int) -> None:
        if "app" in other.labels:
            state.read("counts").array[self.row(node)] += by


@fault("undone", "add_pod on a clone of the state changes what filter says with the original")
class ClonesWithoutCopying(OnePerTeam):
    kind = SharesItsArray

    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> None:
        self.count(added, node, state, 1)

    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView, state: CycleState) -> None:
        self.count(removed, node, state, -1)


class TakesNoTwo(OnePerTeam):
    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        return unschedulable("taken") if state.read("counts").array[self.row(node)] > 0 else None


@fault("assumed_pods", "but without remove_pod it says Unschedulable: write remove_pod, which changes in the")
class LacksRemovePod(TakesNoTwo):
    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> None:
        self.count(added, node, state, 1)


@fault("assumed_pods", "but without add_pod it says Success: write add_pod, which changes in the state what pre_filter")
class LacksAddPod(TakesNoTwo):
    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView, state: CycleState) -> None:
        self.count(removed, node, state, -1)


@fault("assumed_pods", "but after remove_pod it says Unschedulable: remove_pod must leave in the state what pre_filter")
class AddsTwice(TakesNoTwo):
    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> None:
        self.count(added, node, state, 1)

    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView, state: CycleState) -> None:
        self.count(removed, node, state, 1)


@fault("assumed_pods", "remove_pod raised KeyError")
class FailsWithItsOwnPods(TakesNoTwo):
    @hookimpl
    def add_pod(self, added: Pod, node: NodeView, state: CycleState) -> None:
        self.count(added, node, state, 1)

    @hookimpl
    def remove_pod(self, removed: Pod, node: NodeView, state: CycleState) -> None:
        if removed.labels.get("app") == "db":
            raise KeyError(removed.name)
        self.count(removed, node, state, -1)


# --- coroutines -----------------------------------------------------------------------------------------------------


@fault("unawaited", "patch(…) is never awaited (in reserve, faulty_plugins.py:")
class PatchesWithoutAwait(Base):
    writes: ClassVar = {"Pod": ("patch",)}

    @hookimpl
    def reserve(self, pod: Pod) -> None:
        self.handle.patch("Pod", pod.name, {}, namespace=pod.namespace)  # type: ignore[unused-coroutine]


@fault("unawaited", "sleep(…) is never awaited (in wait_a_bit, faulty_plugins.py:")
class SleepsWithoutAwait(Base):
    @hookimpl
    async def pre_bind(self, pod: Pod) -> None:
        wait_a_bit()
        await trio.lowlevel.checkpoint()


def wait_a_bit() -> None:
    trio.sleep(1)  # type: ignore[unused-coroutine]  # noqa: ASYNC105


# --- hints and activation -------------------------------------------------------------------------------------------


@fault("registrations", "HintsWithOneArgument._hint(pod) cannot be called with the three arguments (pod, old, new)")
class HintsWithOneArgument(Base):
    @hookimpl
    def filter_node(self) -> Status | None:
        return unschedulable("never")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD, self._hint)]  # type: ignore[arg-type]

    def _hint(self, pod: Pod) -> Hint:
        return Hint.QUEUE


@fault("events", "activate each other endlessly: after one change (")
class ActivateEachOther(Base):
    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        self.handle.activate([one.pod for one in self.handle.pending_pods() if one.pod.uid != pod.uid])
        return unschedulable("after you")


# --- clauses --------------------------------------------------------------------------------------------------------


class WantsAnSsd(Base):
    """Takes nodes with the label disk=ssd only."""

    @hookimpl
    def filter_node(self, node: NodeView) -> Status | None:
        return None if node.labels.get("disk") == "ssd" else unschedulable("no SSD")

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)]

    def ssd(self, nodes: NodeColumns, *changes: Change) -> Clause:
        fails = np.array([node.labels.get("disk") != "ssd" for node in nodes], dtype=np.bool_)
        return Clause(reason="NoSsd", title="SSD", fails=fails, changes=lambda _nodes: changes)


@fault("clauses", "the clause 'SSD' fails on 'node-1', which the plugin does not reject")
class NamesAClauseWhereItPasses(WantsAnSsd):
    @hookimpl
    def clauses(self, nodes: NodeColumns) -> Iterable[Clause]:
        return [Clause(reason="NoSsd", title="SSD")]


@fault("clauses", "the change 'cordon' of the clause 'SSD' does not meet it: NoSsd is said of the same nodes")
class NamesAChangeThatDoesNotHelp(WantsAnSsd):
    @hookimpl
    def clauses(self, nodes: NodeColumns) -> Iterable[Clause]:
        edit = edit_node(
            nodes.name(0), lambda node: replace_fields(node, spec=replace_fields(node.spec, unschedulable=True))
        )
        return [self.ssd(nodes, Change(title="cordon", edits=(edit,)))]


@fault("clauses", "writes to the Pod ")
class EditsThePodItself(WantsAnSsd):
    @hookimpl
    def clauses(self, pod: Pod, nodes: NodeColumns) -> Iterable[Clause]:
        def apply(one: Pod) -> Pod:
            one.metadata.labels["disk"] = "ssd"
            return one

        return [self.ssd(nodes, Change(title="label", edits=(edit_pod(pod, apply),)))]
