"""Events: what we tell people about objects, in both of the shapes that API servers know."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class ObjectReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Which object is meant."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class EventSeries(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How often the same happened, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class EventSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Who says it, in core/v1 events."""

    component: str = ""
    host: str = ""


class Event(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An ``events.k8s.io/v1`` Event."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = field(default_factory=ObjectReference)
    note: str = ""
    type: str = ""


class CoreEvent(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``v1`` Event: the older shape, which every server knows."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    involved_object: ObjectReference = field(default_factory=ObjectReference)
    reason: str = ""
    message: str = ""
    source: EventSource = field(default_factory=EventSource)
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    reporting_component: str = ""
    reporting_instance: str = ""
