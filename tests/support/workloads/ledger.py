"""Checks on whole clusters: the binds in the API server's history, and what a scheduler still holds."""

from typing import Any

import trio
from attrs import define, field

from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing.cluster import VirtualCluster

_OVER = ("Succeeded", "Failed")


def _requests(fields: dict[str, Any]) -> dict[str, int]:
    """What a pod takes from its node, added up without any of the scheduler's code."""
    total = {"cpu": 0, "memory": 0, "pods": parse_nano("1")}
    for container in fields["spec"]["containers"]:
        for name, amount in ((container.get("resources") or {}).get("requests") or {}).items():
            total[name] = total.get(name, 0) + parse_nano(amount)
    return total


@define(eq=False)
class Ledger:
    """Follows the API server's history, every change of it.

    Attributes:
        binds: uid → every (time, node) that the pod was put on; more than one would be a second binding.
        overcommitted: moments at which a node had to hold more than it can.
    """

    cluster: VirtualCluster
    binds: dict[str, list[tuple[float, str]]] = field(factory=dict)
    overcommitted: list[str] = field(factory=list)
    _node_of: dict[str, str] = field(factory=dict)
    _taken: dict[str, dict[str, dict[str, int]]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        pods = self.cluster.api.store.collection("pods")
        for stored in pods.objects.values():
            self.see(Change("ADDED", stored, None))
        pods.listen(self.see)

    def see(self, change: Change) -> None:
        fields = change.current.fields
        uid, node = fields["metadata"]["uid"], fields["spec"].get("nodeName", "")
        if node and node != self._node_of.get(uid):
            self._node_of[uid] = node
            self.binds.setdefault(uid, []).append((trio.current_time(), node))
        if not node:
            return
        here = self._taken.setdefault(node, {})
        if change.type == "DELETED" or (fields.get("status") or {}).get("phase") in _OVER:
            here.pop(uid, None)
        elif uid not in here:
            here[uid] = _requests(fields)
            self._check(node, here)

    def _check(self, node: str, here: dict[str, dict[str, int]]) -> None:
        stored = self.cluster.api.store.get("nodes", node)
        if stored is None:
            return
        for name, most in stored.fields["status"]["allocatable"].items():
            taken = sum(requests.get(name, 0) for requests in here.values())
            if taken > parse_nano(most):
                self.overcommitted.append(f"{trio.current_time():.3f} {node}: {name} {taken} of {parse_nano(most)}")

    def check(self) -> None:
        """No pod was bound twice, no node held too much."""
        twice = {uid: binds for uid, binds in self.binds.items() if len(binds) > 1}
        overcommitted = self.overcommitted  # by itself: pytest shows all that is in an object, here whole clusters
        assert (twice, overcommitted) == ({}, [])

    @property
    def bound_at(self) -> list[float]:
        """When pods were bound, in order."""
        return sorted(moment for binds in self.binds.values() for moment, _node in binds)


def check_nothing_left(cluster: VirtualCluster) -> None:
    """Nothing is under way in the cluster's only scheduler, and its cache and queue agree with the cluster."""
    (process,) = cluster.schedulers
    assembly = process.assembly
    assert assembly is not None
    scheduler = assembly.scheduler
    assert scheduler.cache.assumed_count == 0
    assert len(scheduler.queue.in_flight) == 0
    assert list(scheduler.queue.in_flight) == []
    assert assembly.binding.waiting.by_uid == {}
    assert assembly.bind_pool.unfinished == 0
    assert assembly.status_patch_pool.unfinished == 0
    assert assembly.recorder.pool.unfinished == 0
    assert len(scheduler.queue.active) == 0
    assert len(assembly.scheduler.cache.unassigned) == len(scheduler.queue.unschedulable)
