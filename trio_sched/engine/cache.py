"""Which pods there are: those without a node, and which are on which node, confirmed by the API server or assumed.

A pod is assumed (decided, not yet confirmed) or added (confirmed), by UID::

    absent ──assume──▶ assumed ──add──▶ added ──remove──▶ absent
       ▲                  │ forget,         ▲ │ update
       └──────────────────┘ remove          └─┘

A pod that another scheduler bound goes from absent to added.

Columns follow every step, so the next pod is decided on what is true now.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, KeysView
from itertools import islice

from attrs import define, field
from msgspec import structs

from trio_sched.engine.pod_group_state import PodGroupStates
from trio_sched.engine.unassigned_pods import UnassignedPods
from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.pod import NodeAllocatableResourceClaimStatus, Pod
from trio_sched.objects.pod_requests import (
    DEFAULT_OPTIONS,
    PodResources,
    ResourceOptions,
    has_same_resources,
    pod_resources,
)
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_info import PodInfo


class CacheError(TrioSchedError):
    """A step that the pod's state does not allow; nothing was changed."""


@define(eq=False)
class CachedPod:
    """A pod with its node; *assumed* until the API server says so too."""

    pod_info: PodInfo
    node_name: str
    """Never another one: a pod that gets another node is another `CachedPod`."""
    assumed: bool

    @property
    def pod(self) -> Pod:
        """The newest version that is known."""
        return self.pod_info.pod

    @property
    def pod_on_node(self) -> Pod:
        """The pod with its node, which the API server may not know yet, for hint functions."""
        pod = self.pod_info.pod
        if pod.node_name == self.node_name:
            return pod
        return structs.replace(pod, spec=structs.replace(pod.spec, node_name=self.node_name))


