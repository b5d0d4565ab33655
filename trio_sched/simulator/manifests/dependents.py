"""What belongs to nodes and pods of a dump: a node's CSINode and ResourceSlices, the workloads of a pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifests import Manifest

HOST_NAME: Final = "kubernetes.io/hostname"
_SCALED: Final = {
    "Deployment": ("replicas",),
    "ReplicaSet": ("replicas",),
    "ReplicationController": ("replicas",),
    "Job": ("parallelism", "completions"),
}
"""Kinds of workloads that would delete a pod that is too many → how many they want."""


@frozen
class NodeParts:
    """What there is of one node besides itself."""

    node: str
    manifests: tuple[Manifest, ...]

    @property
    def topology_keys(self) -> set[str]:
        """The labels that say where the volumes of its drivers can be; the name of the node is the value of some."""
        drivers = (one.fields["spec"].get("drivers") or () for one in self.manifests if one.fields["kind"] == "CSINode")
        return {key for listed in drivers for driver in listed for key in driver.get("topologyKeys") or ()}

    def copies(self, name: str) -> Iterator[Manifest]:
        """Copies of what belongs to the node, for one called *name*."""
        for number, manifest in enumerate(self.manifests):
            fields: Json = msgspec.json.decode(msgspec.json.encode(manifest.fields))
            if fields["kind"] == "CSINode":
                fields["metadata"] = {**_kept(fields["metadata"]), "name": name}
                for driver in fields["spec"].get("drivers") or ():
                    driver["nodeID"] = name
            else:
                fields["metadata"] = {**_kept(fields["metadata"]), "name": f"{name}-{number}"}
                _rename_slice(fields["spec"], self.node, name)
            yield Manifest(fields, manifest.source, manifest.document, manifest.items)


@define(eq=False)
class NodeDependents:
    """The CSINodes and ResourceSlices of manifests, by node."""

    _parts: dict[str, list[Manifest]] = field(factory=dict)
    _names: dict[str, list[str]] = field(factory=dict)
    """The names of nodes, by uid: a template may have that of the node that it was copied from."""

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> NodeDependents:
        """Those among *manifests*."""
        found = cls()
        for manifest in manifests:
            fields = manifest.fields
            kind, name = fields["kind"], fields["metadata"].get("name") or ""
            if kind == "CSINode":
                found._parts.setdefault(name, []).append(manifest)
            elif kind == "ResourceSlice" and (node := fields["spec"].get("nodeName")):
                found._parts.setdefault(node, []).append(manifest)
            elif kind == "Node" and (uid := fields["metadata"].get("uid")):
                found._names.setdefault(uid, []).append(name)
        return found

    def find(self, node: Json) -> NodeParts:
        """What there is of the node that *node* is, or was copied from: its host name or uid tells."""
        metadata = node["metadata"]
        name = metadata.get("name") or ""
        host = (metadata.get("labels") or {}).get(HOST_NAME, name)
        names = (name, *self._names.get(metadata.get("uid") or "", ()), host)
        original = next((one for one in names if one in self._parts), host)
        return NodeParts(original, tuple(self._parts.get(original, ())))


@define(eq=False)
class Owners:
    """The workloads of manifests, by uid."""

    _by_uid: dict[str, Manifest]
    _pods: Counter[str]
    """How many pods have a uid: a template may be a pod of the dump, or be copied from one."""

    @classmethod
    def of(cls, manifests: Iterable[Manifest]) -> Owners:
        """Those among *manifests*."""
        owned = ("DaemonSet", *_SCALED)
        given = list(manifests)
        workloads = (one for one in given if one.fields["kind"] in owned)
        pods = (one.fields["metadata"].get("uid") or "" for one in given if one.fields["kind"] == "Pod")
        return cls({uid: one for one in workloads if (uid := one.fields["metadata"].get("uid"))}, Counter(pods))

    def scale(self, pod: Json, count: int) -> str:
        """Have the workloads of *pod* want as many pods as there are with its *count*; says why that cannot be."""
        owner = _controller(pod)
        if owner is not None and owner.get("kind") == "DaemonSet":
            return "a DaemonSet makes one pod for each node; give the count to a node"
        uid = pod["metadata"].get("uid") or ""
        more = count - (self._pods[uid] == 1 and bool(uid))  # the copies take the place of the one that was there
        while owner is not None and (manifest := self._by_uid.get(owner.get("uid") or "")) is not None:
            fields = manifest.fields
            spec = fields["spec"]  # may be shared with other manifests
            wanted = {name: spec[name] + more for name in _SCALED.get(fields["kind"], ()) if spec.get(name) is not None}
            fields["spec"] = {**spec, **wanted}
            owner = _controller(fields)
        return ""


def _controller(fields: Json) -> Json | None:
    owners = fields["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def _kept(metadata: Json) -> Json:
    return {name: metadata[name] for name in ("labels", "annotations") if name in metadata}


def _rename_slice(spec: Json, before: str, after: str) -> None:
    pool = spec["pool"]
    pool["name"] = after if pool["name"] == before else f"{pool['name']}-{after}"
    for one in (spec, *(spec.get("devices") or ())):
        if one.get("nodeName") == before:
            one["nodeName"] = after
