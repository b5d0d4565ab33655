"""Objects of kinds that have no class of their own here: what plugins of others may ask for."""

from typing import Any

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class AnyObject(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Any object; *spec* and *status* are as they stand on the wire."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name
