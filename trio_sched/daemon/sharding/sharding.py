"""Connects the parts that share the work with other replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final

import trio
from attrs import define, field

from trio_sched.config.schema import Sharding as ShardingConfig
from trio_sched.daemon.clients import Clients
from trio_sched.daemon.metrics.recorder import MetricRecorder
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.pods.pod_status import PodStatusWriter
from trio_sched.daemon.pods.preemption_executor import PreemptionExecutor
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.sharding.agreement import Agreement
from trio_sched.daemon.sharding.claim_fences import ClaimFences
from trio_sched.daemon.sharding.claim_writes import FENCES, ShardedObjectWrites
from trio_sched.daemon.sharding.group_lease import GroupLease
from trio_sched.daemon.sharding.group_places import GroupPlaces
from trio_sched.daemon.sharding.moved_nodes import MovedNodes
from trio_sched.daemon.sharding.needed_pods import NeededPods
from trio_sched.daemon.sharding.proposals import Proposals
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.sharding.shard_plugin import plugin_class
from trio_sched.daemon.sharding.sharded_binder import ShardedBinder
from trio_sched.daemon.sharding.sharded_pods import ShardedBindingCycle, ShardedFailureHandler
from trio_sched.daemon.sharding.sharded_preemption import ShardedPreemptionExecutor
from trio_sched.daemon.sharding.sharded_profiles import ShardedProfileLoader
from trio_sched.daemon.sharding.takeover import Takeover
from trio_sched.daemon.sharding.versioned_writes import VersionedWrites
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.queue.cluster_changes import NODE_ADD
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.sharding.labelled_nodes import LabelledNodes
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.shard_counts import ShardCounts
from trio_sched.engine.sharding.sharded_event_handlers import ShardedEventHandlers
from trio_sched.engine.sharding.sharded_scheduler import ShardedScheduler
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod import Pod

if TYPE_CHECKING:
    from trio_sched.daemon.extenders.extenders import Extenders  # only where there are some
    from trio_sched.daemon.sharding.sharded_pod_groups import ShardedPodGroups

_OF_CLASSES: Final = "deviceclass.resource.kubernetes.io/"

ShownPods = Callable[[], Mapping[tuple[str, str], Pod]]
"""Returns the pods as the watch has shown them last, by namespace and name."""


class NotWithSharding(TrioSchedError):
    """Something was asked for that several replicas cannot do at a time."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.what} does not work with sharding yet; leave out one of both"


@define(eq=False, kw_only=True)
class Sharding:
    """The parts, and what makes the others of this process."""

    scheduler: Scheduler
    owned: OwnedShards
    elector: ShardElector
    takeover: Takeover
    proposals: Proposals
    groups: GroupPlaces
    binder: ShardedBinder
    failure_handler: Callable[..., ShardedFailureHandler]
    binding: Callable[..., ShardedBindingCycle]
    event_handlers: Callable[..., ShardedEventHandlers]
    places: Callable[[], ShardedEventHandlers]
    """Returns those, once they were made: they know which pods have places on nodes of others."""
    object_writes: Callable[..., ShardedObjectWrites]
    pod_groups: Callable[..., ShardedPodGroups]
    loader: Callable[..., ShardedProfileLoader]

    def counts(self) -> ShardCounts:
        """What is counted, now."""
        return ShardCounts(
            ready={shard: held.is_ready and not held.is_leaving for shard, held in self.elector.held.items()},
            pending=Counter(map(self.owned.decider, self.scheduler.cache.unassigned.pods())),
            proposals=self.proposals.results,
            refused=self.proposals.answers["refused"],
            fenced=self.takeover.fenced,
        )

    def page(self) -> dict[str, Any]:
        """What is known of all shards, for ``/debug/scheduler/shards``."""
        elector, owned, counts = self.elector, self.owned, self.counts()
        return {
            "replica": elector.group.replica,
            "replicas": sorted(elector.group.alive),
            "lease": elector.group.lock,
            "shards": [
                {
                    "shard": shard,
                    "lease": elector.lease_name(shard),
                    "holder": elector.holders.get(shard, ""),
                    "state": self._state(shard),
                    "pending": counts.pending.get(shard, 0),
                }
                for shard in range(owned.shards)
            ],
            "underWay": len(owned.under_way),
            "seen": owned.seen,
            "acknowledged": owned.acknowledged,
            "nodesNotDecidedFor": [] if owned.labelled is None else sorted(owned.labelled.unsettled(owned.ready)),
            "repellingTerms": {"known": len(owned.terms.since), "notAgreedOn": len(owned.terms.open())},
            "proposals": dict(counts.proposals),
            "refused": counts.refused,
            "notAsked": sorted(self.proposals.slow),
            "fenced": counts.fenced,
        }

    def _state(self, shard: int) -> str:
        held = self.elector.held.get(shard)
        if held is None:
            return "of another replica" if self.elector.holders.get(shard) else "of no replica"
        if held.is_leaving:
            return "being given back"
        return "ready" if held.is_ready else "being taken over"


