"""Objects of kinds without a class of their own here, which third-party plugins may watch."""

from typing import Any

from msgspec import Struct, field

from trio_sched.objects.metadata import NamedObject, ObjectMeta


class AnyObject(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Any object; *spec* and *status* are as decoded from JSON."""

    api_version: str = ""
    kind: str = ""
    spec: dict[str, Any] | None = None
    status: dict[str, Any] | None = None


class CustomHead(Struct, frozen=True, gc=False):
    """The metadata of a custom resource, which is decoded again by those who know its type."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
