"""All simulated controllers of a cluster, run together."""

import trio
from attrs import define, field

from trio_sched.simulator.controllers.controller import Controller
from trio_sched.simulator.controllers.devices.claims import ClaimController
from trio_sched.simulator.controllers.devices.device_eviction import DeviceTaintEviction
from trio_sched.simulator.controllers.devices.devices import DeviceDrivers
from trio_sched.simulator.controllers.event_expiry import EventExpiry
from trio_sched.simulator.controllers.garbage import GarbageCollector
from trio_sched.simulator.controllers.namespace_objects import NamespaceObjectController
from trio_sched.simulator.controllers.nodes.node_lifecycle import NodeLifecycleController
from trio_sched.simulator.controllers.nodes.orphaned_pods import OrphanedPods
from trio_sched.simulator.controllers.nodes.taint_eviction import TaintEviction
from trio_sched.simulator.controllers.pod_groups import PodGroupController
from trio_sched.simulator.controllers.quotas import QuotaController
from trio_sched.simulator.controllers.volumes.volumes import VolumeController, VolumePace
from trio_sched.simulator.controllers.workloads.controlled_objects import ControlledObjects
from trio_sched.simulator.controllers.workloads.cron_jobs import CronJobController
from trio_sched.simulator.controllers.workloads.daemon_sets import DaemonSetController
from trio_sched.simulator.controllers.workloads.deployments import DeploymentController
from trio_sched.simulator.controllers.workloads.disruption_budgets import DisruptionController
from trio_sched.simulator.controllers.workloads.jobs import JobController
from trio_sched.simulator.controllers.workloads.orphaned_replica_sets import restore_replica_sets
from trio_sched.simulator.controllers.workloads.replica_sets import (
    ReplicaSetController,
    ReplicationControllerController,
)
from trio_sched.simulator.controllers.workloads.stateful_sets import StatefulSetController
from trio_sched.simulator.endpoints.api_server import ApiServer


@define(eq=False)
class Controllers:
    """The controllers of one cluster.

    Args:
        server: the cluster.
        volume_pace: how fast volumes are bound and provisioned; None: there is no volume controller.
        keeps_events: whether events stay for ever, for tests that look at them after days; else for an hour.
    """

    server: ApiServer
    volume_pace: VolumePace | None = field(factory=VolumePace)
    keeps_events: bool = False
    _all: list[Controller] = field(init=False)

    def __attrs_post_init__(self) -> None:
        server = self.server
        self._all = [
            DeviceDrivers(server),
            ClaimController(server),
            DeviceTaintEviction(server),
            PodGroupController(server),
            NamespaceObjectController(server),
        ]
        if not self.keeps_events:
            self._all.append(EventExpiry(server))
        if self.volume_pace is not None:
            self._all.append(VolumeController(server, self.volume_pace))
        self._all += _of_workloads(server)

    @property
    def is_busy(self) -> bool:
        """Whether any of them has something to do, now or later."""
        return any(one.is_busy for one in self._all)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run them; never returns."""
        restore_replica_sets(self.server.state)
        async with trio.open_nursery() as nursery:
            for one in self._all:
                await nursery.start(one.run)
            task_status.started()


def _of_workloads(server: ApiServer) -> list[Controller]:
    """The controllers of workloads, after the indexes that they share."""
    kinds = (("v1", "Pod"), ("apps/v1", "ReplicaSet"), ("apps/v1", "ControllerRevision"), ("batch/v1", "Job"))
    indexes = [ControlledObjects(server, server.state.types.built_in(*kind)) for kind in kinds]
    pods, sets, revisions, jobs = indexes
    return [
        *indexes,
        ReplicaSetController(server, pods, sets),
        ReplicationControllerController(server, pods),
        DeploymentController(server, pods, sets),
        StatefulSetController(server, pods, revisions),
        DaemonSetController(server, pods, revisions),
        JobController(server, pods),
        CronJobController(server, pods, jobs),
        DisruptionController(server, pods),
        GarbageCollector(server),
        NodeLifecycleController(server),
        QuotaController(server),
        TaintEviction(server),
        OrphanedPods(server),
    ]