@define(eq=False, kw_only=True)
class _Changes:
    """What happens when other nodes or pods are this process's own."""

    scheduler: Scheduler
    wake: Callable[[], None]
    event_handlers: ShardedEventHandlers | None = field(default=None, init=False)

    def take_up(self) -> None:
        """Queue the pods that are its own now, and no others."""
        if self.event_handlers is not None:
            self.event_handlers.take_up_own(now=trio.current_time())
        self.wake()

    def try_pods_again(self, keys: Iterable[str]) -> None:
        """Pods called so are worth another attempt, if they wait for one."""
        known = (self.scheduler.cache.unassigned.get(key) for key in keys)
        self.scheduler.queue.activate([pod for pod in known if pod is not None], now=trio.current_time())
        self.wake()

    def decide_for(self, nodes: Collection[str]) -> None:
        """Nodes are its own now that were in another shard before, or new: as if they had been added."""
        now, scheduler = trio.current_time(), self.scheduler
        if self.event_handlers is not None:
            self.event_handlers.take_up_on(nodes, now=now)
        scheduler.invalidate_signatures()
        table = scheduler.cache.table
        for row in [table.row_of[name] for name in nodes if name in table.row_of]:
            scheduler.queue.move_all(NODE_ADD, None, table.nodes[row], now=now)
        self.wake()

    def try_again(self) -> None:
        """The same, and all of them are worth another attempt."""
        if self.event_handlers is not None:
            self.event_handlers.take_up_own(now=trio.current_time())
        self.scheduler.invalidate_signatures()
        self.scheduler.queue.requeue_all(now=trio.current_time())
        self.wake()


def build_owned(settings: DaemonSettings, sharding: ShardingConfig) -> OwnedShards:
    """What a process may decide on that shares the work.

    Raises:
        NotWithSharding: the settings ask for something that several replicas cannot do.
    """
    if settings.recording is not None:
        raise NotWithSharding("recording decisions (--record)")
    if settings.shadow is not None:
        raise NotWithSharding("a shadow (--shadow)")
    features = settings.gates.features
    return OwnedShards(
        shards=sharding.shards,
        labelled=LabelledNodes(shards=sharding.shards, label=sharding.node_label) if sharding.node_label else None,
        has_groups=features.generic_workload,
        devices_take_of_nodes=features.dra_node_allocatable_resources,
    )


