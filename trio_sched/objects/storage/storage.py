"""Storage classes, CSI drivers and nodes, storage capacities and volume attachments."""

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.selector import LabelSelector


class TopologySelectorLabelRequirement(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A requirement on a label of nodes: its value must be one of *values*."""

    key: str = ""
    values: tuple[str, ...] | None = None


class TopologySelectorTerm(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``allowedTopologies``: all of its requirements must hold."""

    match_label_expressions: tuple[TopologySelectorLabelRequirement, ...] | None = None


class StorageClass(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``storage.k8s.io/v1`` StorageClass."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] | None = None


class VolumeNodeResources(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How many volumes a node can have attached; without *count* any number."""

    count: int | None = None


class CSINodeDriver(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``spec.drivers`` of a CSINode."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a CSINode."""

    drivers: tuple[CSINodeDriver, ...] | None = None


class CSINode(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``storage.k8s.io/v1`` CSINode: the drivers on the node of the same name."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CSINodeSpec = field(default_factory=CSINodeSpec)


class CSIDriverSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a CSIDriver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``storage.k8s.io/v1`` CSIDriver."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: CSIDriverSpec = field(default_factory=CSIDriverSpec)


class CSIStorageCapacity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``storage.k8s.io/v1`` CSIStorageCapacity: the free capacity for a class on the nodes of a topology."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec.source`` of a VolumeAttachment."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a VolumeAttachment."""

    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = field(default_factory=VolumeAttachmentSource)


class VolumeAttachment(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``storage.k8s.io/v1`` VolumeAttachment: a volume that is, or is to be, attached to a node."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: VolumeAttachmentSpec = field(default_factory=VolumeAttachmentSpec)
