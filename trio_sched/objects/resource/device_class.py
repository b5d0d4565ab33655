"""Device classes, with the fields that plugins for resources need."""

from msgspec import Struct, field

from trio_sched.objects.metadata import NamedObject
from trio_sched.objects.resource.resource_claim import DeviceSelector, OpaqueDeviceConfiguration


class DeviceClassConfiguration(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Configuration for all devices that are allocated through the class."""

    opaque: OpaqueDeviceConfiguration | None = None


class DeviceClassSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a DeviceClass."""

    selectors: tuple[DeviceSelector, ...] | None = None
    config: tuple[DeviceClassConfiguration, ...] | None = None
    extended_resource_name: str | None = None


class DeviceClass(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1`` DeviceClass: kinds of devices, which an extended resource can be mapped to."""

    spec: DeviceClassSpec = field(default_factory=DeviceClassSpec)

    @property
    def extended_resource_name(self) -> str | None:
        """``spec.extendedResourceName``."""
        return self.spec.extended_resource_name
