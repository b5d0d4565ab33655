"""Volumes of a pod, with the fields that matter for scheduling."""

from msgspec import Struct, field


class ClaimVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume that is a PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume that is the content of an image."""

    reference: str = ""


class EphemeralVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume whose claim is made for the pod, named ``<pod>-<volume>``."""


class GcePersistentDiskSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk of Google's cloud, in a pod or behind a PersistentVolume."""

    pd_name: str = ""
    read_only: bool = False


class AwsElasticBlockStoreSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk of Amazon's cloud, in a pod or behind a PersistentVolume."""

    volume_id: str = field(name="volumeID", default="")


class AzureDiskSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk of Microsoft's cloud, in a pod or behind a PersistentVolume."""

    disk_uri: str = field(name="diskURI", default="")


class CinderSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk of OpenStack, in a pod or behind a PersistentVolume."""

    volume_id: str = field(name="volumeID", default="")


class PortworxSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A Portworx volume, in a pod or behind a PersistentVolume."""

    volume_id: str = field(name="volumeID", default="")


class AzureFileSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A file share of Microsoft's cloud; its fields do not matter for scheduling."""


class VsphereSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk of vSphere; its fields do not matter for scheduling."""


class IscsiSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A disk that is reached by iSCSI."""

    iqn: str = ""
    read_only: bool = False


class RbdSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A block device of Ceph."""

    monitors: tuple[str, ...] | None = None
    pool: str = ""
    image: str = ""
    read_only: bool = False


class CsiVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ephemeral volume that a CSI driver provides for this pod."""

    driver: str = ""


class Volume(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``pod.spec.volumes``; sources that do not matter to a scheduler are left out."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
    csi: CsiVolumeSource | None = None
    gce_persistent_disk: GcePersistentDiskSource | None = None
    aws_elastic_block_store: AwsElasticBlockStoreSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: CinderSource | None = None
    portworx_volume: PortworxSource | None = None
    vsphere_volume: VsphereSource | None = None
    iscsi: IscsiSource | None = None
    rbd: RbdSource | None = None
