"""How much of nodes, pools and zones is requested, and how much of the rest no pod can use."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import define, field, frozen

from trio_sched.objects.node import Node
from trio_sched.objects.node_amounts import node_amounts
from trio_sched.objects.node_pools import pool_name
from trio_sched.objects.pod_requests import ResourceAmounts, is_extended

ZONE_LABEL: Final = "topology.kubernetes.io/zone"


@frozen(kw_only=True)
class Usage:
    """The usage of one node, or of several; milli-CPU, bytes, counts."""

    pods: int
    pods_allocatable: int
    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    def free(self, resource: str) -> int:
        """What can still be requested; 0 for nodes with more than fits."""
        return max(self.allocatable.get(resource, 0) - self.requested.get(resource, 0), 0)

    def share(self, resource: str) -> float:
        """What is requested of what there is; 0 if there is none of it."""
        allocatable = self.allocatable.get(resource, 0)
        return self.requested.get(resource, 0) / allocatable if allocatable else 0.0


@frozen(kw_only=True)
class NodeReport:
    """One node at the end."""

    name: str
    pool: str
    zone: str
    usage: Usage

    @property
    def use(self) -> float:
        """The share of the resource that is used most."""
        return max((self.usage.share(name) for name in self.usage.allocatable), default=0.0)


@frozen(kw_only=True)
class NodeGroup:
    """The nodes of a pool or zone."""

    name: str
    nodes: int
    usage: Usage
    fragmentation: Mapping[str, float | None]
    """Resource → the share of what is free that lies on nodes without room for a typical pod that requests it.

    None if nothing is free, or no pod requests it.
    """


@define(eq=False)
class TypicalPods:
    """For each resource the median of the pods that request it: of it, and of their CPU and memory."""

    requests: Sequence[ResourceAmounts]
    _known: dict[str, Mapping[str, int] | None] = field(factory=dict, init=False)

    def of(self, resource: str) -> Mapping[str, int] | None:
        """The requests of the typical pod; None if no pod requests *resource*."""
        if resource not in self._known:
            asking = [one for one in self.requests if one.amount(resource) > 0]
            median = {name: _median([one.amount(name) for one in asking]) for name in ("cpu", "memory", resource)}
            self._known[resource] = median if asking else None
        return self._known[resource]


def _median(amounts: list[int]) -> int:
    """The greater of the two in the middle; 0 without any."""
    return sorted(amounts)[len(amounts) // 2] if amounts else 0


def report_node(node: Node, requests: Sequence[ResourceAmounts]) -> NodeReport:
    """What is used of *node* by its pods, those that have not finished, whose *requests* are given."""
    amounts, pods_allocatable = node_amounts(node)
    names = ("cpu", "memory", *(name for name, _amount in amounts.scalars if is_extended(name)))
    requested = {name: sum(wanted.amount(name) for wanted in requests) for name in names}
    return NodeReport(
        name=node.name,
        pool=pool_name(node) or "-",
        zone=node.labels.get(ZONE_LABEL, "-"),
        usage=Usage(
            pods=len(requests),
            pods_allocatable=pods_allocatable,
            requested=requested,
            allocatable={name: amounts.amount(name) for name in names},
        ),
    )


def group_nodes(
    nodes: Sequence[NodeReport], name_of: Callable[[NodeReport], str], typical: TypicalPods
) -> Iterator[NodeGroup]:
    """Groups of *nodes* with the same name, in the order of their names."""
    groups: dict[str, list[NodeReport]] = {}
    for node in nodes:
        groups.setdefault(name_of(node), []).append(node)
    for name, members in sorted(groups.items()):
        usages = [node.usage for node in members]
        usage = total_usage(usages)
        fragmentation = {resource: _fragmentation(usages, resource, typical) for resource in usage.allocatable}
        yield NodeGroup(name=name, nodes=len(members), usage=usage, fragmentation=fragmentation)


def _fragmentation(usages: Iterable[Usage], resource: str, typical: TypicalPods) -> float | None:
    pod = typical.of(resource)
    free = stranded = 0
    for usage in usages:
        free += usage.free(resource)
        if pod is not None and (
            usage.pods >= usage.pods_allocatable or any(usage.free(name) < amount for name, amount in pod.items())
        ):
            stranded += usage.free(resource)
    return stranded / free if pod is not None and free else None


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum of *usages*."""
    pods = pods_allocatable = 0
    requested: Counter[str] = Counter()
    allocatable: Counter[str] = Counter()
    for usage in usages:
        pods += usage.pods
        pods_allocatable += usage.pods_allocatable
        requested.update(usage.requested)
        allocatable.update(usage.allocatable)
    return Usage(pods=pods, pods_allocatable=pods_allocatable, requested=requested, allocatable=allocatable)
