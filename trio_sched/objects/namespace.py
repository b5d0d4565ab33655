"""Namespaces, with the labels that the selectors of affinity terms match."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class Namespace(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Namespace."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
