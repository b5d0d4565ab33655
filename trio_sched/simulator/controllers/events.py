"""The events of simulated controllers, combined and limited as those of kube-controller-manager are.

Source: ``events_cache.go`` of client-go.
"""

from typing import Final, Generic, TypeVar

from attrs import define, field

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.errors.status_errors import ApiError
from trio_sched.simulator.registry.lifecycle import create, write_fields
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

_T = TypeVar("_T")

_SIMILAR: Final = 10
"""So many events that differ only in their message are kept apart within the seconds below."""
_SIMILAR_SECONDS: Final = 600.0
_BURST: Final = 25
_SECONDS_PER_EVENT: Final = 300.0
_MOST_KEYS: Final = 4096
_COMBINED: Final = "(combined from similar events): "


@define(eq=False)
class _Recent(Generic[_T]):
    """What was used last, up to a number of keys."""

    _values: dict[tuple[str, ...], _T] = field(factory=dict, init=False)

    def get(self, key: tuple[str, ...]) -> _T | None:
        return self._values.get(key)

    def put(self, key: tuple[str, ...], value: _T) -> None:
        self._values.pop(key, None)
        self._values[key] = value
        if len(self._values) > _MOST_KEYS:
            del self._values[next(iter(self._values))]


@define(eq=False)
class EventRecorder:
    """Writes events about objects.

    Args:
        server: the cluster.
        component: the source of the events.
    """

    server: ApiServer
    component: str
    _messages: _Recent[tuple[dict[str, None], float]] = field(factory=_Recent, init=False)
    """Object, type and reason → different messages, and when the last one came, as a Unix time."""
    _written: _Recent[str] = field(factory=_Recent, init=False)
    """What an event is about, with the message of one that stands alone → its key in the store."""
    _tokens: _Recent[tuple[float, float]] = field(factory=_Recent, init=False)
    """Object and type → how many more events there may be, and as of when."""

    def normal(self, resource: ResourceType, about: StoredObject, reason: str, message: str) -> None:
        """Write an event of the type ``Normal``."""
        self._write(resource, about, "Normal", reason, message)

    def warning(self, resource: ResourceType, about: StoredObject, reason: str, message: str) -> None:
        """Write an event of the type ``Warning``."""
        self._write(resource, about, "Warning", reason, message)

    def _write(self, resource: ResourceType, about: StoredObject, kind: str, reason: str, message: str) -> None:
        now = self.server.state.now().timestamp()
        identity = (resource.collection, about.key, about.fields["metadata"]["uid"], kind)
        message, place = self._combined((*identity, reason), message, now)
        if not self._is_allowed(identity, now):
            return
        state, moment = self.server.state, self.server.state.timestamp()
        events = state.types.core("events")
        known = self._written.get(place)
        stored = state.store.get(events.collection, known) if known is not None else None
        if stored is not None:
            count = stored.fields.get("count", 0) + 1
            write_fields(state, events, stored, count=count, lastTimestamp=moment, message=message)
            return
        namespace = about.fields["metadata"].get("namespace") or "default"
        fields: Json = {
            "metadata": {"name": f"{about.fields['metadata']['name']}.{state.rng.getrandbits(64):016x}"},
            "involvedObject": _reference(resource, about),
            "reason": reason,
            "message": message,
            "source": {"component": self.component},
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
            "type": kind,
            "reportingComponent": self.component,
        }
        try:
            self._written.put(place, create(state, events, namespace, fields).key)
        except ApiError:
            return  # the namespace is being deleted; the controllers of a cluster drop such events as well

    def _combined(self, similar: tuple[str, ...], message: str, now: float) -> tuple[str, tuple[str, ...]]:
        """The message to write, and what tells the event from others."""
        messages, last = self._messages.get(similar) or ({}, now)
        if now - last > _SIMILAR_SECONDS:
            messages = {}
        messages[message] = None
        combined = len(messages) >= _SIMILAR
        if combined:
            del messages[next(iter(messages))]
        self._messages.put(similar, (messages, now))
        return (f"{_COMBINED}{message}", similar) if combined else (message, (*similar, message))

    def _is_allowed(self, identity: tuple[str, ...], now: float) -> bool:
        left, since = self._tokens.get(identity) or (float(_BURST), now)
        left = min(left + (now - since) / _SECONDS_PER_EVENT, float(_BURST))
        allowed = left >= 1.0
        self._tokens.put(identity, (left - allowed, now))
        return allowed


def _reference(resource: ResourceType, about: StoredObject) -> Json:
    metadata = about.fields["metadata"]
    reference = {"kind": resource.kind, "apiVersion": resource.api_version, "name": metadata["name"]}
    if metadata.get("namespace"):
        reference["namespace"] = metadata["namespace"]
    return {**reference, "uid": metadata["uid"], "resourceVersion": str(about.version)}
