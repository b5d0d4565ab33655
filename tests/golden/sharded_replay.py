"""Has replicas that share the work schedule the pods of a recording, one after the other, in a cluster of their own.

The cluster is brought to the recorded state after each pod, as in `decision_replay`. Replicas must find the feasible
nodes that are recorded and give the recorded reasons. But a nomination in the status of a pod asks the owner of the
node, and nobody else, to bind it.

Where DynamicResources frees a claim, replicas try the pod again at once; of that, the recordings say nothing.
"""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import chain
from random import Random
from typing import Any, Final

import numpy as np
import trio
from attrs import define, evolve, field
from comparison import Comparison
from golden_objects import pod_of

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.daemon.sharding.sharding import Sharding
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import CycleState, Int64Array, NodeColumns, hookimpl
from trio_sched.simulator import ApiServer, ExtenderTransport, trio_clock
from trio_sched.simulator.storage.resource_types import TypeRegistry
from trio_sched.testing.cluster_settings import cluster_settings
from trio_sched.testing.scheduler_process import SchedulerProcess, SeverableTransport

REPLICAS: Final = {1: 1, 4: 2, 16: 4}
"""Shards → replicas; each of them has several shards, the holder of the lane, too."""
LEASES: Final = {"leaderElect": True, "leaseDuration": "120s", "renewDeadline": "90s", "retryPeriod": "20s"}
"""So long that little happens but what the pods are about."""
SHARED_SECONDS: Final = 300
DECIDED_SECONDS: Final = 2.0
"""After so long a pod that is decided on and not bound waits for its volumes."""
EVICTED_SECONDS: Final = 0.2
"""Within this time all victims of a pod that was refused are evicted."""
WAIT_SECONDS: Final = 30.0
CLAIM_IS_FREE: Final = "ResourceClaim completed"
"""DynamicResources has deallocated or deleted a claim that another pod can have now."""
_LOOK_SECONDS: Final = 0.02
_TYPES: Final = TypeRegistry()
_EPOCH: Final = "2026-03-01T00:00:00Z"
_DEFAULT: Final = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
_WRITTEN: Final = ("pods", "persistentvolumes", "persistentvolumeclaims", "resourceclaims.resource.k8s.io")
"""Collections with objects that schedulers change."""
_THERE: Final = ("namespaces", "priorityclasses.scheduling.k8s.io")
"""Collections with objects that the API server has from the beginning."""


class Feasible:
    """A plugin that notes which nodes have passed all filters: those that are to be scored."""

    name = "Feasible"

    def __init__(self, found: dict[str, list[list[str]]]) -> None:
        self.found = found

    @hookimpl
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        self.found.setdefault(pod.uid, []).append(sorted(nodes.names))
        return np.zeros(len(nodes), dtype=np.int64)


@define
class Outcome:
    """What became of a pod."""

    node: str = ""
    message: str = ""
    """Why it has none."""
    evicted: dict[str, set[str]] = field(factory=dict)
    """Node → the pods that were evicted there."""


def waits_with_nomination(case: Mapping[str, Any]) -> bool:
    """Whether pods of the scene wait from the beginning: a scheduler that runs decides on them before all others."""
    return any(one["kind"] == "Pod" and not one["spec"].get("nodeName") for one in case["objects"])


