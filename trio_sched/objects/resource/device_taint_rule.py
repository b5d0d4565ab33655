"""Device taint rules: taints that administrators give to devices, beside those that drivers publish."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.resource.resource_slice import DeviceTaint


class DeviceTaintSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Which devices; fields that are missing select all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a DeviceTaintRule."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRule(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1beta2`` DeviceTaintRule."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name
