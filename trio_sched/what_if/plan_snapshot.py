"""The state of the cluster of a plan, for what needs no simulated time: copies that fit, pods packed from scratch."""

from __future__ import annotations

from datetime import datetime

import trio
from attrs import evolve

from trio_sched.daemon.assembly import Assembly
from trio_sched.simulation.cluster_files import is_dumped
from trio_sched.simulation.live.cluster_snapshot import (
    ClusterSnapshot,
    assembled,
    objects_of_dump,
    objects_of_store,
    snapshot_of,
)
from trio_sched.simulation.simulated_run import Plan, run_plan
from trio_sched.simulator.storage.object_store import ObjectStore


def snapshot_of_plan(plan: Plan) -> ClusterSnapshot:
    """The objects of the cluster: as they stand if an API server had all of them, else once they have been scheduled.

    Raises:
        ManifestError: an object is refused.
        TrioSchedError: the daemon cannot run so; possibly in an exception group.
    """
    if all(is_dumped(one.fields) for one in plan.manifests):
        return trio.run(_as_it_stands, plan)
    found: list[ClusterSnapshot] = []

    async def inspect(store: ObjectStore, assembly: Assembly, _now: datetime) -> None:
        found.append(snapshot_of(objects_of_store(store), assembly.scheduler.object_cache.kinds))

    run_plan(evolve(plan, inspect=inspect), lambda _done, _of: None)
    return found[0]


async def _as_it_stands(plan: Plan) -> ClusterSnapshot:
    async with assembled(plan.settings, plan.begins) as assembly:
        return snapshot_of(objects_of_dump(plan.manifests), assembly.loaded.wanted_kinds)
