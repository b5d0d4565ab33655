"""PersistentVolumes and PersistentVolumeClaims."""

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamedObject, NamespacedObject
from trio_sched.objects.selector import LabelSelector, NodeSelector
from trio_sched.objects.storage.volume import (
    AwsElasticBlockStoreSource,
    AzureDiskSource,
    AzureFileSource,
    CinderSource,
    GcePersistentDiskSource,
    PortworxSource,
    VsphereSource,
)

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
"""The annotation with the class of a claim or a volume; has precedence over ``spec.storageClassName``."""


class CsiPersistentVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume of a CSI driver, identified by its handle."""

    driver: str = ""
    volume_handle: str = ""


class ClaimReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The claim that a volume is bound to, or is reserved for."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeNodeAffinity(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """From which nodes a volume is accessible; without *required* from all of them."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a PersistentVolume."""

    capacity: dict[str, Quantity] | None = None
    access_modes: tuple[str, ...] | None = None
    claim_ref: ClaimReference | None = None
    storage_class_name: str = ""
    volume_mode: str | None = None
    persistent_volume_reclaim_policy: str | None = None
    volume_attributes_class_name: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    csi: CsiPersistentVolumeSource | None = None
    gce_persistent_disk: GcePersistentDiskSource | None = None
    aws_elastic_block_store: AwsElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None
    vsphere_volume: VsphereSource | None = None


class PersistentVolumeStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a PersistentVolume."""

    phase: str = ""


class PersistentVolume(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` PersistentVolume."""

    spec: PersistentVolumeSpec = field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = field(default_factory=PersistentVolumeStatus)

    @property
    def storage_class(self) -> str:
        """The name of its class, "" if it has none; the old annotation has precedence over the field."""
        return (self.metadata.annotations or {}).get(CLASS_ANNOTATION, self.spec.storage_class_name)

    @property
    def required_affinity(self) -> NodeSelector | None:
        """The nodes it is accessible from; None means all."""
        affinity = self.spec.node_affinity
        return None if affinity is None else affinity.required


class VolumeResourceRequirements(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec.resources`` of a claim: the size that it requests."""

    requests: dict[str, Quantity] | None = None


class PersistentVolumeClaimSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a PersistentVolumeClaim."""

    access_modes: tuple[str, ...] | None = None
    resources: VolumeResourceRequirements = field(default_factory=VolumeResourceRequirements)
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a PersistentVolumeClaim."""

    phase: str = ""


class PersistentVolumeClaim(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` PersistentVolumeClaim."""

    spec: PersistentVolumeClaimSpec = field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = field(default_factory=PersistentVolumeClaimStatus)

    @property
    def storage_class(self) -> str:
        """The name of its class, "" if it has none; the old annotation has precedence over the field."""
        return (self.metadata.annotations or {}).get(CLASS_ANNOTATION, self.spec.storage_class_name or "")
