"""Services and controllers, with the selectors by which their pods are spread."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.selector import LabelSelector


class MapSelectorSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Service or a ReplicationController: the labels that pods must have, all of them."""

    selector: dict[str, str] | None = None


class LabelSelectorSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a ReplicaSet or a StatefulSet."""

    selector: LabelSelector | None = None


class Service(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Service."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicationController(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` ReplicationController."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: MapSelectorSpec = field(default_factory=MapSelectorSpec)


class ReplicaSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` ReplicaSet."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)


class StatefulSet(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``apps/v1`` StatefulSet."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: LabelSelectorSpec = field(default_factory=LabelSelectorSpec)