@define(eq=False)
class ShardedReplay:
    """A scene, scheduled by replicas that share *shards*."""

    case: Mapping[str, Any]
    shards: int
    api: ApiServer = field(init=False)
    processes: list[SchedulerProcess] = field(factory=list, init=False)
    feasible: dict[str, list[list[str]]] = field(factory=dict, init=False)
    """By UID: the nodes that have passed all filters, in each attempt with more than one."""
    _wanted: dict[tuple[str, str], dict[str, Any]] = field(factory=dict, init=False)
    """By collection and key: the objects as they are recorded."""

    @asynccontextmanager
    async def _running(self) -> AsyncIterator[None]:
        config = dict(self.case.get("config") or _DEFAULT)
        config |= {"percentageOfNodesToScore": 100, "leaderElection": LEASES, "sharding": {"shards": self.shards}}
        probe = Feasible(self.feasible)
        gates = FeatureGates(overrides=self.case.get("featureGates") or {})
        settings = cluster_settings(json.dumps(config), gates, [probe], leader_elect=True)
        self.api = ApiServer(now=trio_clock(datetime(2026, 3, 1, tzinfo=UTC)))
        for recorded in self.case["objects"]:
            self._want(recorded)
        self._restore()
        async with trio.open_nursery() as nursery:
            for number in range(REPLICAS[self.shards]):
                process = SchedulerProcess(
                    evolve(settings, identity=f"replica-{number}"),
                    self.api,
                    SeverableTransport(ExtenderTransport(())),
                    Random(number),
                    self.api.now,
                )
                self.processes.append(process)
                nursery.start_soon(process.run)
            for process in self.processes:
                await process.wait_started()
            for _ in range(SHARED_SECONDS):
                if self._are_shared():
                    break
                await trio.sleep(1)
            yield
            nursery.cancel_scope.cancel()

    @property
    def _sharing(self) -> list[Sharding]:
        return [one.assembly.sharding for one in self.processes if one.assembly and one.assembly.sharding]

    def _are_shared(self) -> bool:
        ready = sorted(shard for one in self._sharing for shard in one.owned.ready)
        fair = self.shards // len(self.processes)
        return ready == list(range(self.shards)) and all(len(one.owned.ready) == fair for one in self._sharing)

    # --- objects ----------------------------------------------------------------------------------------------------

    def _want(self, recorded: Mapping[str, Any]) -> tuple[str, str]:
        """Have *recorded* in the cluster."""
        collection = _TYPES.built_in(recorded["apiVersion"], recorded["kind"]).collection
        metadata = {"creationTimestamp": _EPOCH, **recorded["metadata"]}
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        metadata.setdefault("uid", f"{recorded['kind']}-{key}")
        fields = {name: value for name, value in recorded.items() if name not in ("apiVersion", "kind")}
        self._wanted[collection, key] = {**fields, "metadata": metadata, **_running_status(recorded)}
        return collection, key

    def _restore(self) -> None:
        """Make the cluster as it is recorded."""
        store = self.api.store
        for collection in (*_WRITTEN, *_THERE):
            for stored in list(store.collection(collection).objects.values()):
                wanted = self._wanted.get((collection, stored.key))
                if (wanted is None and collection in _WRITTEN) or (wanted and not _is_equal(wanted, stored.fields)):
                    store.delete(collection, stored)
        for (collection, key), wanted in self._wanted.items():
            if store.get(collection, key) is None:
                store.create(collection, key, {**wanted, "metadata": dict(wanted["metadata"])})

    # --- the sequence -----------------------------------------------------------------------------------------------

    async def rows(self) -> list[Comparison]:
        """Schedule all pods; returns what was compared."""
        async with self._running():
            return [one async for one in self._compare_all()]

    async def _compare_all(self) -> AsyncIterator[Comparison]:
        placed = 0
        for recorded, expected in zip(self.case["pods"], self.case["expect"], strict=True):
            place = self._want({"apiVersion": "v1", "kind": "Pod", **recorded})
            self._restore()
            pod = pod_of(self._wanted[place])
            for compared in self._compare(pod, expected, await self._outcome(pod)):
                where = f"{self.case['name']} pod {expected['pod']} with {self.shards} shards"
                yield evolve(compared, detail=f"{where}: {compared.detail}")
            self._take_over(place, expected, placed)
            placed += bool(expected.get("placed"))
            if not expected.get("placed") and recorded.get("status", {}).get("nominatedNodeName"):
                return  # in the recording it keeps that place, and is never decided on again
            await self._end_attempts(pod)

    def _take_over(self, place: tuple[str, str], expected: Mapping[str, Any], minutes: int) -> None:
        """What is recorded of the cluster after the pod."""
        for key in chain.from_iterable(self._evicted().values()):
            metadata = self._wanted["pods", key]["metadata"]
            metadata["uid"] += "-again"  # those that are recorded as running still are others, for whoever evicted them
        recorded = self._wanted.pop(place)
        for victim in (expected.get("cycle") or {}).get("postFilter", {}).get("victims", ()):
            self._wanted.pop(("pods", victim), None)
        if expected.get("placed"):
            status = {k: v for k, v in recorded.get("status", {}).items() if k != "nominatedNodeName"}
            status |= {"phase": "Running", "startTime": f"2026-03-01T{minutes // 60:02}:{minutes % 60:02}:00Z"}
            self._wanted[place] = {
                **recorded,
                "spec": {**recorded["spec"], "nodeName": expected["placed"]},
                "status": status,
            }
        for update in expected.get("updates") or ():
            if update.get("deleted"):
                collection = _TYPES.built_in(update["apiVersion"], update["kind"]).collection
                self._wanted.pop((collection, update["deleted"]), None)
            else:
                self._want(update)
        self._restore()

    async def _outcome(self, pod: Pod) -> Outcome:
        """Wait until *pod* is bound or refused, or pods were evicted for it."""
        pods = self.api.store.collection("pods")
        decided_at: float | None = None
        with trio.move_on_after(WAIT_SECONDS):
            while True:
                await trio.sleep(_LOOK_SECONDS)
                stored = pods.objects[pod.key].fields
                if node := stored["spec"].get("nodeName"):
                    return Outcome(node, "", self._evicted())
                node, is_under_way = self._decision(pod)
                if node:
                    decided_at = trio.current_time() if decided_at is None else decided_at
                    if trio.current_time() - decided_at > DECIDED_SECONDS:
                        return Outcome(node, "", self._evicted())
                elif not is_under_way and (message := _message_of(stored)):
                    await trio.sleep(EVICTED_SECONDS)
                    if not pods.objects[pod.key].fields["spec"].get("nodeName"):
                        return Outcome("", message, self._evicted())
        return Outcome("", "nothing has happened", self._evicted())

    def _decision(self, pod: Pod) -> tuple[str, bool]:
        """The node that a replica has decided on, and whether an attempt is under way."""
        is_under_way = False
        for one in self._sharing:
            cache, queue = one.scheduler.cache, one.scheduler.queue
            is_under_way |= pod.uid in one.owned.under_way or pod.uid in queue.in_flight
            if cache.is_assumed(pod.uid) and (cached := cache.get(pod.uid)) is not None:
                return cached.node_name, True
        return "", is_under_way

    def _evicted(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for (collection, key), wanted in self._wanted.items():
            if collection == "pods" and "nodeName" in wanted["spec"]:
                stored = self.api.store.get(collection, key)
                was_ending = "deletionTimestamp" in wanted["metadata"]
                if stored is None or ("deletionTimestamp" in stored.fields["metadata"] and not was_ending):
                    found.setdefault(wanted["spec"]["nodeName"], set()).add(key)
        return found

    async def _end_attempts(self, pod: Pod) -> None:
        with trio.move_on_after(WAIT_SECONDS):
            while True:
                await trio.sleep(_LOOK_SECONDS)
                if not self._decision(pod)[1]:
                    return

    # --- comparing --------------------------------------------------------------------------------------------------

    def _compare(self, pod: Pod, expected: Mapping[str, Any], found: Outcome) -> Iterator[Comparison]:
        cycle = expected.get("cycle")
        if cycle is None:
            yield Comparison("preEnqueue", not found.node, f"bound to {found.node}")
            return
        if CLAIM_IS_FREE in cycle.get("fitError", ""):  # that makes another attempt, which the recording has not
            return
        decider = self._decider(pod)
        nominated = pod.nominated_node_name
        if nominated and not decider.owned.owns_node(nominated):  # a question to its owner here, as the how-to says
            return
        if "errorAnyOf" in cycle:
            yield Comparison("error", found.message in cycle["errorAnyOf"], f"{cycle['errorAnyOf']}, got {found}")
        elif cycle.get("feasible"):
            problems = [one for one in self.feasible.get(pod.uid, ()) if one != cycle["feasible"]]
            agreed = found.node in cycle["feasible"] and not problems
            yield Comparison("feasible", agreed, f"feasible: expected {cycle['feasible']}, got {problems} {found}")
        else:
            yield from self._compare_refusal(pod, cycle, found, decider)

    def _decider(self, pod: Pod) -> Sharding:
        return next(one for one in self._sharing if one.owned.decides_on(pod))

    def _compare_refusal(
        self, pod: Pod, cycle: Mapping[str, Any], found: Outcome, decider: Sharding
    ) -> Iterator[Comparison]:
        post_filter = cycle.get("postFilter") or {}
        candidates = post_filter.get("candidates") or {}
        tried = [*candidates, *(post_filter.get("dryRunFailed") or ())]
        why = cycle["fitErrorBeforePostFilter"]
        # Those that are about to go are not evicted again.
        victims = {
            name: {key for key in one["victims"] if not self._is_ending(key)} for name, one in candidates.items()
        }
        if all(map(decider.owned.owns_node, tried)):
            victims = {name: victims[name] for name in post_filter.get("tied", ())}
        evicts = any(found.evicted == ({name: keys} if keys else {}) for name, keys in victims.items())
        if any(map(decider.owned.owns_node, candidates)):
            agreed = found.message == why and evicts
            yield Comparison("preemption", agreed, f"evicted: expected one of {victims}, got {found}")
        elif not all(map(decider.owned.owns_node, tried)):
            agreed = evicts if candidates or found.evicted else found.message.startswith(why)
            yield Comparison("victims of others", agreed, f"expected one of {victims} or {why!r}, got {found}")
        else:
            why = cycle["fitError"]
            yield Comparison("refusal", found.message == why, f"refusal: expected {why!r}, got {found}")

    def _is_ending(self, key: str) -> bool:
        return "deletionTimestamp" in self._wanted["pods", key]["metadata"]


def _running_status(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """The status as a cluster that runs would have it."""
    status = dict(recorded.get("status") or {})
    if recorded["kind"] == "Pod" and status.get("phase") in ("Succeeded", "Failed"):
        status["phase"] = "Running"  # in the recordings, such pods take what they request
    if recorded["kind"] == "ResourceClaim" and status.get("allocation"):
        status["allocation"] = {"allocationTimestamp": _EPOCH, **status["allocation"]}  # these were left out
    return {"status": status} if status else {}


def _message_of(fields: Mapping[str, Any]) -> str:
    """Why a pod has no node."""
    conditions = fields.get("status", {}).get("conditions") or ()
    return next((one.get("message", "") for one in conditions if one["type"] == "PodScheduled"), "")


def _is_equal(wanted: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    metadata = {name: value for name, value in stored["metadata"].items() if name != "resourceVersion"}
    return {**stored, "metadata": metadata} == {
        **wanted,
        "metadata": {name: value for name, value in wanted["metadata"].items() if name != "resourceVersion"},
    }
