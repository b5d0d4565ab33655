"""Clusters from files: written manifests, and dumps of whole clusters."""

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from trio_sched.documents.errors import DocumentError, shortened
from trio_sched.documents.files import decode_text, read_bytes, read_stream
from trio_sched.documents.go_text import printable
from trio_sched.documents.plain import read_plain
from trio_sched.errors import TrioSchedError
from trio_sched.simulator import event_shapes
from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.cluster_state import object_key
from trio_sched.simulator.field_types import type_problem
from trio_sched.simulator.lifecycle import create, serve_definition, write_fields
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import ApiError

Json = dict[str, Any]
Source = Path | str | IO[str]

MAX_BYTES = 512 << 20
"""The greatest size of a file; a dump of a cluster with 100,000 pods has some 400 MiB."""
SUFFIXES = (".yaml", ".yml", ".json")
"""The files of a folder that are read."""

_FIRST_KINDS = (
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "StorageClass",
    "DeviceClass",
    "CSIDriver",
    "Node",
    "CSINode",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "ResourceSlice",
    "ResourceClaim",
    "PodDisruptionBudget",
    "PodGroup",
    "Service",
    "ReplicationController",
    "ReplicaSet",
    "StatefulSet",
)
_RANK = {kind: rank for rank, kind in enumerate(_FIRST_KINDS)}
_RANK_OF_OTHERS = len(_FIRST_KINDS)
_RANK_OF_PODS = _RANK_OF_OTHERS + 1


class ManifestError(TrioSchedError):
    """A manifest that cannot be read or stored.

    Args:
        source: the file.
        document: which of its documents, counted from 1; 0 if that is not known.
        line: where the document, or the mistake in it, begins; 0 if that is not known.
        problem: what is wrong.
        column: where in that line; 0 if that is not known.
    """

    def __init__(self, source: str, document: int, line: int, problem: str, *, column: int = 0) -> None:
        super().__init__(source, document, line, problem)
        self.source, self.document, self.line, self.column, self.problem = source, document, line, column, problem

    def __str__(self) -> str:
        where = printable(self.source)
        if self.line:
            where += f", line {self.line}" + (f", column {self.column}" if self.column else "")
        if self.document:
            where += f" (document {self.document})"
        return f"{where}: {self.problem}"


def load_manifests(sources: Iterable[Source]) -> list[Json]:
    """Read every object from *sources*, in an order in which they can be stored.

    Args:
        sources: files (YAML or JSON, many documents, ``List`` objects), folders of such files, or open texts.

    Raises:
        ManifestError: something is no manifest; it says where.
    """
    found: list[Json] = []
    for source in sources:
        for name, content in _contents(source):
            found.extend(_objects(name, content))
    return sorted(found, key=_rank)


def _rank(manifest: Json) -> int:
    kind = manifest["kind"]
    return _RANK_OF_PODS if kind == "Pod" else _RANK.get(kind, _RANK_OF_OTHERS)