def build_sharding(
    owned: OwnedShards,
    settings: DaemonSettings,
    clients: Clients,
    *,
    scheduler: Scheduler,
    status_writer: PodStatusWriter,
    preemption: PreemptionExecutor,
    object_waits: ObjectWaits,
    jobs: PluginJobs,
    extenders: Extenders | None,
    served: ServedVersions,
    metrics: MetricRecorder,
    wall_clock: Callable[[], datetime],
    shown: ShownPods,
    wake: Callable[[], None],
) -> Sharding:
    """The parts of a process that shares the work.

    Args:
        owned: what it may decide on.
        settings: what the flags and the configuration say.
        clients: connections to the API server.
        scheduler: decides.
        status_writer: writes conditions of pods.
        preemption: evicts pods.
        object_waits: waits for changes of pods.
        jobs: runs what is done beside.
        extenders: what else takes part in decisions; None: nothing.
        served: the versions of kinds that the API server serves.
        metrics: counts.
        wall_clock: returns the time of day.
        shown: what the watch has shown.
        wake: called when the active queue may have got a pod.
    """
    random = Random(settings.identity)  # one of its own, so that decisions are those of a scheduler without it
    group = GroupLease(
        client=clients.leases,
        settings=settings.config.leader_election,
        shards=owned.shards,
        has_groups=owned.has_groups,
        node_label="" if owned.labelled is None else owned.labelled.label,
        replica=settings.identity,
        wall_clock=wall_clock,
        permit=clients.write_permit,
    )
    changes = _Changes(scheduler=scheduler, wake=wake)
    agreement = Agreement(owned=owned, agreed=changes.take_up)
    moved_nodes = MovedNodes(owned=owned, settled=changes.decide_for)
    elector = ShardElector(
        group=group,
        owned=owned,
        random=random,
        metrics=metrics,
        changed=changes.try_again,
        agreement=agreement,
        moved_nodes=moved_nodes,
    )
    if owned.labelled is not None:
        owned.labelled.held = elector.held.keys()
        owned.labelled.is_in_use = lambda name: owned.is_in_use(name) or _has_pods(scheduler, name)
    takeover = Takeover(
        client=clients.main,
        elector=elector,
        owned=owned,
        shown=shown,
        object_waits=object_waits,
        wall_clock=wall_clock,
        random=random,
        has_profile=lambda pod: pod.scheduler_name in scheduler.profiles,
        claims=ClaimFences(
            client=clients.main, served=served, objects=scheduler.object_cache, object_waits=object_waits
        ),
    )
    writes = VersionedWrites(client=clients.main, elector=elector, takeover=takeover, random=random)
    proposals = Proposals(
        owned=owned,
        elector=elector,
        writes=writes,
        takeover=takeover,
        status_writer=status_writer,
        object_waits=object_waits,
        shown=shown,
        wall_clock=wall_clock,
        changed=changes.try_again,
        try_again=changes.try_pods_again,
    )
    assert isinstance(preemption, ShardedPreemptionExecutor)
    preemption.proposals = proposals
    elector.takes_over, elector.look = takeover, proposals.look
    agreement.takes_over, moved_nodes.takes_over = takeover, takeover
    if extenders is not None:
        owned.is_extended = extenders.is_interested
    owned.is_giving_back = lambda: not jobs.is_idle("DynamicResources")
    owned.is_fencing = lambda: not jobs.is_idle(FENCES)
    owned.is_device = _device_names(scheduler.object_cache, settings.gates.features.dra_extended_resource)

    def event_handlers(**parts: Any) -> ShardedEventHandlers:
        changes.event_handlers = ShardedEventHandlers(
            **parts,
            owned=owned,
            all_pods=lambda: list(shown().values()),
            new_term=elector.wake.set,
            node_moved=elector.wake.set,
            place_lost=proposals.lost_place,
            victim_gone=preemption.try_again,
            asked=lambda pod: groups.answer(pod),
        )
        return changes.event_handlers

    assert isinstance(scheduler, ShardedScheduler)
    groups = GroupPlaces(
        owned=owned, proposals=proposals, scheduler=scheduler, jobs=jobs, handlers=lambda: places(), wake=wake
    )
    needed = NeededPods(
        owned=owned, scheduler=scheduler, handlers=lambda: places(), object_waits=object_waits, shown=shown
    )
    preemption.groups = groups

    def pod_groups(**parts: Any) -> ShardedPodGroups:
        from trio_sched.daemon.sharding.sharded_pod_groups import ShardedPodGroups

        return ShardedPodGroups(**parts, owned=owned, elector=elector, groups=groups)

    def places() -> ShardedEventHandlers:
        assert changes.event_handlers is not None  # it is made before the first pod is decided on
        return changes.event_handlers

    return Sharding(
        scheduler=scheduler,
        owned=owned,
        elector=elector,
        takeover=takeover,
        proposals=proposals,
        groups=groups,
        binder=ShardedBinder(owned=owned, writes=writes, proposals=proposals, groups=groups),
        failure_handler=partial(
            ShardedFailureHandler,
            owned=owned,
            proposals=proposals,
            jobs=jobs,
            preemption=preemption,
            groups=groups,
            places=places,
        ),
        binding=partial(ShardedBindingCycle, owned=owned, proposals=proposals, groups=groups),
        event_handlers=event_handlers,
        places=places,
        object_writes=partial(ShardedObjectWrites, elector=elector, owned=owned, jobs=jobs, proposals=proposals),
        pod_groups=pod_groups,
        loader=partial(
            ShardedProfileLoader,
            owned=owned,
            plugin=plugin_class(owned, elector, proposals, groups, needed, scheduler.object_cache),
        ),
    )


def _has_pods(scheduler: Scheduler, node_name: str) -> bool:
    """Whether pods are on a node, or nominated to it."""
    table = scheduler.cache.table
    row = table.row_of.get(node_name)
    return bool(scheduler.nominated_pods(node_name)) or (row is not None and bool(table.pods[row]))


def _device_names(objects: ObjectCache, is_enabled: bool) -> Callable[[str], bool]:
    """Says of extended resources whether devices are allocated for them."""
    version, names = -1, frozenset[str]()

    def is_device(name: str) -> bool:
        nonlocal version, names
        if not is_enabled or "DeviceClass" not in objects.kinds:
            return False
        if objects.version("DeviceClass") != version:
            version = objects.version("DeviceClass")
            found = (one.extended_resource_name for one in objects.objects("DeviceClass"))
            names = frozenset(one for one in found if one)
        return name in names or name.startswith(_OF_CLASSES)

    return is_device
