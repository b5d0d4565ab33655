"""Pod groups for tests of whole clusters: their objects, a controller for them, and who was ever partial."""

from contextlib import AbstractAsyncContextManager
from typing import Any, Final

import msgspec
import trio
from attrs import define, field

from trio_sched.objects.pod import Pod
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import pod, pod_group
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused

GANG_GATES = {"GenericWorkload": True, "GangScheduling": True}
GATES_OF: Final = {
    "1.36": GANG_GATES | {"WorkloadAwarePreemption": True},
    "1.37": {"GenericWorkload": True},
}
"""By the version of Kubernetes: what is needed for gangs, and preemption for them."""


def cluster_of(version: str, **options: Any) -> AbstractAsyncContextManager[VirtualCluster]:
    """A virtual cluster of that version of Kubernetes, API server and scheduler, which schedules gangs."""
    gates = GATES_OF[version] | options.pop("gates", {})
    return virtual_cluster(emulated_version=version, kubernetes_version=version, gates=gates, **options)


def member(name: str, group: str, **fields: Any) -> Pod:
    """A pod of a group; *fields* are those of the builder `pod`."""
    return pod(name, group=group, **fields)


def condition_of(cluster: VirtualCluster, group: str) -> dict[str, Any]:
    """The condition of a group that says whether it is scheduled; empty if it has none."""
    stored = cluster.api.store.get("podgroups.scheduling.k8s.io", f"default/{group}")
    assert stored is not None
    conditions = (msgspec.json.decode(stored.encoded(b"{")).get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] in _SCHEDULED), {})


_SCHEDULED: Final = ("PodGroupScheduled", "PodGroupInitiallyScheduled")
"""As 1.36 calls it, and 1.37."""


@define(eq=False)
class Gang:
    """One gang: what it needs, and what became of it."""

    name: str
    size: int
    created_at: float
    complete_at: float | None = None
    """When all of its pods were bound for the first time."""
    done: bool = False
    """Its pods have run long enough, and are being deleted."""
    made: int = 0
    """Pods that were created for it so far."""
    partial_since: float | None = None
    longest_partial: float = 0.0


@define(eq=False)
class Gangs:
    """Follows every bind and deletion; knows for how long each gang had some of its pods bound and not all."""

    cluster: VirtualCluster
    by_name: dict[str, Gang] = field(factory=dict)
    _bound: dict[str, set[str]] = field(factory=dict)
    """Gang → UIDs of its pods that are bound and not being deleted."""

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection("pods").listen(self._see)

    def _see(self, change: Change) -> None:
        fields = change.current.fields
        name = (fields["spec"].get("schedulingGroup") or {}).get("podGroupName")
        if name not in self.by_name:
            return
        gang, bound, uid = self.by_name[name], self._bound.setdefault(name, set()), fields["metadata"]["uid"]
        is_leaving = change.type == "DELETED" or "deletionTimestamp" in fields["metadata"]
        if fields["spec"].get("nodeName") and not is_leaving:
            bound.add(uid)
        else:
            bound.discard(uid)
        now, is_partial = trio.current_time(), 0 < len(bound) < gang.size and not gang.done
        if len(bound) == gang.size and gang.complete_at is None:
            gang.complete_at = now
        if is_partial and gang.partial_since is None:
            gang.partial_since = now
        elif not is_partial and gang.partial_since is not None:
            gang.longest_partial = max(gang.longest_partial, now - gang.partial_since)
            gang.partial_since = None

    def bound(self, name: str) -> int:
        """How many pods of a gang are bound."""
        return len(self._bound.get(name, ()))

    async def create(self, name: str, size: int, *, of_group: dict[str, Any] | None = None, **fields: Any) -> Gang:
        """Create a gang and its pods; *of_group* are fields of the group, those of the builder `pod_group`."""
        gang = await self.create_group(name, size, **of_group or {})
        for _ in range(size):
            await self.add_pod(gang, **fields)
        return gang

    async def create_group(self, name: str, size: int, **fields: Any) -> Gang:
        """Create a gang without pods; *fields* are those of the builder `pod_group`."""
        gang = self.by_name[name] = Gang(name, size, trio.current_time())
        await self.cluster.create(pod_group(name, min_count=size, **fields))
        return gang

    async def add_pod(self, gang: Gang, **fields: Any) -> None:
        """Create another pod of a gang."""
        gang.made += 1
        await self.cluster.create(member(f"{gang.name}-{gang.made}", gang.name, **{"cpu": "1", **fields}))

    async def run_controller(self, run_seconds: float) -> None:
        """Replace pods that were deleted; delete those of gangs that have been complete for *run_seconds*."""
        while not all(gang.done for gang in self.by_name.values()):
            await trio.sleep(5.0)
            alive: dict[str, list[Pod]] = {}
            for one in self.cluster.pods():
                if one.metadata.deletion_timestamp is None and one.spec.scheduling_group is not None:
                    alive.setdefault(one.spec.scheduling_group.pod_group_name or "", []).append(one)
            for gang in list(self.by_name.values()):
                pods = alive.get(gang.name, [])
                if gang.done:
                    continue
                is_complete = self.bound(gang.name) == gang.size
                if (
                    is_complete
                    and gang.complete_at is not None
                    and trio.current_time() > gang.complete_at + run_seconds
                ):
                    gang.done = True
                    for one in pods:
                        await self._delete(one)
                    continue
                for _ in range(gang.size - len(pods)):
                    await self.add_pod(gang)

    async def _delete(self, one: Pod) -> None:
        try:
            await self.cluster.delete(one, grace_seconds=0)
        except Refused as refused:
            if refused.code != 404:
                raise
