"""The cluster of a recording as manifests, whose pods come when they came, for simulations with other settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import define, field
from msgspec import Raw

from trio_sched.daemon.watching.watched_kinds import KINDS
from trio_sched.documents.json_values import Json
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.copies import to_builtins
from trio_sched.recording.folder import RecordingReader
from trio_sched.recording.pod_patch import PodPatch
from trio_sched.recording.pod_templates import KnownTemplates
from trio_sched.recording.records import PATCHED, Changed, Existed, FirstList, Record
from trio_sched.recording.redaction import Identity
from trio_sched.recording.segments import NotARecording
from trio_sched.replaying.replayed_cluster import BadRecording
from trio_sched.simulator.kubelets.kubelet import RUN_SECONDS
from trio_sched.simulator.manifests.arrivals import ARRIVE_SECONDS

_KINDS: Final[dict[str, Kind[Any]]] = {**KINDS, "Node": NODE_KIND, "Pod": POD_KIND}
_FIRST_SECONDS: Final = 1.0
"""What is listed or created so soon after the beginning was there at the beginning."""
_BY_SERVER: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
"""Metadata that the API server gives."""
_WITH_TEMPLATE: Final = ("ReplicaSet", "ReplicationController", "StatefulSet")
"""Kinds whose controllers make pods, and of which the selector is recorded."""
_decode_patch: Final = msgspec.json.Decoder(PodPatch).decode
_decode_identity: Final = msgspec.json.Decoder(Identity).decode


@define(eq=False)
class _RecordedObject:
    kind: str
    fields: Json
    came_at: float
    bound_at: float | None = None
    """For pods: when the node was chosen, if it was while the recording was made."""
    ended_at: float | None = None


@define(eq=False)
class RecordedManifests:
    """Collects the objects of a recording.

    Objects are as they were when they came; later changes are left out, those of pods because a simulation makes them
    itself. Pods end after as long as they ran, and have no owners that would replace them. Nodes that left stay. Of
    other kinds there is what was there at the beginning: controllers of the simulation make the rest, volumes for
    instance. In place of ReplicaSets and the like, of which no templates are recorded, there are Services with their
    selectors, so that their pods are spread as they were.

    Attributes:
        left_out: kinds of which there are objects that no manifest can be made of: how many.
    """

    left_out: dict[str, int] = field(factory=dict, init=False)
    _pods: KnownTemplates = field(factory=KnownTemplates, init=False)
    _objects: dict[tuple[str, str, str], _RecordedObject] = field(factory=dict, init=False)
    """By kind, namespace and name: those that exist."""
    _gone: list[_RecordedObject] = field(factory=list, init=False)
    """Pods that were deleted."""
    _began: float | None = field(default=None, init=False)

    def read(self, folder: Path) -> None:
        """Read the recording in *folder*, up to its end or to the first gap.

        Raises:
            NotARecording: it is none, or a file cannot be read.
            BadRecording: a record cannot be what a scheduler has written.
        """
        try:
            self._read(folder)
        except OSError as error:
            raise NotARecording(f"{error.filename or folder} cannot be read: {error.strerror or error}") from error
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as problem:
            raise BadRecording(f"the recording has an object that is none: {problem}") from problem

    def _read(self, folder: Path) -> None:
        reader = RecordingReader(folder)
        self._pods = reader.pods
        for number, (continues, records) in enumerate(reader.segments()):
            if number and not continues:
                break
            is_known = continues
            for record in records:
                if isinstance(record, Existed):
                    is_known = False
                elif not is_known:
                    self._take(record)

    def _take(self, record: Record) -> None:
        if isinstance(record, FirstList | Changed) and self._began is None:
            self._began = record.now
        if isinstance(record, FirstList):
            for raw in record.objects:
                self._add(record.kind, raw, record.now)
        elif isinstance(record, Changed):
            for type_, raw in record.changes:
                self._change(record.kind, type_, raw, record.now)

    def _change(self, kind: str, type_: str, raw: Raw, now: float) -> None:
        if type_ == PATCHED:
            patch = _decode_patch(raw)
            found = self._objects.get((kind, patch.namespace, patch.name))
            if found is not None and found.bound_at is None and (patch.node or (patch.spec and patch.spec.node_name)):
                found.bound_at = now
        elif type_ == "ADDED" and (kind in ("Node", "Pod") or self._after(now) <= _FIRST_SECONDS):
            self._add(kind, raw, now)
        elif type_ == "DELETED" and kind == "Pod":
            metadata = _decode_identity(raw).metadata
            gone = self._objects.pop((kind, metadata.namespace, metadata.name), None)
            if gone is not None:
                gone.ended_at = now
                self._gone.append(gone)

    def _after(self, now: float) -> float:
        """Seconds after the beginning."""
        return now - (now if self._began is None else self._began)

    def _add(self, kind: str, raw: Raw, now: float) -> None:
        if kind not in _KINDS or kind == "ConfigMap":
            self.left_out[kind] = self.left_out.get(kind, 0) + 1
            return
        fields: Json = to_builtins(self._pods.decode(raw)) if kind == "Pod" else msgspec.json.decode(raw)
        metadata = fields["metadata"]
        if kind in _WITH_TEMPLATE and _labels_of(fields) is None:
            self.left_out[kind] = self.left_out.get(kind, 0) + 1
            return
        self._objects[kind, metadata.get("namespace", ""), metadata["name"]] = _RecordedObject(kind, fields, now)

    def manifests(self) -> Iterator[Json]:
        """All objects that came, in the order in which they did; of pods that were deleted and made again the last."""
        seen: set[tuple[str, str]] = set()
        everything = [*self._objects.values(), *reversed(self._gone)]
        chosen = []
        for one in everything:
            name = one.fields["metadata"].get("namespace", ""), one.fields["metadata"]["name"]
            if one.kind == "Pod":
                if name in seen:
                    continue
                seen.add(name)
            chosen.append(one)
        yield from _priority_classes(one.fields for one in chosen if one.kind == "Pod")
        chosen.sort(key=lambda one: one.came_at)
        made = [self._manifest(one, number) for number, one in enumerate(chosen)]
        yield from _runtime_classes(fields for fields in made if fields["kind"] == "Pod")
        yield from made

    def _manifest(self, one: _RecordedObject, number: int) -> Json:
        metadata = dict(one.fields["metadata"])
        for name in _BY_SERVER:
            metadata.pop(name, None)
        annotations = dict(metadata.get("annotations") or {})
        after = self._after(one.came_at)
        if after > _FIRST_SECONDS:
            annotations[ARRIVE_SECONDS] = f"{after:.3f}"
        if one.ended_at is not None and one.bound_at is not None:
            annotations[RUN_SECONDS] = f"{max(one.ended_at - one.bound_at, 0.001):.3f}"
        if annotations:
            metadata["annotations"] = annotations
        if one.kind in _WITH_TEMPLATE:
            metadata["name"] = f"recorded-{number}"  # Services are named otherwise than what they stand for may be
            return {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": {"selector": _labels_of(one.fields)},
            }
        kind = _KINDS[one.kind]
        fields = {"apiVersion": kind.api_version, "kind": one.kind, **one.fields, "metadata": metadata}
        if one.kind == "Pod":
            fields.pop("status", None)
            metadata.pop("ownerReferences", None)
        return fields


def _labels_of(workload: Json) -> dict[str, str] | None:
    """The labels that a workload selects its pods by; None if it does so by anything else."""
    selector: Json = (workload.get("spec") or {}).get("selector") or {}
    if not {"matchLabels", "matchExpressions"} & selector.keys():  # of a ReplicationController
        return selector or None
    return None if selector.get("matchExpressions") else selector.get("matchLabels")


def write_manifests(folder: Path, path: Path) -> dict[str, int]:
    """Write the cluster of the recording in *folder* as JSON lines; returns `RecordedManifests.left_out`.

    Raises:
        NotARecording: it is none, or a file cannot be read.
        BadRecording: a record cannot be what a scheduler has written.
        OSError: the file cannot be written.
    """
    recorded = RecordedManifests()
    recorded.read(folder)
    with path.open("wb") as file:
        file.writelines(msgspec.json.encode(one) + b"\n" for one in recorded.manifests())
    return recorded.left_out


def _priority_classes(pods: Iterable[Json]) -> Iterator[Json]:
    """The priority classes that *pods* name: no scheduler reads these, but an API server does not do without."""
    seen: set[str] = set()
    for fields in pods:
        spec = fields["spec"]
        name = spec.get("priorityClassName")
        if not name or name.startswith("system-") or name in seen:
            continue
        seen.add(name)
        policy = spec.get("preemptionPolicy")
        yield {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": spec.get("priority", 0),
            **({"preemptionPolicy": policy} if policy else {}),
        }


def _runtime_classes(pods: Iterable[Json]) -> Iterator[Json]:
    """A runtime class for each overhead that *pods* have, which are given its name: the recorded ones are not known."""
    names: dict[bytes, str] = {}
    for fields in pods:
        fields["spec"].pop("runtimeClassName", None)
        overhead = fields["spec"].get("overhead")
        if not overhead:
            continue
        key = msgspec.json.encode(overhead, order="deterministic")
        name = names.get(key)
        if name is None:
            name = names[key] = f"recorded-{len(names) + 1}"
            yield {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": name},
                "handler": name,
                "overhead": {"podFixed": overhead},
            }
        fields["spec"]["runtimeClassName"] = name