@define(eq=False)
class Cache:
    """Nodes, the pods on them, and the pods without a node; only the cache writes the states of pod groups."""

    options: ResourceOptions = DEFAULT_OPTIONS
    table: NodeTable = field(factory=NodeTable)
    assumed_count: int = field(default=0, init=False)
    """How many pods are assumed."""
    groups: PodGroupStates = field(factory=PodGroupStates)
    unassigned: UnassignedPods = field(factory=UnassignedPods)
    evictions: Counter[str] = field(factory=Counter, init=False)
    """How many pods were evicted from each node that is there, as far as their conditions said so."""
    _pods: dict[str, CachedPod] = field(factory=dict)
    _pods_of_missing_nodes: dict[str, dict[str, PodInfo]] = field(factory=dict)
    """Pods on nodes that do not exist (yet, or any more), by node name."""

    def __len__(self) -> int:
        return len(self._pods)

    def __iter__(self) -> Iterator[CachedPod]:
        return iter(self._pods.values())

    def uids(self) -> KeysView[str]:
        """The pods on nodes, in the order in which they came."""
        return self._pods.keys()

    def assumed_uids(self) -> set[str]:
        """The pods that are assumed: nearly always among the newest, so that few are looked at."""
        newest_first = (uid for uid, one in reversed(self._pods.items()) if one.assumed)
        return set(islice(newest_first, self.assumed_count))

    def get(self, uid: str) -> CachedPod | None:
        """The pod *uid*, if it is on a node."""
        return self._pods.get(uid)

    def is_assumed(self, uid: str) -> bool:
        """Whether the pod *uid* is assumed and not yet confirmed."""
        cached = self._pods.get(uid)
        return cached is not None and cached.assumed

    # --- pods without a node ----------------------------------------------------------------------------------------

    def put_unassigned(self, pod: Pod) -> None:
        """A pod without a node is new, or has another version."""
        self.unassigned.put(pod)
        self.groups.add(pod)

    def drop_unassigned(self, pod: Pod) -> None:
        """A pod without a node is gone, or no profile schedules it any more."""
        self.unassigned.drop(pod)
        self.groups.remove(pod)

    def pod_group_changed(self, key: str) -> None:
        """The object of the pod group called *key* has changed."""
        self.groups.note_change(key)

    # --- pods on nodes ----------------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node_name: str) -> None:
        """*pod* was decided to run on *node_name*; from now on it counts there.

        Raises:
            CacheError: it is on a node already.
        """
        if pod.uid in self._pods:
            raise CacheError(f"pod {pod.uid}({pod.key}) is in the cache, so can't be assumed")
        self._insert(pod, node_name, pod_resources(pod, self.options), assumed=True)
        self.groups.assume(pod, node_name)

    def forget(self, uid: str) -> bool:
        """The pod *uid* was not bound after all; returns whether it was still assumed.

        Raises:
            CacheError: it is confirmed, so it cannot be forgotten.
        """
        cached = self._pods.get(uid)
        if cached is None:
            return False
        if not cached.assumed:
            raise CacheError(f"pod {uid}({cached.pod.key}) wasn't assumed so cannot be forgotten")
        self._take_out(cached)
        self.groups.forget(cached.pod)
        return True

    def add(self, pod: Pod) -> None:
        """The API server says that *pod* is on its node.

        Raises:
            CacheError: that was known already.
        """
        self.unassigned.drop(pod)
        cached = self._pods.get(pod.uid)
        if cached is None:
            self._insert(pod, pod.node_name, pod_resources(pod, self.options), assumed=False)
        elif not cached.assumed:
            raise CacheError(f"pod {pod.uid}({pod.key}) was already in added state")
        else:
            cached.assumed = False
            self.assumed_count -= 1
            self._replace(cached, pod)
        self.groups.add(pod)

    def update(self, pod: Pod) -> None:
        """A confirmed pod has changed.

        Raises:
            CacheError: it is not confirmed.
        """
        cached = self._pods.get(pod.metadata.uid)
        if cached is None:
            raise CacheError(f"pod {pod.uid}({pod.key}) is not added to scheduler cache, so cannot be updated")
        if cached.assumed:
            raise CacheError(f"assumed pod {pod.uid}({pod.key}) should not be updated")
        self._replace(cached, pod)
        self.groups.add(pod)

    def remove(self, uid: str) -> Pod:
        """The pod *uid* is gone; returns it as it was known.

        Raises:
            CacheError: it is not here.
        """
        cached = self._pods.get(uid)
        if cached is None:
            raise CacheError(f"pod {uid} is not found in scheduler cache, so cannot be removed from it")
        self._take_out(cached)
        self.groups.remove(cached.pod)
        return cached.pod

    def _replace(self, cached: CachedPod, pod: Pod) -> None:
        """A newer version; the columns are left alone if it takes the same from the same node, as nearly always."""
        if cached.node_name == pod.spec.node_name:
            if has_same_resources(cached.pod_info.pod, pod):
                self._renew(cached, pod)
                return
            resources = pod_resources(pod, self.options)
            if resources == cached.pod_info.resources:
                self._renew(cached, pod)
                return
        else:
            resources = pod_resources(pod, self.options)
        self._take_out(cached)
        self._insert(pod, pod.node_name, resources, assumed=False)

    def _renew(self, cached: CachedPod, pod: Pod) -> None:
        row = self.table.row_of.get(cached.node_name)
        if row is not None:
            self.table.update_pod(row, cached.pod_info, pod)
        else:
            cached.pod_info.pod = pod

    def _insert(self, pod: Pod, node_name: str, resources: PodResources, *, assumed: bool) -> None:
        pod_info = PodInfo(pod, resources)
        self._pods[pod.uid] = CachedPod(pod_info, node_name, assumed)
        self.assumed_count += assumed
        row = self.table.row_of.get(node_name)
        if row is not None:
            self.table.add_pod(row, pod_info)
        else:
            self._pods_of_missing_nodes.setdefault(node_name, {})[pod.uid] = pod_info

    def _take_out(self, cached: CachedPod) -> None:
        uid = cached.pod.uid
        del self._pods[uid]
        self.assumed_count -= cached.assumed
        row = self.table.row_of.get(cached.node_name)
        if row is not None:
            self.table.remove_pod(row, uid)
            return
        missing = self._pods_of_missing_nodes[cached.node_name]
        del missing[uid]
        if not missing:
            del self._pods_of_missing_nodes[cached.node_name]

    # --- nodes ------------------------------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Add or update a node; pods that were bound to it before it was known count on it from now on."""
        if node.name in self.table.row_of:
            self.table.update_node(node)
        else:
            self.table.add_node(node, self._pods_of_missing_nodes.get(node.name, {}).values())
            self._pods_of_missing_nodes.pop(node.name, None)

    def rebuild_node(self, name: str) -> None:
        """Rebuild the row of a node from the node and its pods; they are counted as their objects say now."""
        row = self.table.row_of[name]
        node = self.table.nodes[row]
        pods = self.table.remove_node(name)
        for pod_info in pods:
            pod_info.resources = pod_resources(pod_info.pod, self.options)
        self.table.add_node(node, pods)

    def remove_node(self, name: str) -> None:
        """A node is gone; its pods stay in the cache until they are gone too.

        Raises:
            CacheError: there is no such node.
        """
        if name not in self.table.row_of:
            raise CacheError(f"node {name} is not found")
        self.evictions.pop(name, None)
        pods = self.table.remove_node(name)
        if pods:
            self._pods_of_missing_nodes[name] = {pod_info.pod.uid: pod_info for pod_info in pods}


def with_device_claims(pod: Pod, claims: tuple[NodeAllocatableResourceClaimStatus, ...] | None) -> Pod:
    """*pod* whose devices take *claims* of its node, and nothing else, whatever an earlier attempt has written."""
    if pod.status.node_allocatable_resource_claim_statuses == claims:
        return pod
    return structs.replace(pod, status=structs.replace(pod.status, node_allocatable_resource_claim_statuses=claims))
