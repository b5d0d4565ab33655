"""The pools of nodes, and new nodes like one of theirs."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Final

import msgspec
from attrs import frozen

from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.objects.node import Node
from trio_sched.objects.node_pools import pool_name, pool_of
from trio_sched.plugin_api.clauses import some_names
from trio_sched.simulator import populate
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.manifests.replicas import COUNT, multiply
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject, copied
from trio_sched.what_if.cluster_changes import ClusterChanges

_decode_node = msgspec.json.Decoder(Node).decode
_OF_CONTROLLERS: Final = "node.kubernetes.io/"
_NUMBER: Final = re.compile(r"[0-9]+(\.[0-9]+)?")
PRICE: Final = "trio-sched.dev/price"
"""Annotation of a node: what it costs, a number in any currency and per any time, the same for all nodes."""
_PARTS: Final = (
    ("csinodes.storage.k8s.io", "storage.k8s.io/v1", "CSINode"),
    ("resourceslices.resource.k8s.io", "resource.k8s.io/v1", "ResourceSlice"),
)
"""What a node has besides its object: collection, version, kind."""


class NoSuchPool(TrioSchedError):
    """What is named is no pool of the cluster."""

    def __init__(self, what: str, name: str, known: Sequence[str]) -> None:
        near = nearest_name(name, known)
        hint = f"did you mean {near}?" if near else f"there are {some_names(known)}" if known else "there are no nodes"
        super().__init__(f"there is no {what} {name}; {hint}")


@frozen(kw_only=True)
class Pool:
    """Nodes that are alike."""

    name: str
    """As its provider labels it, or like which node they are."""
    model: str
    """The name of one of them."""
    nodes: int
    price: float | None
    """What one node costs; None if no node says it."""


def pools_of(store: ObjectStore) -> list[Pool]:
    """The pools, the cheapest node first; those without a price by size, the most nodes first."""
    members: dict[Hashable, list[StoredObject]] = {}
    for stored in store.collection("nodes").in_order():
        members.setdefault(pool_of(_decode_node(stored.encoded(b"{"))), []).append(stored)
    found = []
    for key, nodes in members.items():
        prices = [price for one in nodes if (price := price_of(one)) is not None]
        name = key if isinstance(key, str) else f"like {nodes[0].key}"
        found.append(
            Pool(name=name, model=nodes[0].key, nodes=len(nodes), price=min(prices) if prices else None),
        )
    return sorted(found, key=lambda one: (one.price is None, one.price or 0.0, -one.nodes, one.name))


def price_of(node: StoredObject) -> float | None:
    """What *node* costs, as its annotation says; None if it does not, or not as a number."""
    text = (node.fields["metadata"].get("annotations") or {}).get(PRICE)
    return float(text) if isinstance(text, str) and _NUMBER.fullmatch(text) else None


def model_of(store: ObjectStore, name: str) -> str:
    """The node that *name* is, or the first node of the pool of that name.

    Raises:
        NoSuchPool: there is neither.
    """
    nodes = store.collection("nodes")
    if name in nodes.objects:
        return name
    members: dict[str, str] = {}
    for stored in nodes.in_order():
        if pool := pool_name(_decode_node(stored.encoded(b"{"))):
            members.setdefault(pool, stored.key)
    if name in members:
        return members[name]
    raise NoSuchPool("node or pool", name, [*members, *nodes.sorted_keys()])


def add_nodes(changes: ClusterChanges, model: str, count: int) -> list[str]:
    """Create so many nodes like *model*, with CSINodes and ResourceSlices of their own; returns their names."""
    store = changes.store
    taken = store.collection("nodes").objects
    clashing = 0
    while True:
        names = [f"{model}-{number}" for number in range(1, count + clashing + 1)]
        free = [name for name in names if name not in taken]
        if len(free) >= count:
            break
        clashing += count - len(free)
    wanted = set(free[:count])
    made = multiply([_template(store, model, len(names)), *_parts(store, model)])
    chosen = [one for one in made if _node_of(one) in wanted]
    populate(changes.running.server, chosen)
    return free[:count]


def _template(store: ObjectStore, model: str, count: int) -> Manifest:
    stored = store.get("nodes", model)
    assert stored is not None  # it was found before
    fields = {"apiVersion": "v1", "kind": "Node", **copied(stored.fields)}
    metadata, spec = fields["metadata"], fields.setdefault("spec", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), COUNT: str(count)}
    metadata.pop("deletionTimestamp", None)
    spec.pop("unschedulable", None)
    spec["taints"] = [one for one in spec.get("taints") or () if not one["key"].startswith(_OF_CONTROLLERS)]
    return Manifest(fields)


def _parts(store: ObjectStore, model: str) -> Iterator[Manifest]:
    for collection, version, kind in _PARTS:
        for stored in store.collection(collection).in_order():
            fields = {"apiVersion": version, "kind": kind, **copied(stored.fields)}
            if _node_of(Manifest(fields)) == model:
                yield Manifest(fields)


def _node_of(manifest: Manifest) -> str:
    """The node that an object is, or belongs to."""
    fields = manifest.fields
    if fields["kind"] == "ResourceSlice":
        return str(fields["spec"].get("nodeName") or "")
    return str(fields["metadata"].get("name") or "")
