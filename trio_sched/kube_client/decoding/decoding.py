"""Decodes the JSON of an API server: lists and watch lines, of which malformed objects are left out one by one."""

from typing import Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from trio_sched.documents.deep_json import (
    decode_deep,
    elements,
    place_of_member,
    pruned,
    with_deep_recursion,
)
from trio_sched.kube_client.errors import ApiStatus, UndecodableObject
from trio_sched.kube_client.kinds import Kind, T
from trio_sched.objects.metadata import ListMeta
from trio_sched.tracebacks import forget_tracebacks

_O = TypeVar("_O")

UNDECODABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
EVENT_TYPES = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})

_IDENTITY_DEPTH = 20
"""Deeper than the fields that say which object of which type this is."""


class WatchEvent(Struct, Generic[_O], frozen=True, gc=False):
    """One line of a watch."""

    type: str
    object: _O


class Undecoded(NamedTuple):
    """An object that could not be decoded: which one, as far as that could be read, and why."""

    namespace: str
    name: str
    resource_version: str
    error: UndecodableObject


class Page(NamedTuple, Generic[_O]):
    """A page of a list."""

    metadata: ListMeta
    objects: list[_O]
    undecoded: list[Undecoded]
    starts_over: bool = False
    """Whether it contains all objects, also those of the pages before it."""


class _List(Struct, Generic[_O], frozen=True, gc=False):
    metadata: ListMeta = field(default_factory=ListMeta)
    items: list[_O] | None = None


class _Identity(Struct, frozen=True, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    resource_version: str = ""


class _Named(Struct, frozen=True, gc=False):
    metadata: _Identity = field(default_factory=_Identity)


_raw_event_decoder = msgspec.json.Decoder(WatchEvent[Raw])
_raw_list_decoder = msgspec.json.Decoder(_List[Raw])
_named_decoder = msgspec.json.Decoder(_Named)
_status_decoder = msgspec.json.Decoder(ApiStatus)


class Codec(Generic[T]):
    """Decodes one kind."""

    def __init__(self, kind: Kind[T]) -> None:
        self.kind = kind
        self._object = msgspec.json.Decoder(kind.type)
        self._list = msgspec.json.Decoder(_List[kind.type])  # type: ignore[name-defined]
        self._event = msgspec.json.Decoder(WatchEvent[kind.type])  # type: ignore[name-defined]

    def object(self, body: bytes) -> T:
        """One object.

        Raises:
            UndecodableObject: it does not have the shape of this kind.
        """
        try:
            return self._read(body)
        except UNDECODABLE as problem:
            raise self._undecoded(body, problem).error from problem

    def page(self, body: bytes) -> Page[T]:
        """A page of a list.

        Raises:
            UndecodableObject: it is not a list at all.
        """
        if self.kind.keep_raw is not None:
            return self._page_one_by_one(body)
        try:
            listing = with_deep_recursion(self._list.decode, body)
        except (msgspec.ValidationError, RecursionError):
            return self._page_one_by_one(body)
        except UNDECODABLE as problem:
            raise self._undecoded(b"", problem).error from problem
        return Page(listing.metadata, listing.items or [], [])

    def events(self, lines: bytes) -> list[WatchEvent[T] | WatchEvent[ApiStatus] | WatchEvent[Undecoded]]:
        """The events of whole *lines*; the object of an ERROR is a Status, that of a malformed one an `Undecoded`.

        The first line that is no event at all is the last one, with an empty type.
        """
        if self.kind.keep_raw is not None:
            return self._events_one_by_one(lines)
        try:
            events = self._event.decode_lines(lines)
        except UNDECODABLE:  # an ERROR among them, or an object of the wrong shape
            return self._events_one_by_one(lines)
        for event in events:
            if event.type == "ERROR":  # a Status that has the shape of this kind, too
                return self._events_one_by_one(lines)
        return events

    def _events_one_by_one(self, lines: bytes) -> list[WatchEvent[T] | WatchEvent[ApiStatus] | WatchEvent[Undecoded]]:
        events: list[WatchEvent[T] | WatchEvent[ApiStatus] | WatchEvent[Undecoded]] = []
        for line in lines.split(b"\n"):
            if line.strip():
                events.append(self._event_alone(line))
                if not events[-1].type:
                    break
        return events

    def _event_alone(self, line: bytes) -> WatchEvent[T] | WatchEvent[ApiStatus] | WatchEvent[Undecoded]:
        try:
            event = _split_event(line)
        except UNDECODABLE as problem:
            return WatchEvent("", self._undecoded(b"", problem))
        if event.type == "ERROR":
            try:
                return WatchEvent("ERROR", with_deep_recursion(_status_decoder.decode, event.object))
            except UNDECODABLE:
                return WatchEvent("ERROR", ApiStatus(message=bytes(event.object).decode("utf-8", "replace")))
        try:
            return WatchEvent(event.type, self._read(event.object))
        except UNDECODABLE as problem:
            return WatchEvent(event.type, self._undecoded(bytes(event.object), problem))

    def _read(self, raw: bytes | Raw) -> T:
        decoded = decode_deep(self._object.decode, bytes(raw))
        keep_raw = self.kind.keep_raw
        return decoded if keep_raw is None else with_deep_recursion(keep_raw, decoded, bytes(raw))

    def _page_one_by_one(self, body: bytes) -> Page[T]:
        try:
            listing = _split_list(body)
        except UNDECODABLE as problem:
            raise self._undecoded(b"", problem).error from problem
        page: Page[T] = Page(listing.metadata, [], [])
        for item in listing.items or ():
            try:
                page.objects.append(self._read(item))
            except UNDECODABLE as problem:
                page.undecoded.append(self._undecoded(bytes(item), problem))
        return page

    def _undecoded(self, body: bytes, problem: Exception) -> Undecoded:
        try:
            identity = _named_decoder.decode(pruned(body, _IDENTITY_DEPTH)).metadata
        except UNDECODABLE:
            identity = _Identity()
        error = UndecodableObject(self.kind.plural, identity.namespace, identity.name, describe_undecodable(problem))
        # The frames of tracebacks hold the whole body for as long as the error is kept; and in an event, which is not
        # looked at by the garbage collector, for ever.
        forget_tracebacks(problem)
        error.__cause__ = problem
        return Undecoded(identity.namespace, identity.name, identity.resource_version, error)


def describe_undecodable(problem: Exception) -> str:
    """Why JSON could not be decoded: *problem* without the words of Python."""
    match problem:
        case RecursionError():
            return "nested too deep"
        case UnicodeDecodeError():
            return "it contains text that is not UTF-8"
    return str(problem).replace("`", "").replace("$.", "")


def _split_event(line: bytes) -> WatchEvent[Raw]:
    """An event with its object undecoded."""
    try:
        return with_deep_recursion(_raw_event_decoder.decode, line)
    except RecursionError:  # the object is still to be decoded, and that will fail in the same way
        event_type = _raw_event_decoder.decode(pruned(line, _IDENTITY_DEPTH)).type
        return WatchEvent(event_type, Raw(line[place_of_member(line, "object")]))


def _split_list(body: bytes) -> _List[Raw]:
    """A list with its items undecoded."""
    try:
        return with_deep_recursion(_raw_list_decoder.decode, body)
    except RecursionError:
        items = place_of_member(body, "items")
        head = body[: items.start] + b"[]" + body[items.stop :]
        metadata = _raw_list_decoder.decode(pruned(head, _IDENTITY_DEPTH)).metadata
        return _List(metadata, [Raw(item) for item in elements(body[items])])
