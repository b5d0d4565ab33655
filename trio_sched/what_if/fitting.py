"""Fits copies of a pod into a cluster as it stands, or into one that was never scheduled once it has been."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import trio
from attrs import define, evolve

from trio_sched.engine.scheduler import Scheduler
from trio_sched.errors import TrioSchedError
from trio_sched.objects.pod import Pod
from trio_sched.simulation.cluster_files import is_dumped
from trio_sched.simulation.cluster_snapshot import assembled, fill, objects_of_dump, snapshot_of
from trio_sched.simulation.simulated_run import Plan, run_plan, scheduler_names
from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore
from trio_sched.what_if.fit import Fit, admitted, fit_copies


class OtherScheduler(TrioSchedError):
    """The pod is for a scheduler that has no profile."""


@define(eq=False, kw_only=True)
class Fitting:
    """What to fit."""

    template: Manifest
    count: int | None
    progress: Callable[[int, int], None]


def fit_in_cluster(plan: Plan, fitting: Fitting) -> Fit:
    """How many copies fit into the cluster of *plan*.

    Raises:
        OtherScheduler: the pod is for a scheduler that has no profile.
        ManifestError: the pod or an object of the cluster is refused.
        TrioSchedError: a plugin is missing or broken; possibly in an exception group.
    """
    pod = trio.run(_admitted, plan, fitting.template)
    names = scheduler_names(plan.settings)
    if pod.scheduler_name not in names:
        raise OtherScheduler(
            f"the pod is for the scheduler {pod.scheduler_name}; the configuration has {', '.join(names)}"
        )
    if any(one.fields["kind"] == "Pod" and is_dumped(one.fields) for one in plan.manifests):
        return trio.run(_fit_as_it_stands, plan, fitting, pod)
    found: list[Fit] = []

    def inspect(_store: ObjectStore, scheduler: Scheduler, _now: datetime) -> None:
        found.append(fit_copies(scheduler, pod, fitting.count, fitting.progress))

    run_plan(evolve(plan, inspect=inspect), lambda _done, _of: None)
    return found[0]


async def _admitted(plan: Plan, template: Manifest) -> Pod:
    return admitted(template, plan.manifests, ApiServer(trio_clock(plan.begins), plan.seed))


async def _fit_as_it_stands(plan: Plan, fitting: Fitting, pod: Pod) -> Fit:
    async with assembled(plan.settings, plan.begins) as assembly:
        objects = objects_of_dump(plan.manifests)
        fill(assembly, snapshot_of(objects, assembly.loaded.wanted_kinds))
        return fit_copies(assembly.scheduler, pod, fitting.count, fitting.progress)
