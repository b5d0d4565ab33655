"""Device taint rules: taints that administrators give to devices, beside those that drivers publish."""

from msgspec import Struct, field

from trio_sched.objects.metadata import NamedObject
from trio_sched.objects.resource.resource_slice import DeviceTaint


class DeviceTaintSelector(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Which devices; fields that are missing select all."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a DeviceTaintRule."""

    device_selector: DeviceTaintSelector | None = None
    """None selects no device."""
    taint: DeviceTaint = field(default_factory=DeviceTaint)


class DeviceTaintRule(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``resource.k8s.io/v1beta2`` DeviceTaintRule."""

    spec: DeviceTaintRuleSpec = field(default_factory=DeviceTaintRuleSpec)
