"""Volumes of a pod, as far as they say where it may run."""

from msgspec import Struct


class ClaimVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume that is a PersistentVolumeClaim of the pod's namespace."""

    claim_name: str = ""
    read_only: bool = False


class ImageVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume that is the content of an image."""

    reference: str = ""


class EphemeralVolumeSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A volume whose claim is made for the pod, named ``<pod>-<volume>``."""


class Volume(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``pod.spec.volumes``."""

    name: str = ""
    persistent_volume_claim: ClaimVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    image: ImageVolumeSource | None = None