def _contents(source: Source) -> Iterator[tuple[str, bytes | str]]:
    """(name, content) of every file that *source* stands for."""
    if not isinstance(source, Path | str):
        name = getattr(source, "name", "<text>")
        try:
            # Bytes where there are any, so that a wrong encoding is reported as in a file.
            yield name, read_stream(source.buffer, max_bytes=MAX_BYTES) if hasattr(source, "buffer") else source.read()
        except OSError as error:
            raise ManifestError(name, 0, 0, f"cannot be read: {error.strerror or error}") from error
        return
    path = Path(source)
    name = str(path)
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            entries = sorted(entry for entry in path.iterdir() if entry.suffix in SUFFIXES and not entry.is_dir())
        else:
            entries = []
            yield name, read_bytes(path, max_bytes=MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "invalid argument"  # a NUL in the path
        raise ManifestError(name, 0, 0, f"cannot be read: {reason}") from error
    for entry in entries:
        yield from _contents(entry)


def _objects(name: str, content: bytes | str) -> Iterator[Json]:
    for document, line, value in _documents(name, content):
        if value is None:
            continue
        yield from _unpacked(name, document, line, value)


def _unpacked(name: str, document: int, line: int, value: Any, inherited: Json | None = None) -> Iterator[Json]:
    """The objects of one document: itself, or the items of the list it is."""
    if not isinstance(value, dict):
        raise ManifestError(name, document, line, f"expected an object, found {type(value).__name__}")
    value = {**(inherited or {}), **value}
    for field in ("apiVersion", "kind"):
        if not isinstance(value.get(field), str) or not value[field]:
            raise ManifestError(name, document, line, f"{field} is {'no text' if value.get(field) else 'missing'}")
    kind = value["kind"]
    if kind.endswith("List") and isinstance(value.get("items"), list):
        # Items of a typed list do not repeat kind and version.
        typed = {} if kind == "List" else {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List")}
        for item in value["items"]:
            yield from _unpacked(name, document, line, item, typed)
        return
    metadata = value.get("metadata")
    if isinstance(metadata, dict) and (problem := next(_metadata_problems(metadata), None)):
        raise ManifestError(name, document, line, f"the {shortened(kind)}'s {problem}")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise ManifestError(name, document, line, f"the {shortened(kind)} has no metadata.name")
    yield value


def _metadata_problems(metadata: Json) -> Iterator[str]:
    """What is not of the type that ``metadata`` must have."""
    fields = {field: metadata.get(field) for field in ("name", "generateName", "namespace", "uid")}
    for group in ("labels", "annotations"):
        texts = metadata.get(group) or {}
        if not isinstance(texts, dict):
            yield f"metadata.{group} are no mapping"
            continue
        fields |= {f"{group}[{key}]": text for key, text in texts.items()}
    for field, text in fields.items():
        if text is not None and not isinstance(text, str):
            yield f"metadata.{shortened(field)} is no text; put it in quotes"


def _documents(name: str, content: bytes | str) -> Iterator[tuple[int, int, Any]]:
    """(number, first line, value) of each document."""
    number = 1
    try:
        for document in read_plain(content if isinstance(content, str) else decode_text(content)):
            if document.duplicates:
                more = len(document.duplicates) - 1
                problem = document.duplicates[0] + (f" (and {more} more)" if more else "")
                raise ManifestError(name, number, document.line, problem)
            yield number, document.line, document.value
            number += 1
    except DocumentError as error:
        raise ManifestError(name, number, error.line, error.problem, column=error.column) from error


def populate(server: ApiServer, manifests: Sequence[Json]) -> int:
    """Put *manifests* into *server*'s store, without requests.

    Objects with a uid are from a dump and are stored as they are; all others are created as by a client, and the status
    in their manifest is kept. Namespaces without a manifest are created.

    Returns:
        How many objects were stored.

    Raises:
        ManifestError: the server does not know the kind, or refuses the object.
    """
    for manifest in manifests:
        kind, api_version, metadata = manifest["kind"], manifest["apiVersion"], manifest["metadata"]
        resource = server.state.types.of_kind(api_version, kind)
        name = metadata.get("name") or metadata.get("generateName")
        what = shortened(f"{kind} {name}")
        if resource is None:
            problem = f"no resource of kind {shortened(kind)} in {shortened(api_version)} is served"
            raise ManifestError(what, 0, 0, problem)
        if type_error := type_problem(manifest):
            raise ManifestError(what, 0, 0, type_error)
        if resource.collection == "pods" and not manifest.get("spec"):
            raise ManifestError(what, 0, 0, "spec is missing")
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        if namespace:
            _ensure_namespace(server, namespace)
        fields: Json = msgspec.json.decode(msgspec.json.encode(manifest))
        if resource.group == "events.k8s.io":
            fields = event_shapes.to_core(fields)
        try:
            if metadata.get("uid") and metadata.get("name"):
                _restore(server, resource, namespace, fields)
            else:
                _create(server, resource, namespace, fields)
        except (TypeError, AttributeError, KeyError) as error:
            # Kinds whose types are not known to `type_problem`: custom resource definitions for instance.
            problem = f"it lacks a field, or one has the wrong type: {type(error).__name__}: {error}"
            raise ManifestError(what, 0, 0, shortened(problem)) from error
        except ApiError as error:
            raise ManifestError(what, 0, 0, shortened(error.message, 2_000)) from error
    return len(manifests)


def _ensure_namespace(server: ApiServer, name: str) -> None:
    if server.store.get("namespaces", name) is None:
        create(server.state, server.state.types.core("namespaces"), "", {"metadata": {"name": name}})


def _create(server: ApiServer, resource: ResourceType, namespace: str, fields: Json) -> None:
    status = fields.get("status")
    if resource.collection == "namespaces" and server.state.get(resource, "", fields["metadata"]["name"]):
        return
    fields["metadata"].pop("resourceVersion", None)
    stored = create(server.state, resource, namespace, fields)
    if isinstance(status, dict) and status and resource.has_status and not resource.keeps_status_on_create:
        merged = {**(stored.fields.get("status") or {}), **status}
        write_fields(server.state, resource, stored, status=merged)


def _restore(server: ApiServer, resource: ResourceType, namespace: str, fields: Json) -> None:
    """Store *fields* as they are; only the version is this server's own."""
    metadata = fields["metadata"]
    if namespace:
        metadata["namespace"] = namespace
    kept = {name: value for name, value in fields.items() if name not in ("kind", "apiVersion")}
    key = object_key(resource, namespace, metadata["name"])
    if resource.collection == "namespaces" and "deletionTimestamp" in metadata:
        server.state.terminating.add(metadata["name"])
    existing = server.store.get(resource.collection, key)
    if existing is not None:
        server.store.replace(resource.collection, existing, kept)
    else:
        stored = server.store.create(resource.collection, key, kept)
        if resource.kind == "CustomResourceDefinition":
            serve_definition(server.state, stored)
