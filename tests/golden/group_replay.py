"""Replays recorded attempts to schedule pod groups: gates, order, the outcome for each pod and for the group."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import trio
from comparison import Comparison
from golden_objects import node_of, object_of, pod_of
from golden_profiles import ReplayHandle, profiles_of, seen_in_flight

from trio_sched.daemon.pod_groups.pod_group_steps import run_group_steps
from trio_sched.engine.cache import Cache
from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.pod_groups.group_steps import in_order
from trio_sched.engine.pod_groups.pod_group_cycle import PodGroupCycle
from trio_sched.engine.pod_groups.pod_group_results import GroupResult, PodResult
from trio_sched.engine.queue.pre_enqueue import PreEnqueue
from trio_sched.engine.queue.queue_counters import QueueCounters
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import SchedulingQueue
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod_requests import ResourceOptions
from trio_sched.plugin_api import CycleState, DryRun, PendingPod, Pod, PodGroupInfo
from trio_sched.plugin_api.preemption import budgets_of


class First(Random):
    """Of several that are equal it chooses the first; nodes are recorded in the order of their names."""

    def randrange(self, *args: Any) -> int:  # type: ignore[override]
        return 0


class GroupHandle(ReplayHandle):
    """The handle of a replay with a scheduler behind it."""

    scheduler: Scheduler
    pending: dict[str, Pod]

    def pod_group_state(self, namespace: str, name: str) -> Any:
        assert self.scheduler.cache.groups is not None
        return self.scheduler.cache.groups.get(f"{namespace}/{name}")

    def pending_pod(self, namespace: str, name: str) -> PendingPod | None:
        return seen_in_flight(self.pending.get(f"{namespace}/{name}"))

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], num_candidates: int) -> DryRun:
        budgets = budgets_of(self.objects("PodDisruptionBudget"))
        return self.scheduler.dry_run_preemption(pod, state, node_names, 1 << 30, budgets)

    def activate(self, pods: Any) -> None:
        """All pods of the group are in its attempt already."""


class GroupReplay:
    """One case: a cluster, and groups that are scheduled one after the other."""

    def __init__(self, case: Mapping[str, Any]) -> None:
        self.case = case
        gates = case["featureGates"]
        self.by_placement = bool(gates.get("TopologyAwareWorkloadScheduling"))
        others: dict[str, list[Any]] = {}
        for recorded in case["objects"]:
            if recorded["kind"] not in ("Node", "Pod"):
                others.setdefault(recorded["kind"], []).append(object_of(recorded))
        handles: dict[str, ReplayHandle] = {}
        profiles = profiles_of(case, others, handles, handle_type=GroupHandle)
        self.pending = {pod.key: pod for pod in map(pod_of, case["pods"])}
        options = ResourceOptions(
            pod_level=gates.get("PodLevelResources", True),
            pod_level_resize=gates.get("InPlacePodLevelResourcesVerticalScaling", True),
        )
        self.cache = Cache(options, groups=PodGroupStates())
        queue = SchedulingQueue(get_unassigned_pod=self.pending.get, groups_skip_hints=True)
        self.scheduler = Scheduler(cache=self.cache, queue=queue, rng=First())
        for handle in handles.values():
            assert isinstance(handle, GroupHandle)
            handle.table, handle.scheduler, handle.pending = self.cache.table, self.scheduler, self.pending
        for recorded in case["objects"]:
            if recorded["kind"] == "Node":
                self.cache.add_node(node_of(recorded))
        for recorded in case["objects"]:
            if recorded["kind"] == "Pod":
                self._add(pod_of(recorded))
        assert self.cache.groups is not None
        for pod in self.pending.values():
            self.cache.groups.add(pod)
        self.scheduler.install_profiles(profiles)

    def _add(self, pod: Pod) -> None:
        if pod.node_name:
            self.cache.add(pod)
        elif pod.nominated_node_name:
            self.pending[pod.key] = pod
            self.scheduler.queue.nominator.add(pod, None)

    def rows(self) -> Iterator[Comparison]:
        for expected in self.case["expect"]:
            differences = list(self._group(expected))
            where = f"{self.case['name']} group {expected['group']}"
            yield Comparison("groups", not differences, f"{where}: {'; '.join(differences[:3])}")

    def _group(self, expected: Mapping[str, Any]) -> Iterator[str]:
        key = expected["group"]
        members = [pod for pod in self.pending.values() if pod.group_key == key]
        infos = [QueuedPodInfo(pod, 0.0, initial_attempt_timestamp=0.0) for pod in members]
        queueing = {name: p for name, p in self.scheduler.queue.profiles.items()}
        gate = PreEnqueue(queueing, QueueCounters(), self.scheduler.plugin_failures)
        refused = {info.pod.name: self._gated(info) for info in infos if not gate.run(info)}
        wanted = {
            name: {"plugin": one["plugin"], "code": one["code"], "reasons": one["reasons"]}
            for name, one in expected["preEnqueue"].items()
        }
        if refused != wanted:
            yield f"preEnqueue: expected {wanted}, got {refused}"
        infos = in_order(info for info in infos if info.pod.name not in refused)
        if [info.pod.name for info in infos] != expected.get("order", []):
            yield f"order: expected {expected.get('order')}, got {[info.pod.name for info in infos]}"
        if not infos:
            return
        namespace, _slash, name = key.partition("/")
        cycle = PodGroupCycle(
            scheduler=self.scheduler,
            profile=self.scheduler.profiles[infos[0].pod.scheduler_name],
            infos=infos,
            group=PodGroupInfo(namespace, name, tuple(info.pod for info in infos)),
            by_placement=self.by_placement,
        )
        before = self._fingerprint()
        result = trio.run(run_group_steps, cycle.run())
        if self._fingerprint() != before:
            yield "the attempt was not reverted"
        actual = _outcome(result)
        if actual not in [_recorded(one) for one in expected["outcomes"]]:
            yield f"outcome: expected {expected['outcomes']}, got {actual}"
        for pod_name, node_name in (expected.get("placed") or {}).items():
            self.cache.assume(self.pending[f"{namespace}/{pod_name}"], node_name)

    def _gated(self, info: QueuedPodInfo) -> dict[str, Any]:
        (hook,) = [
            hook
            for hook in self.scheduler.profiles[info.pod.scheduler_name].pre_enqueue
            if hook.plugin == info.gating_plugin
        ]
        status = hook.function(info.pod)
        return {"plugin": hook.plugin, "code": status.code.label, "reasons": sorted(status.all_reasons)}

    def _fingerprint(self) -> Any:
        views = self.cache.table.views
        assert self.cache.groups is not None
        groups = [(g.key, sorted(g.unscheduled), sorted(g.assumed), sorted(g.assigned)) for g in self.cache.groups]
        nominated = {node: sorted(pods) for node, pods in self.scheduler.queue.nominator.nodes.items()}
        return views.requested.tolist(), views.pod_count.tolist(), groups, nominated, self.cache.assumed_count


def _outcome(result: GroupResult) -> dict[str, Any]:
    status = result.status
    return {
        "status": ("Success", "") if status is None else (status.code.label, status.message),
        "waiting": result.waiting_on_preemption,
        "pods": [_pod(pod) for pod in result.pods],
    }


def _pod(pod: PodResult) -> tuple[Any, ...]:
    if pod.failed is not None:
        return pod.info.pod.name, "", pod.failed.status.code.label, pod.failed.message, None
    assert pod.placed is not None
    return pod.info.pod.name, pod.placed.node_name, "Success", "", "Success" if pod.wait is None else "Wait"


def _recorded(outcome: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "status": (outcome["status"]["code"], outcome["status"].get("message", "")),
        "waiting": outcome["waitingOnPreemption"],
        "pods": [
            (pod["pod"], pod.get("node", ""), pod["code"], pod.get("message", ""), pod.get("permit"))
            for pod in outcome["pods"]
        ],
    }
