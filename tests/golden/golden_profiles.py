"""Builds the profiles of a recorded configuration from the plugins that are there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from random import Random
from typing import Any

import msgspec
from golden_objects import merged, object_of

from trio_sched.config.feature_gates import FeatureGates
from trio_sched.config.known_plugins import KNOWN_PLUGINS
from trio_sched.config.load import load_configuration
from trio_sched.config.resolved_profile import resolve_profiles
from trio_sched.config.schema import SchedulerConfig
from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.engine.evaluation.preemption import dry_run
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.engine.registry.profile import Profile, build_profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import CycleState, DryRun, NodeColumns, PendingPod, QueueState, Status, Victims
from trio_sched.plugin_api.preemption import budgets_of
from trio_sched.snapshot.devices.device_table import KINDS as DEVICE_KINDS
from trio_sched.snapshot.node_table import NodeTable

REGISTRY = PluginRegistry.discover()


def seen_in_flight(pod: Pod | None) -> PendingPod | None:
    """A pod that is being scheduled, as plugins see it."""
    return None if pod is None else PendingPod(pod=pod, state=QueueState.IN_FLIGHT, added_at=0.0)


class ReplayHandle:
    """The handle of a replay: gates and objects of the case, nothing else."""

    def __init__(self, profile_name: str, gates: FeatureGates, objects: Mapping[str, list[Any]]) -> None:
        self.profile_name = profile_name
        self._gates = gates
        self.emulated_version = gates.version
        self._objects = objects
        self.rng = Random(0)
        self.profile: Profile
        self.table = NodeTable()
        for kind in DEVICE_KINDS:
            for one in objects.get(kind, ()):
                self.table.devices.put(one)
        self.changes = 0
        self.nominated: NominatedPods = {}
        self.current: Pod | None = None
        """The pod whose cycle is replayed."""
        self.written: dict[tuple[str, str, str], Mapping[str, Any] | None] = {}
        """What plugins have written, as in JSON; None for what they have deleted."""
        self.pod_patches: list[Mapping[str, Any]] = []
        self.created = 0
        self.tried: DryRun | None = None
        """What a dry run of preemption came to, if there was one."""

    @property
    def nodes(self) -> NodeColumns:
        return NodeColumns(self.table)

    def nominated_node(self, pod: Pod) -> str:
        return pod.nominated_node_name

    def pending_pod(self, namespace: str, name: str) -> PendingPod | None:
        return seen_in_flight(self.current)

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], num_candidates: int) -> DryRun:
        """All of *node_names*: the recordings have no samples."""
        budgets = budgets_of(self.objects("PodDisruptionBudget"))
        self.tried = dry_run(
            self.profile, self.table, pod, state, self.nominated, node_names, budgets=budgets, num_candidates=1 << 30
        )
        return self.tried

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        return candidates

    async def preempt(self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, **how: bool) -> None:
        """The replay sees to it."""

    def is_preempting_for(self, pod: Pod) -> bool:
        return False

    def is_preempting_on(self, node_name: str) -> bool:
        return False

    def feature_enabled(self, gate: str) -> bool:
        return self._gates.enabled(gate)

    def now(self) -> float:
        return 0.0

    def objects(self, kind: str) -> Iterable[Any]:
        return self._objects.get(kind, ())

    def object(self, kind: str, name: str, namespace: str = "") -> Any | None:
        for known in self._objects.get(kind, ()):
            if (known.metadata.namespace, known.metadata.name) == (namespace, name):
                return known
        return None

    def version(self, kind: str) -> int:
        return self.changes

    def waiting_pods(self) -> Mapping[str, Any]:
        return {}

    def activate(self, pods: Iterable[Pod]) -> None:
        raise LookupError("a replay has no queue")

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        raise LookupError("a replay has no API server")

    # --- writes: kept apart, since the replay brings the objects to what was recorded -------------------------------

    async def read(self, kind: str, name: str, *, namespace: str = "") -> Any:
        raise LookupError("a replay has no conflicts")

    async def create(self, kind: str, body: Mapping[str, Any], *, namespace: str = "") -> Any:
        self.created += 1
        metadata = dict(body["metadata"])
        metadata["name"] = f"{metadata['generateName']}gen{self.created}"
        metadata["uid"] = f"created-{self.created}"
        return self._write(kind, namespace, {**body, "metadata": metadata})

    async def patch(
        self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        assert set(patch) <= {"metadata", subresource or "spec"}
        if kind == "Pod":
            self.pod_patches.append(patch)
            return None
        stored = self.written.get((kind, namespace, name))
        if stored is None:
            stored = msgspec.to_builtins(self.object(kind, name, namespace))
        return self._write(kind, namespace, merged(stored, patch))

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        self.written[kind, namespace, name] = None

    def _write(self, kind: str, namespace: str, body: Mapping[str, Any]) -> Any:
        self.written[kind, namespace, body["metadata"]["name"]] = body
        new = object_of({"kind": kind, **body})
        self.table.devices.put(new)
        return new

    def record_event(self, pod: Pod, type: str, reason: str, action: str, note: str) -> None:
        """Events are not recorded."""

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Counts are not recorded."""

    def run_in_background(self, job: Any) -> None:
        raise LookupError("a replay has nothing in the background")

    def wall_seconds(self) -> float:
        return datetime(2026, 3, 1, tzinfo=UTC).timestamp()

    async def changed(self, kind: str, name: str, *, timeout_seconds: float, namespace: str = "") -> bool:
        raise LookupError("a replay has no watches")


@lru_cache(maxsize=256)
def _load(config: str | None, gates: str) -> tuple[SchedulerConfig, FeatureGates]:
    resolved = FeatureGates(overrides=json.loads(gates))
    return load_configuration(config, gates=resolved), resolved


def profiles_of(
    case: Mapping[str, Any],
    objects: Mapping[str, list[Any]],
    handles: dict[str, ReplayHandle] | None = None,
    handle_type: type[ReplayHandle] = ReplayHandle,
) -> dict[str, Profile]:
    """The profiles of *case* by schedulerName; plugins that do not exist yet are left out.

    The handle of each is put into *handles*.
    """
    text = None if case.get("config") is None else json.dumps(case["config"])
    config, gates = _load(text, json.dumps(case.get("featureGates") or {}))
    profiles = {}
    for resolved in resolve_profiles(config, KNOWN_PLUGINS, gates):
        name = resolved.name
        handle = handle_type(name, gates, objects)
        if handles is not None:
            handles[name] = handle
        profiles[name] = handle.profile = build_profile(resolved, REGISTRY, lambda _plugin, one=handle: one)
    return profiles
