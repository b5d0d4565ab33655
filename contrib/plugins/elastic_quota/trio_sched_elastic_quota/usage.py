"""What namespaces use, and what is on its way: room that is being made for pods, and pods that are being evicted."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import define, field, frozen

from trio_sched.plugin_api import Handle, NodeColumns, NodeView, Pod, PodSelector, started_at
from trio_sched_elastic_quota.resource import PODS, QUOTA, Limits, Pool, Quota, effective, pools, requested

EVICTION_SECONDS = 30.0
"""How long the watch may take to show that a pod is being deleted; after that the deletion has failed."""
CLAIM_SECONDS = 120.0
"""How long room that was made for a pod is kept free of borrowers."""


@frozen(eq=False)
class Claim:
    """Room that is being made for a pod by evicting others."""

    pod: Pod
    amounts: Mapping[str, int]
    until: float


@define(eq=False)
class Shared:
    """What the instances of all profiles share."""

    claims: dict[str, Claim] = field(factory=dict)
    """By UID of the pod."""
    evicted: dict[str, tuple[Pod, float]] = field(factory=dict)
    """By UID: pods of which the watch does not show yet that they are being deleted, and until when it may take."""
    limits: dict[str, Limits] = field(factory=dict)
    """By namespace."""
    pools: dict[str, Pool] = field(factory=dict)
    """By resource."""
    ignored: list[Quota] = field(factory=list)
    _version: int = -1

    def look(self, handle: Handle) -> dict[str, Limits]:
        """The limits by namespace, as of now."""
        version = handle.version(QUOTA)
        if version != self._version:
            self.limits, self.ignored = effective(handle.objects(QUOTA))
            self.pools = pools(self.limits.values())
            self._version = version
        return self.limits

    def lendable(self, handle: Handle, resource: str, nodes: NodeColumns, borrower: Pod) -> int:
        """How much of all guarantees together is not used, nor kept for pods other than *borrower*."""
        pool = self.pools[resource]
        return pool.guaranteed - used(nodes, pool.selector, resource) - self._claimed(handle, resource, borrower)

    def _claimed(self, handle: Handle, resource: str, without: Pod) -> int:
        """How much of *resource* is kept for pods other than *without*."""
        if not self.claims:
            return 0
        now = handle.now()
        total = 0
        for uid, claim in list(self.claims.items()):
            pending = handle.pending_pod(claim.pod.namespace, claim.pod.name)
            if now >= claim.until or pending is None or pending.pod.uid != uid:
                del self.claims[uid]
            elif uid != without.uid:
                total += claim.amounts.get(resource, 0)
        return total

    def leaving(self, handle: Handle) -> list[Pod]:
        """Pods that were evicted a moment ago, and that still count as running."""
        now = handle.now()
        for uid, (pod, until) in list(self.evicted.items()):
            seen = handle.object("Pod", pod.name, pod.namespace)
            if now >= until or seen is None or seen.uid != uid or seen.metadata.deletion_timestamp is not None:
                del self.evicted[uid]
        return [pod for pod, _until in self.evicted.values()]


def used(nodes: NodeColumns, selector: PodSelector, resource: str) -> int:
    """What the pods of *selector* that have a node request."""
    if resource == PODS:
        return int(nodes.pod_counts(selector).sum())
    return nodes.total_requests(selector, resource)


class Reclaimable:
    """Which pods may be evicted for a pod whose namespace uses less than it is guaranteed.

    Those of namespaces that use more than they are guaranteed, as long as what is left is not less than that.
    """

    def __init__(self, pod: Pod, resources: Collection[str], handle: Handle, shared: Shared) -> None:
        nodes = handle.nodes
        self._spare: dict[str, dict[str, int]] = {}
        """Namespace → resource → how much of it is borrowed, of the *resources* that are guaranteed to the pod."""
        for namespace, one in shared.look(handle).items():
            if namespace != pod.namespace and not one.problem:
                spare = {
                    resource: used(nodes, one.staying, resource) - one.guaranteed(resource)
                    for resource in resources
                    if one.limits(resource)
                }
                if any(amount > 0 for amount in spare.values()):
                    self._spare[namespace] = spare
        self._evicted = {one.uid: one for one in shared.leaving(handle)}
        for leaving in self._evicted.values():
            _take(self._spare.get(leaving.namespace), requested(leaving))

    def __bool__(self) -> bool:
        return any(amount > 0 for spare in self._spare.values() for amount in spare.values())

    def is_leaving(self, pod: Pod) -> bool:
        """Whether the pod is being deleted, or will be in a moment."""
        return pod.metadata.deletion_timestamp is not None or pod.uid in self._evicted

    def on_node(self, node: NodeView) -> list[Pod]:
        """The pods on *node* that may be evicted together, chosen by low priority and youth; and those that leave."""
        spare = {namespace: dict(amounts) for namespace, amounts in self._spare.items()}
        found = []
        for pod in sorted(node.pods, key=lambda one: (-one.priority, started_at(one)), reverse=True):
            if self.is_leaving(pod):
                found.append(pod)
                continue
            left = spare.get(pod.namespace)
            if left is None:
                continue
            amounts = requested(pod)
            if any(0 < amounts.get(resource, 0) <= amount for resource, amount in left.items()):
                found.append(pod)
                _take(left, amounts)
        return found


def _take(left: dict[str, int] | None, amounts: Mapping[str, int]) -> None:
    if left is not None:
        for resource in left:
            left[resource] -= amounts.get(resource, 0)
