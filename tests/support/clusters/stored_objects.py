from typing import Any

import msgspec

from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.simulator import ApiServer
from trio_sched.simulator.storage.object_store import Change


class Store:
    """Creates objects in the API server through a client, and reads what is stored."""

    def __init__(self, api: ApiServer, client: KubeClient) -> None:
        self.api, self.client = api, client

    async def create_pod(self, pod: Pod) -> Pod:
        body = {"apiVersion": "v1", "kind": "Pod", **msgspec.to_builtins(pod)}
        return await verbs.create(self.client, POD_KIND, msgspec.json.encode(body), namespace=pod.namespace)

    async def create_node(self, node: Node) -> Node:
        body = {"apiVersion": "v1", "kind": "Node", **msgspec.to_builtins(node)}
        return await verbs.create(self.client, NODE_KIND, msgspec.json.encode(body))

    def pod(self, name: str) -> dict[str, Any]:
        stored = self.api.store.get("pods", f"default/{name}")
        assert stored is not None
        return stored.fields

    def events(self) -> list[dict[str, Any]]:
        return [stored.fields for stored in self.api.store.collection("events").objects.values()]


def encode_when_stored(server: ApiServer) -> None:
    """Have every version encoded at once, for `changed_in_place` to compare with; else it is when it is shown."""
    for collection in _collections(server):
        server.store.collection(collection).listen(_encode)


def changed_in_place(server: ApiServer) -> list[str]:
    """The objects of which a version was changed after it had been stored; see `encode_when_stored`."""
    return [
        f"{collection} {change.current.key}"
        for collection in _collections(server)
        for change in server.store.collection(collection).history
        if msgspec.json.encode(change.current.fields)[1:] != change.current.tail
    ]


def _encode(change: Change) -> None:
    assert change.current.tail


def _collections(server: ApiServer) -> list[str]:
    return sorted({resource.collection for resource in server.state.types.storages()})
