"""The cluster as a recording shows it, told to the parts of a scheduler of which nothing runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from attrs import define, field
from msgspec import Raw

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.engine.cache import CacheError
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.sharing import share_pod
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.recording.pod_patch import PodPatch, patched
from trio_sched.recording.records import PATCHED, Changed, Existed, FirstList, OnNodes


class BadRecording(TrioSchedError):
    """A record is whole, and cannot be what a scheduler has written."""


class _Head(msgspec.Struct, frozen=True):
    metadata: ObjectMeta


_decode_head = msgspec.json.Decoder(_Head).decode
_decode_patch = msgspec.json.Decoder(PodPatch).decode


@define(eq=False)
class _ReplayedKind:
    """A kind of objects: how they are read, who takes them, and those that there are."""

    name: str
    kind: Kind[Any]
    deliver: Callable[[Any], None]
    decode: Callable[[Raw], Any] = field()
    known: dict[tuple[str, str], Any] = field(factory=dict)

    @decode.default
    def _make_decode(self) -> Callable[[Raw], Any]:
        return msgspec.json.Decoder(self.kind.type).decode

    def read(self, raw: Raw) -> Any:
        """An object.

        Raises:
            BadRecording: it is none of this kind.
        """
        try:
            one = self.decode(raw)
            if self.kind.keep_raw is not None:
                return self.kind.keep_raw(one, bytes(raw))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise BadRecording(f"the recording has an object that is no {self.name}: {problem}") from problem
        if self.kind.transform is not None:
            one = self.kind.transform(one, self.known.get(_key(one)))
        return one


@define(eq=False)
class ReplayedCluster:
    """Tells *assembly* what a recording says about objects.

    Attributes:
        assembly: its event handlers take in what was delivered.
        decode_pod: gives the pod of a record.
        node_given: called with the UID of each pod that has got a node, or is gone.
    """

    assembly: Assembly
    decode_pod: Callable[[Raw], Pod]
    node_given: Callable[[str], None]
    pods: dict[str, Pod] = field(factory=dict, init=False)
    """By UID."""
    _kinds: dict[str, _ReplayedKind] = field(factory=dict, init=False)
    _unwatched: dict[str, dict[tuple[str, str], Raw]] = field(factory=dict, init=False)
    """Objects of kinds that no plugin reads: one of a configuration that comes later may, and lists them before."""
    _beginning: list[FirstList] | None = field(factory=list, init=False)
    """What existed at the beginning, until all of it is known."""
    _on_nodes: list[tuple[str, str, bool]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        assembly, delivery = self.assembly, self.assembly.delivery
        self._kinds["Node"] = _ReplayedKind("Node", NODE_KIND, delivery.nodes_changed)
        self._kinds["Pod"] = _ReplayedKind("Pod", POD_KIND, delivery.pods_changed, self.decode_pod)
        known: Mapping[str, Callable[[], Mapping[tuple[str, str], Any]]] = {
            "Node": lambda: self._kinds["Node"].known,
            "Pod": lambda: self._kinds["Pod"].known,
        }
        assembly.scheduler.object_cache.pods_and_nodes = known
        self.watch_wanted()

    def watch_wanted(self) -> None:
        """Take in the kinds that the plugins read; called again when there are other plugins."""
        for resource in self.assembly.loaded.wanted_kinds:
            found = kind_of(resource)
            if found is not None and str(found[0]) not in self._kinds:
                name: Watched = found[0]
                self._kinds[str(name)] = _ReplayedKind(str(name), found[1], self.assembly.delivery.handler(name))
                if (raws := self._unwatched.pop(str(name), None)) is not None:
                    self._deliver(self._kinds[str(name)], raws.values())

    def listed(self, record: FirstList) -> int:
        """Take in the first list of a kind, or a part of it; returns how many objects there are."""
        if self._beginning is not None:
            if record.kind == "Pod":  # they are placed once it is known where
                for raw in record.objects:
                    pod = self._kinds["Pod"].read(raw)
                    self._kinds["Pod"].known[_key(pod)] = self.pods[pod.uid] = pod
            else:
                self._beginning.append(record)
        elif (of_kind := self._kinds.get(record.kind)) is not None:
            self._deliver(of_kind, record.objects)
        else:
            self._unwatched.setdefault(record.kind, {}).update((_head_key(raw), raw.copy()) for raw in record.objects)
        return len(record.objects)

    def _deliver(self, of_kind: _ReplayedKind, raws: Iterable[Raw]) -> None:
        objects = [of_kind.read(raw) for raw in raws]
        of_kind.known.update((_key(one), one) for one in objects)
        if of_kind.name == "Pod":
            self.pods.update((one.uid, one) for one in objects)
        of_kind.deliver(Listed(objects, ""))

    def changed(self, record: Changed) -> int:
        """Take in changes of objects; returns how many."""
        of_kind = self._kinds.get(record.kind)
        if of_kind is not None:
            changes = [self._change(of_kind, type_, raw) for type_, raw in record.changes]
            of_kind.deliver(Changes(changes, ""))
            if record.kind == "Pod":
                self._note_pods(changes)
        else:
            unwatched = self._unwatched.setdefault(record.kind, {})
            for type_, raw in record.changes:
                if type_ == "DELETED":
                    unwatched.pop(_head_key(raw), None)
                else:
                    unwatched[_head_key(raw)] = raw.copy()  # of itself it is a part of a whole block
        return len(record.changes)

    def _change(self, of_kind: _ReplayedKind, type_: str, raw: Raw) -> Change[Any]:
        if type_ == "DELETED":
            old = of_kind.known.pop(_head_key(raw), None)
            if old is not None:
                return Change("DELETED", old, None)
            return Change("DELETED", None, Pod(_read_head(raw)) if of_kind.name == "Pod" else of_kind.read(raw))
        if type_ == PATCHED:
            return self._patch(of_kind, raw)
        new = of_kind.read(raw)
        old = of_kind.known.get(_key(new))
        of_kind.known[_key(new)] = new
        if old is None:  # the recording begins behind what was delivered first, or something in it is missing
            return Change("ADDED", None, new)
        return Change("MODIFIED", old, new) if type_ == "MODIFIED" else Change(type_, None, new)

    def _patch(self, of_kind: _ReplayedKind, raw: Raw) -> Change[Any]:
        """A pod was modified.

        Raises:
            BadRecording: it is not known.
        """
        try:
            patch = _decode_patch(raw)
        except msgspec.MsgspecError as problem:
            raise BadRecording(f"the recording has a modification that cannot be read: {problem}") from problem
        key = patch.namespace, patch.name
        old = of_kind.known.get(key)
        if not isinstance(old, Pod):
            raise BadRecording(
                f"the recording has a modification of pod {'/'.join(key)}, which it has not shown before"
            )
        new = of_kind.known[key] = share_pod(patched(old, patch), old)
        return Change("MODIFIED", old, new)

    def _note_pods(self, changes: list[Change[Pod]]) -> None:
        for change in changes:
            uid = change.subject.uid
            if change.type == "DELETED":
                self.pods.pop(uid, None)
                self.node_given(uid)
            else:
                assert change.new is not None
                self.pods[uid] = change.new
                if change.new.node_name:
                    self.node_given(uid)

    def existed(self, record: Existed) -> None:
        """Everything is known that there was at the beginning: take it in as if it had come by itself."""
        beginning, self._beginning = self._beginning or [], None
        for part in beginning:
            self.listed(part)
        self._place(record.nominated)

    def on_nodes(self, record: OnNodes) -> None:
        """Remember which pods there were on nodes at the beginning."""
        self._on_nodes += record.pods

    def _place(self, nominated: Mapping[str, str]) -> None:
        """Put the pods on their nodes in the order of the cache that was recorded, and the others into the queue."""
        scheduler, handlers = self.assembly.scheduler, self.assembly.event_handlers
        for uid, node, is_assumed in self._on_nodes:
            pod = self.pods.get(uid)
            if pod is None:
                continue
            try:
                if is_assumed or pod.node_name != node:
                    scheduler.cache.assume(pod, node)
                else:
                    scheduler.cache.add(pod)
            except CacheError as problem:
                raise BadRecording(f"the recording has a pod twice: {problem}") from problem
        self._on_nodes.clear()
        now = 0.0
        for pod in self.pods.values():
            if pod.node_name or pod.scheduler_name not in scheduler.profiles:
                continue
            if scheduler.cache.is_assumed(pod.uid):
                scheduler.cache.put_unassigned(pod)
            else:
                handlers.pod_changed(Change("ADDED", None, pod), now=now)
        for uid, node in nominated.items():
            if uid in self.pods:
                scheduler.queue.nominator.add(self.pods[uid], node)


def _key(one: Any) -> tuple[str, str]:
    return one.metadata.namespace, one.metadata.name


def _head_key(raw: Raw) -> tuple[str, str]:
    metadata = _read_head(raw)
    return metadata.namespace, metadata.name


def _read_head(raw: Raw) -> ObjectMeta:
    """The metadata of an object.

    Raises:
        BadRecording: it has none.
    """
    try:
        return _decode_head(raw).metadata
    except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise BadRecording(f"the recording has an object without a name: {problem}") from problem
