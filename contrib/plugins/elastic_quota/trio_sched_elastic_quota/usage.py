"""What namespaces use, and what is on its way: room that is being made for pods, and pods that are being evicted."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from attrs import define, field, frozen

from trio_sched.plugin_api import Handle, NodeColumns, NodeView, Pod, started_at
from trio_sched_elastic_quota.resource import PODS, QUOTA, Limits, Quota, effective, requested

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
    evicted: dict[str, Pod] = field(factory=dict)
    """By UID: pods of which the watch does not show yet that they are being deleted."""
    limits: dict[str, Limits] = field(factory=dict)
    """By namespace."""
    ignored: list[Quota] = field(factory=list)
    _version: int = -1

    def look(self, handle: Handle) -> dict[str, Limits]:
        """The limits by namespace, as of now."""
        version = handle.version(QUOTA)
        if version != self._version:
            self.limits, self.ignored = effective(handle.objects(QUOTA))
            self._version = version
        return self.limits

    def claimed(self, handle: Handle, resource: str, without: Pod) -> int:
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

    def leaving(self, handle: Handle) -> Iterable[Pod]:
        """Pods that were evicted a moment ago, and that still count as running."""
        for uid, pod in list(self.evicted.items()):
            seen = handle.object("Pod", pod.name, pod.namespace)
            if seen is None or seen.uid != uid or seen.metadata.deletion_timestamp is not None:
                del self.evicted[uid]
        return self.evicted.values()


def used(nodes: NodeColumns, limits: Limits, resource: str) -> int:
    """What the pods of the namespace that have a node request."""
    if resource == PODS:
        return int(nodes.pod_counts(limits.selector).sum())
    return nodes.total_requests(limits.selector, resource)


class Reclaimable:
    """Which pods may be evicted for a pod whose namespace uses less than it is guaranteed.

    Those of namespaces that use more than they are guaranteed, as long as what is left is not less than that.
    """

    def __init__(self, pod: Pod, limits: Mapping[str, Limits], handle: Handle, shared: Shared) -> None:
        self._pod, self._limits = pod, limits
        self._wanted = requested(pod)
        nodes = handle.nodes
        self._spare: dict[str, dict[str, int]] = {}
        for namespace, one in limits.items():
            if namespace != pod.namespace and not one.problem:
                spare = {
                    resource: used(nodes, one, resource) - one.guaranteed(resource)
                    for resource in self._wanted
                    if one.limits(resource)
                }
                if any(amount > 0 for amount in spare.values()):
                    self._spare[namespace] = spare
        self.leaving = {one.uid: one for one in (*_terminating(handle, self._spare), *shared.leaving(handle))}
        """By UID: pods that still count as running, but are being deleted."""
        for leaving in self.leaving.values():
            _take(self._spare.get(leaving.namespace), requested(leaving))

    def __bool__(self) -> bool:
        spare = any(amount > 0 for spare in self._spare.values() for amount in spare.values())
        return spare or bool(self.leaving)

    def on_node(self, node: NodeView) -> list[Pod]:
        """The pods on *node* that may be evicted together, chosen by low priority and youth; and those that leave."""
        spare = {namespace: dict(amounts) for namespace, amounts in self._spare.items()}
        found = []
        for pod in sorted(node.pods, key=lambda one: (-one.priority, started_at(one)), reverse=True):
            if pod.uid in self.leaving:
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


def _terminating(handle: Handle, namespaces: Collection[str]) -> Iterable[Pod]:
    if not namespaces:
        return ()
    return [
        pod
        for pod in handle.objects("Pod")
        if pod.metadata.deletion_timestamp is not None and pod.node_name and pod.namespace in namespaces
    ]


def _take(left: dict[str, int] | None, amounts: Mapping[str, int]) -> None:
    if left is not None:
        for resource in left:
            left[resource] -= amounts.get(resource, 0)
