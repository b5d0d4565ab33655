"""What a simulation assumes of provisioners: it makes every volume, also where nothing in the cluster seems to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.volumes.volume_shapes import PROVISIONED_BY, SELECTED_NODE, class_of
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore

_LATE: Final = "WaitForFirstConsumer"


@frozen(kw_only=True)
class Assumption:
    """Volumes that the simulation made, and that the cluster it began with may never get."""

    message: str
    claims: tuple[str, ...]
    """``namespace/name``, in order."""


@frozen(eq=False)
class DoubtfulProvisioners:
    """The storage classes and claims of a dump of which it is doubtful that volumes will be provisioned for them."""

    unknown: Mapping[str, str]
    """Storage class → its provisioner, which no other object names."""
    waited: Mapping[str, str]
    """``namespace/name`` of claims that wait for a volume of a provisioner that is there → its name."""
    volumes: frozenset[str]
    """The volumes of the beginning."""

    @classmethod
    def among(cls, manifests: Sequence[Manifest]) -> DoubtfulProvisioners:
        """Those of the objects that come from a cluster, which gave them a uid."""
        by_kind: dict[str, list[Json]] = {}
        for one in manifests:
            by_kind.setdefault(one.built_in_kind, []).append(one.fields)
        classes = {one["metadata"].get("name"): one for one in by_kind.get("StorageClass", ())}
        known = set(_seen_provisioners(by_kind))
        unknown, waited = {}, {}
        for name, fields in classes.items():
            if fields["metadata"].get("uid") and fields.get("provisioner") not in known:
                unknown[name] = fields.get("provisioner") or ""
        for claim in by_kind.get("PersistentVolumeClaim", ()):
            storage_class = classes.get(class_of(claim))
            if storage_class is not None and _was_asked_for(claim, storage_class):
                metadata = claim["metadata"]
                waited[f"{metadata.get('namespace')}/{metadata.get('name')}"] = storage_class.get("provisioner") or ""
        volumes = (one["metadata"].get("name") for one in by_kind.get("PersistentVolume", ()))
        return cls(unknown, waited, frozenset(volumes))

    def assumptions(self, store: ObjectStore) -> Iterator[Assumption]:
        """What came true in the simulation with the objects *store*, by storage class."""
        claims: dict[str, list[str]] = {}
        for volume in store.collection("persistentvolumes").in_order():
            claim = volume.fields["spec"].get("claimRef") or {}
            is_made = PROVISIONED_BY in (volume.fields["metadata"].get("annotations") or {})
            if is_made and volume.key not in self.volumes:
                key = f"{claim.get('namespace')}/{claim.get('name')}"
                if (message := self._message(class_of(volume.fields), key)) is not None:
                    claims.setdefault(message, []).append(key)
        for message, keys in sorted(claims.items()):
            yield Assumption(message=message, claims=tuple(sorted(keys)))

    def _message(self, storage_class: str, claim: str) -> str | None:
        gets = f"class {storage_class} gets volumes, although"
        if (provisioner := self.unknown.get(storage_class)) is not None:
            return f"{gets} nothing shows that {provisioner} runs: no CSIDriver, CSINode or volume names it"
        if (provisioner := self.waited.get(claim)) is not None:
            return f"{gets} the claims waited for those of {provisioner} when the cluster was listed"
        return None


def _seen_provisioners(by_kind: Mapping[str, Iterable[Json]]) -> Iterator[str]:
    """The names of drivers and provisioners that show that they are there."""
    for driver in by_kind.get("CSIDriver", ()):
        yield driver["metadata"].get("name") or ""
    for node in by_kind.get("CSINode", ()):
        for driver in (node.get("spec") or {}).get("drivers") or ():
            yield driver.get("name") or ""
    for volume in by_kind.get("PersistentVolume", ()):
        yield (volume["metadata"].get("annotations") or {}).get(PROVISIONED_BY, "")
        yield (volume["spec"].get("csi") or {}).get("driver") or ""


def _was_asked_for(claim: Json, storage_class: Json) -> bool:
    """Whether *claim*, of a dump, has no volume, and nothing but its provisioner is waited for."""
    metadata = claim["metadata"]
    if not metadata.get("uid") or claim["spec"].get("volumeName"):
        return False
    return storage_class.get("volumeBindingMode") != _LATE or SELECTED_NODE in (metadata.get("annotations") or {})
