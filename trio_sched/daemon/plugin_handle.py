"""What plugins reach of the daemon: the `Handle` of one profile."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.binder import Bind
from trio_sched.daemon.cluster_mirror import PendingPods
from trio_sched.daemon.evictions import Evictions
from trio_sched.daemon.extenders import Extenders
from trio_sched.daemon.further_kinds import kind_of
from trio_sched.daemon.object_changes import ObjectChanges
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.engine.asked_kinds import AskedKinds
from trio_sched.engine.scheduler import Scheduler
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.handle import WaitingPod
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun, Victims, budgets_of
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns


@define(eq=False)
class LaterParts:
    """What plugins reach, but can only be put together once the plugins are there."""

    pending: PendingPods
    scheduler: Scheduler = field(init=False)
    evictions: Evictions = field(init=False)
    extenders: Extenders | None = field(init=False, default=None)


@define(eq=False)
class PluginHandle:
    """Given to every plugin of the profile; see `trio_sched.plugin_api.Handle` for the contract."""

    profile_name: str
    _gate: Callable[[str], bool]
    _nodes: Callable[[], NodeColumns]
    _others: Mapping[str, Mapping[tuple[str, str], Any]]
    _versions: Mapping[str, int]
    _asked: AskedKinds
    _waiting: WaitingPods
    _activate: Callable[[Iterable[Pod]], None]
    _bind: Bind
    _client: KubeClient
    _changes: ObjectChanges
    _later: LaterParts
    _budgets: tuple[int, BudgetsByNamespace] = field(factory=lambda: (-1, {}), init=False)

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are now."""
        return self._nodes()

    def feature_enabled(self, gate: str) -> bool:
        """Whether the gate is on."""
        return self._gate(gate)

    def now(self) -> float:
        """Seconds of the scheduler's clock."""
        return trio.current_time()

    def objects(self, kind: str) -> Iterable[Any]:
        """All known objects of a kind."""
        self._asked.note(kind)
        return self._others.get(kind, {}).values()

    def object(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """One known object."""
        self._asked.note(kind)
        known = self._others.get(kind)
        return None if known is None else known.get((namespace, name))

    def version(self, kind: str) -> int:
        """Changes of the kind so far."""
        self._asked.note(kind)
        return self._versions[kind]

    @property
    def rng(self) -> Random:
        """The scheduler's source of chance."""
        return self._later.scheduler.rng

    def promised_node(self, pod: Pod) -> str:
        """What the nominator knows, else what the status says."""
        known = self._later.scheduler.queue.nominator.node_of(pod.uid)
        return pod.nominated_node_name if known is None else known

    def pending_pod(self, namespace: str, name: str) -> Pod | None:
        """A pod without a node as the watch shows it."""
        return self._later.pending.get(f"{namespace}/{name}")

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Pods that wait for permission."""
        return self._waiting.by_uid

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods next."""
        self._activate(pods)

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind through the API server."""
        return await self._bind(pod, node_name)

    async def patch(self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "") -> Any:
        """Merge *patch* into an object."""
        found = kind_of(kind)
        if found is None:
            raise LookupError(f"{kind!r} is no kind that plugins can patch")
        return await verbs.patch(self._client, found[1], name, msgspec.json.encode(patch), namespace=namespace)

    async def changed(self, kind: str, name: str, *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait for the next version of an object."""
        return await self._changes.wait((kind, namespace, name), timeout_seconds)

    # --- making room ------------------------------------------------------------------------------------------------

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], enough: int) -> DryRun:
        """Try victims on copies of the columns."""
        version = self.version("PodDisruptionBudget")
        if self._budgets[0] != version:
            self._budgets = (version, budgets_of(self.objects("PodDisruptionBudget")))
        budgets = self._budgets[1]
        return self._later.scheduler.dry_run_preemption(pod, state, node_names, enough, budgets)

    async def ask_extenders_about_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims]
    ) -> Mapping[str, Victims]:
        """Ask those that have a say in preemption."""
        extenders = self._later.extenders
        if extenders is None:
            return candidates
        asked = {name: (one.pods, one.pdb_violations) for name, one in candidates.items()}
        left = await extenders.process_preemption(pod, asked)
        return {name: Victims(tuple(pods), violations) for name, (pods, violations) in left.items()}

    async def evict(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Evict through the API server."""
        return await self._later.evictions.evict(preemptor, victims, node_name, plugin, in_background=in_background)

    def is_evicting_for(self, pod: Pod) -> bool:
        """Whether victims of this pod are still to go."""
        return self._later.evictions.is_evicting_for(pod.uid)

    def is_evicting_from(self, node_name: str) -> bool:
        """Whether victims on this node are still to go."""
        return self._later.evictions.is_evicting_from(node_name)
