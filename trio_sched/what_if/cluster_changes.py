"""Changes of a simulated cluster, as kubectl makes them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Final

import msgspec
from attrs import define

from trio_sched.documents.json_values import Json
from trio_sched.embedded import EmbeddedCaller
from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.kube_client.connection import MERGE_PATCH, KubeClient, connect
from trio_sched.kube_client.errors import ApiError, NotFound, TooManyRequests
from trio_sched.kube_client.pods import evict_pod
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulation.simulated_run import EMBEDDED, RunningCluster
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.kubelets.pod_states import is_terminating
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject
from trio_sched.simulator.storage.selectors import SelectorError, label_selector
from trio_sched.simulator.validation.core.annotations import MIRROR

_APPLY: Final = b"Content-Type: application/apply-patch+yaml\r\n"
_MANAGER: Final = "trio-sched-what-if"


class NoSuchNode(TrioSchedError):
    """A node that is named, or selected, is not there."""


class ChangeRefused(TrioSchedError):
    """The API server of the copy refuses the change, as that of the cluster would."""


@define(eq=False)
class ClusterChanges:
    """Changes *running* through its API server."""

    running: RunningCluster
    client: KubeClient

    @property
    def store(self) -> ObjectStore:
        """The objects as they are now."""
        return self.running.server.store

    async def settle(self) -> bool:
        """Wait until the cluster has come to rest; returns False if it does not."""
        return await self.running.settle()

    def pending(self) -> int:
        """How many pods have no node, and a scheduler here would give them one: none is gated or ending."""
        return sum(
            not spec.get("nodeName")
            and not spec.get("schedulingGates")
            and spec.get("schedulerName", "default-scheduler") in self.running.schedulers
            and not is_terminating(pod.fields)
            and not is_finished(pod.fields)
            for pod in self.store.collection("pods").objects.values()
            for spec in [pod.fields["spec"]]
        )

    async def set_cordoned(self, node: str, *, cordoned: bool) -> None:
        """Cordon or uncordon *node*."""
        body = msgspec.json.encode({"spec": {"unschedulable": cordoned or None}})
        await self.client.call(b"PATCH", f"/api/v1/nodes/{node}".encode(), headers=MERGE_PATCH, body=body)

    async def delete_node(self, node: str) -> None:
        """Delete the object of *node*; its pods are deleted by the garbage collector of pods."""
        await self.client.call(b"DELETE", f"/api/v1/nodes/{node}".encode())

    async def evict(self, pod: StoredObject) -> str:
        """Evict *pod*; returns why it is refused, or nothing."""
        namespace, _slash, name = pod.key.partition("/")
        try:
            await evict_pod(self.client, namespace=namespace, name=name, uid=pod.fields["metadata"]["uid"])
        except NotFound:
            return ""
        except TooManyRequests as refused:
            return _why(refused)
        except ApiError as refused:
            return str(refused)
        return ""

    async def apply(self, path: str, fields: Json) -> None:
        """Create or change an object, as a server-side apply that takes over the fields of other managers.

        Raises:
            ChangeRefused: the object is refused.
        """
        target = f"{path}?fieldManager={_MANAGER}&force=true".encode()
        try:
            await self.client.call(b"PATCH", target, headers=_APPLY, body=msgspec.json.encode(fields))
        except ApiError as refused:
            raise ChangeRefused(str(refused)) from refused


def _why(refused: ApiError) -> str:
    """What protects a pod: the message of the cause, which names the budget."""
    causes = refused.details.causes if refused.details is not None else None
    return "; ".join(one.message for one in causes or () if one.message) or str(refused)


@asynccontextmanager
async def changes_of(running: RunningCluster) -> AsyncGenerator[ClusterChanges, None]:
    """What changes *running*, while in the block."""
    caller = EmbeddedCaller(running.server, EMBEDDED.server)
    async with connect(EMBEDDED, component="what-if", qps=-1, caller=caller) as client:
        yield ClusterChanges(running, client)


def select_nodes(store: ObjectStore, names: Iterable[str], selector: str) -> list[str]:
    """The names of the nodes that are asked about.

    Args:
        store: the objects.
        names: of nodes.
        selector: of their labels; empty: none is given.

    Raises:
        NoSuchNode: a name is that of no node, or the selector selects none.
    """
    nodes = store.collection("nodes")
    found = dict.fromkeys(names)
    for name in found:
        if name not in nodes.objects:
            raise _no_such_node(store, name)
    if selector:
        try:
            matches = label_selector(selector)
        except SelectorError as problem:
            raise NoSuchNode(f"{selector!r} is no label selector: {problem}") from problem
        selected = [one.key for one in nodes.in_order() if matches is None or matches(one.fields)]
        if not selected:
            raise NoSuchNode(f"no node has the labels {selector!r}")
        found |= dict.fromkeys(selected)
    return list(found)


def _no_such_node(store: ObjectStore, name: str) -> NoSuchNode:
    """The error that there is no node *name*, with the names that come near."""
    known = store.collection("nodes").sorted_keys()
    near = nearest_name(name, known)
    hint = f"did you mean {near}?" if near else f"there are {some_names(known)}" if known else "there are no nodes"
    return NoSuchNode(f"there is no node {name}; {hint}")


def pods_of_node(store: ObjectStore, node: str) -> list[StoredObject]:
    """The pods on *node* that have not finished and are not ending, in order."""
    return [
        pod
        for pod in store.collection("pods").in_order()
        if pod.fields["spec"].get("nodeName") == node and not is_finished(pod.fields) and not is_terminating(pod.fields)
    ]


def stays_on_node(pod: StoredObject) -> bool:
    """Whether a drain leaves *pod* where it is: a pod of a DaemonSet, or a static one."""
    owner = controller_of(pod.fields)
    annotations = pod.fields["metadata"].get("annotations") or {}
    return MIRROR in annotations or (owner is not None and owner.get("kind") in ("DaemonSet", "Node"))


def is_unmanaged(pod: StoredObject) -> bool:
    """Whether a drain would end *pod* for good, because no controller makes it again."""
    return not stays_on_node(pod) and controller_of(pod.fields) is None
