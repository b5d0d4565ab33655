"""Volumes of pods, claims, PersistentVolumes, storage classes and what CSI drivers report, for tests.

storage_class("fast")
persistent_volume("pv-1", storage_class="fast", on={"topology.kubernetes.io/zone": "a"})
persistent_volume_claim("data", storage_class="fast")
pod("db", volumes=["data"])
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.objects.storage.persistent_volume import (
    ClaimReference,
    CsiPersistentVolumeSource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    VolumeNodeAffinity,
    VolumeResourceRequirements,
)
from trio_sched.objects.storage.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    StorageClass,
    TopologySelectorLabelRequirement,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from trio_sched.testing.label_builders import Selector, read_selector
from trio_sched.testing.object_builders import metadata

CSI_DRIVER = "csi.test"
"""The driver of volumes whose driver does not matter."""
_BOUND = "pv.kubernetes.io/bind-completed"


def storage_class(
    name: str = "standard",
    *,
    provisioner: str = CSI_DRIVER,
    immediate: bool = False,
    topologies: Mapping[str, Iterable[str]] | None = None,
) -> StorageClass:
    """A storage class.

    Args:
        name: its name.
        provisioner: the driver that makes its volumes; ``kubernetes.io/no-provisioner`` for none.
        immediate: whether claims are bound at once, not when their pod is scheduled.
        topologies: label → values of nodes that volumes can be made for; None: all nodes.
    """
    expressions = [
        TopologySelectorLabelRequirement(key=key, values=tuple(values)) for key, values in (topologies or {}).items()
    ]
    return StorageClass(
        metadata=metadata(name),
        provisioner=provisioner,
        volume_binding_mode="Immediate" if immediate else "WaitForFirstConsumer",
        allowed_topologies=(TopologySelectorTerm(match_label_expressions=tuple(expressions)),) if expressions else None,
    )


def persistent_volume(
    name: str = "volume",
    *,
    size: Quantity = "10Gi",
    storage_class: str = "standard",
    access_modes: Iterable[str] = ("ReadWriteOnce",),
    on: Mapping[str, str | Iterable[str]] | None = None,
    claim: str = "",
    driver: str = CSI_DRIVER,
    labels: Mapping[str, str] | None = None,
    phase: str = "",
) -> PersistentVolume:
    """A PersistentVolume.

    Args:
        name: its name, and its handle.
        size: its capacity.
        storage_class: the name of its class.
        access_modes: how it can be used.
        on: label → value, or values, of the nodes that can reach it; None: all nodes.
        claim: ``namespace/name`` of the claim that it is bound to, or reserved for.
        driver: its CSI driver.
        labels: its labels.
        phase: by default Bound with a claim, else Available.
    """
    requirements = [
        NodeSelectorRequirement(key=key, operator="In", values=(value,) if isinstance(value, str) else tuple(value))
        for key, value in (on or {}).items()
    ]
    affinity = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=tuple(requirements)),))
    of, _slash, claim_name = claim.rpartition("/")
    of = of or "default"
    reference = ClaimReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=of,
        name=claim_name,
        uid=f"uid-of-{of}/{claim_name}",
    )
    return PersistentVolume(
        metadata=metadata(name, labels=labels),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            access_modes=tuple(access_modes),
            claim_ref=reference if claim else None,
            storage_class_name=storage_class,
            volume_mode="Filesystem",
            persistent_volume_reclaim_policy="Retain",
            node_affinity=VolumeNodeAffinity(required=affinity) if requirements else None,
            csi=CsiPersistentVolumeSource(driver=driver, volume_handle=name),
        ),
        status=PersistentVolumeStatus(phase=phase or ("Bound" if claim else "Available")),
    )


def persistent_volume_claim(
    name: str = "claim",
    *,
    namespace: str = "default",
    size: Quantity = "1Gi",
    storage_class: str | None = "standard",
    access_modes: Iterable[str] = ("ReadWriteOnce",),
    volume: str = "",
    selector: Selector = None,
    annotations: Mapping[str, str] | None = None,
) -> PersistentVolumeClaim:
    """A PersistentVolumeClaim.

    Args:
        name: its name; pods name it in their *volumes*.
        namespace: its namespace, and that of these pods.
        size: what it requests.
        storage_class: the name of its class; None: it names none.
        access_modes: how it is to be used.
        volume: the PersistentVolume that it is bound to; empty: it is pending.
        selector: which volumes it may be bound to, by their labels.
        annotations: its annotations.
    """
    bound = {_BOUND: "yes"} if volume else {}
    return PersistentVolumeClaim(
        metadata=metadata(name, namespace, annotations={**bound, **(annotations or {})}),
        spec=PersistentVolumeClaimSpec(
            access_modes=tuple(access_modes),
            resources=VolumeResourceRequirements(requests={"storage": size}),
            selector=read_selector(selector),
            storage_class_name=storage_class,
            volume_mode="Filesystem",
            volume_name=volume,
        ),
        status=PersistentVolumeClaimStatus(phase="Bound" if volume else "Pending"),
    )


def csi_node(
    node: str, drivers: Mapping[str, int | None] | None = None, *, annotations: Mapping[str, str] | None = None
) -> CSINode:
    """A CSINode: the CSI drivers on *node*, each with how many of its volumes the node can have; None: any number."""
    found = {CSI_DRIVER: None} if drivers is None else drivers
    return CSINode(
        metadata=metadata(node, annotations=annotations),
        spec=CSINodeSpec(
            drivers=tuple(
                CSINodeDriver(name=name, allocatable=None if count is None else VolumeNodeResources(count=count))
                for name, count in found.items()
            )
            or None
        ),
    )


def csi_driver(
    name: str = CSI_DRIVER, *, storage_capacity: bool = False, prevents_scheduling_if_missing: bool | None = None
) -> CSIDriver:
    """A CSIDriver.

    Args:
        name: its name.
        storage_capacity: whether `csi_storage_capacity` says where there is room for its volumes.
        prevents_scheduling_if_missing: whether pods with its volumes need nodes on which it is.
    """
    spec = CSIDriverSpec(
        storage_capacity=storage_capacity, prevent_pod_scheduling_if_missing=prevents_scheduling_if_missing
    )
    return CSIDriver(metadata=metadata(name), spec=spec)


def csi_storage_capacity(
    name: str = "capacity",
    *,
    namespace: str = "default",
    storage_class: str = "standard",
    capacity: Quantity | None = "100Gi",
    on: Selector = "",
    largest: Quantity | None = None,
) -> CSIStorageCapacity:
    """A CSIStorageCapacity: how much room there is for volumes.

    Args:
        name: its name.
        namespace: its namespace.
        storage_class: the class of these volumes.
        capacity: the room; None: it is not known.
        on: the nodes that can reach it, by their labels; see `label_selector`.
        largest: the size of the largest volume that can be made.
    """
    return CSIStorageCapacity(
        metadata=metadata(name, namespace),
        storage_class_name=storage_class,
        node_topology=read_selector(on),
        capacity=capacity,
        maximum_volume_size=largest,
    )


def volume_attachment(node: str, volume: str, *, driver: str = CSI_DRIVER, name: str = "") -> VolumeAttachment:
    """A VolumeAttachment: the PersistentVolume *volume* is attached to *node*, or is to be."""
    return VolumeAttachment(
        metadata=metadata(name or f"{volume}-on-{node}"),
        spec=VolumeAttachmentSpec(
            attacher=driver, node_name=node, source=VolumeAttachmentSource(persistent_volume_name=volume)
        ),
    )
