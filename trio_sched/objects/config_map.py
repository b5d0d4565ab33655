"""ConfigMaps."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class ConfigMap(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` ConfigMap."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    data: dict[str, str] = field(default_factory=dict)
