"""The metadata of every Kubernetes object."""

from typing import Protocol

from msgspec import Struct, field


class OwnerReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``metadata.ownerReferences``."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``metadata``, as far as a scheduler reads it; timestamps stay RFC 3339 text."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    owner_references: tuple[OwnerReference, ...] | None = None
    finalizers: tuple[str, ...] | None = None


class NamedObject(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An object of a cluster, called by its name alone."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)

    @property
    def name(self) -> str:
        """``metadata.name``."""
        return self.metadata.name


class NamespacedObject(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An object in a namespace."""

    @property
    def namespace(self) -> str:
        """``metadata.namespace``."""
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ListMeta(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``metadata`` of a list: the resource version to watch from, and the token of the next page."""

    resource_version: str = ""
    continue_: str = field(name="continue", default="")
    remaining_item_count: int | None = None


class WireObject(Protocol):
    """Any Kubernetes object that has metadata."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, namespace, uid and version."""
