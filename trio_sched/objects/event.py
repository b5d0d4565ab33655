"""Events, in both of the shapes that API servers have: ``events.k8s.io/v1`` and ``v1``."""

from msgspec import Struct, field

from trio_sched.objects.metadata import ObjectMeta


class ObjectReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A reference to the object that an event is about."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""


class EventSeries(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How often an event was repeated, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class EventSource(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The component that reports a ``v1`` Event."""

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
    """A ``v1`` Event: the older shape, which every server serves."""

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
