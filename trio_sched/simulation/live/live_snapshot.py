"""The snapshot of a running cluster: listed read-only, with the rights of whoever asks, and no more than is needed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

import trio
from attrs import define, field

from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.errors import TrioSchedError
from trio_sched.explanation.limit_ranges import KIND as LIMIT_RANGE
from trio_sched.explanation.priorities import KIND as PRIORITY_CLASS
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Page
from trio_sched.kube_client.errors import Forbidden, NotFound, Unauthorized
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.kube_client.verbs import list_pages
from trio_sched.kube_client.versions.served_versions import ServedVersions
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import join_group, with_groups_of_workloads
from trio_sched.objects.runtime_class import KIND as RUNTIME_CLASS
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.simulation.explained_kinds import CLAIM_TEMPLATE, EXPLAINED_KINDS
from trio_sched.simulation.live.cluster_snapshot import ClusterSnapshot

_AT_ONCE: Final = 4
"""Kinds that are listed at the same time."""
_FEW_NAMESPACES: Final = 10
"""In so many namespaces what only matters there is listed one after the other; else in all at once."""
_STORAGE: Final = frozenset(
    {
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "StorageClass",
        "VolumeAttachment",
    }
)
_DEVICES: Final = frozenset({"DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceSlice"})
_OWNERS: Final = frozenset({"ReplicaSet", "ReplicationController", "Service", "StatefulSet"})
"""Kinds whose selectors count in scores only."""
_HIDES: Final[Mapping[str, str]] = {
    CLAIM_TEMPLATE: "whether that of a device claim exists is not known",
    LIMIT_RANGE: "they may refuse a request that is suggested",
    "Namespace": "pod affinity that selects namespaces may be judged wrongly",
    "PodDisruptionBudget": "which pods a budget protects is not known",
    PRIORITY_CLASS: "no other priority is tried",
    RUNTIME_CLASS: "what they select is taken for what pods select themselves",
    "PodGroup": "nothing is known of the pod's group",
    "CompositePodGroup": "nothing is known of the tree that the pod's group is in",
}
"""Kind → what is not known where it may not be listed."""


class NotListed(TrioSchedError):
    """The cluster does not show its pods or nodes to whoever asks."""


def is_needed(kind: Watched, pods: Collection[Pod], *, scores_matter: bool) -> bool:
    """Whether objects of *kind* matter for one of *pods*."""
    if kind in _OWNERS:
        return scores_matter
    if kind in _STORAGE:
        return any(pod.spec.volumes for pod in pods)
    if kind in _DEVICES:
        return any(pod.spec.resource_claims or _has_extended_resources(pod) for pod in pods)
    if kind == LIMIT_RANGE:
        return any(not pod.node_name for pod in pods)
    if kind == RUNTIME_CLASS:
        return any(pod.spec.runtime_class_name for pod in pods)
    if kind == CLAIM_TEMPLATE:
        return any(_waits_for_template(pod) for pod in pods)
    if kind in ("PodGroup", "CompositePodGroup"):
        return any(pod.spec.scheduling_group is not None for pod in pods)
    return True


def _waits_for_template(pod: Pod) -> bool:
    """Whether a claim of the pod is still to be made from a template."""
    made = {one.name for one in pod.status.resource_claim_statuses or ()}
    return any(one.resource_claim_template_name and one.name not in made for one in pod.spec.resource_claims or ())


def _has_extended_resources(pod: Pod) -> bool:
    containers = (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    return any("/" in name for one in containers for name in (one.resources.requests if one.resources else None) or ())


@define(eq=False)
class LiveListing:
    """Lists a running cluster.

    Attributes:
        client: of its API server.
        begin: is told what is done next.
        notes: what could not be listed, and what that may hide.
    """

    client: KubeClient
    begin: Callable[[str], None]
    notes: list[str] = field(factory=list, init=False)
    hidden: dict[str, str] = field(factory=dict, init=False)
    """The kinds that could not be listed, with their plural names."""
    not_served: set[str] = field(factory=set, init=False)
    """The kinds that the cluster does not have, in any version."""
    served: ServedVersions = field(init=False)
    """The versions in which kinds are listed."""

    def __attrs_post_init__(self) -> None:
        self.served = ServedVersions(self.client)

    async def pods(self) -> list[Pod]:
        """All pods that have not finished.

        Raises:
            NotListed: they may not be listed.
            KubeClientError: the cluster cannot be reached.
        """
        pods: list[Pod] = await self._required(POD_KIND)
        for pod in pods:
            join_group(pod)
        return pods

    async def snapshot(
        self, pods: Collection[Pod], asked: Collection[Pod], wanted: Iterable[Watched], *, scores_matter: bool
    ) -> ClusterSnapshot:
        """What a scheduler looks at, as far as it matters for the pods that are *asked* about.

        Args:
            pods: all pods, as `pods` gives them.
            asked: some of them.
            wanted: the kinds that plugins read.
            scores_matter: whether the scores of nodes are asked for, too.

        Raises:
            NotListed: the nodes may not be listed.
            KubeClientError: the cluster cannot be reached.
        """
        others: dict[Watched, list[Any]] = {}
        kinds: dict[Watched, Kind[Any]] = dict(EXPLAINED_KINDS.items())
        for resource in wanted:
            found = kind_of(resource)
            if found is not None:
                kinds[found[0]] = found[1]
        limit, namespaces = trio.CapacityLimiter(_AT_ONCE), {pod.namespace for pod in asked}

        async def list_one(name: Watched, kind: Kind[Any]) -> None:
            async with limit:
                # Of the others, pods of other namespaces matter as well.
                only = namespaces if name == LIMIT_RANGE and len(namespaces) <= _FEW_NAMESPACES else {""}
                others[name] = [
                    one for namespace in sorted(only) for one in await self._optional(name, kind, namespace)
                ]

        async with trio.open_nursery() as nursery:
            for name, kind in kinds.items():
                if is_needed(name, asked, scores_matter=scores_matter):
                    nursery.start_soon(list_one, name, kind)
                elif name != CLAIM_TEMPLATE:  # of which nobody is to say that there are none
                    others[name] = []
            nodes = await self._required(NODE_KIND)
        if CLAIM_TEMPLATE in self.hidden:
            del others[CLAIM_TEMPLATE]
        if "PodGroup" in others:
            are_served = "PodGroup" not in self.not_served
            others["PodGroup"] = with_groups_of_workloads(others["PodGroup"], pods, are_served=are_served)
        return ClusterSnapshot(nodes=nodes, pods=list(pods), others=others)

    async def _required(self, kind: Kind[Any]) -> list[Any]:
        try:
            return await self._listed(kind)
        except (Forbidden, Unauthorized) as refused:
            text = f"the cluster's {kind.plural} cannot be listed: {refused}"
            raise NotListed(f"{text}; ask for the right to list them in all namespaces") from refused
        except NotFound as missing:
            server = self.client.settings.server
            raise NotListed(f"{server} serves no {kind.plural}; is it the API server of a cluster?") from missing

    async def _optional(self, name: Watched, kind: Kind[Any], namespace: str) -> list[Any]:
        try:
            return await self._listed(kind, namespace)
        except NotFound:
            self.not_served.add(str(name))
            return []  # of a version of Kubernetes that does not have it
        except (Forbidden, Unauthorized):
            hides = _HIDES.get(str(name), "what depends on them may be judged wrongly")
            self.hidden[str(name)] = kind.plural
            where = f" in namespace {namespace}" if namespace else ""
            self.notes.append(f"you may not list {kind.plural}{where}; {hides}")
            return []

    async def _listed(self, kind: Kind[Any], namespace: str = "") -> list[Any]:
        found: list[Any] = []
        self.begin(f"listing {kind.plural}")

        def take(page: Page[Any]) -> None:
            if page.starts_over:
                found.clear()
            found.extend(page.objects)
            left = page.metadata.remaining_item_count
            if left:
                self.begin(f"listing {kind.plural}: {left:,} left")

        async def read(served: Kind[Any]) -> None:
            found.clear()
            await list_pages(self.client, served, take, namespace=namespace)

        await self.served.use(kind, read)
        return found
