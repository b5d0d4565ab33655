"""Clusters from files: written manifests, and dumps of whole clusters."""

from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import IO, Any

import msgspec
import yaml

from trio_sched.errors import TrioSchedError
from trio_sched.simulator import event_shapes
from trio_sched.simulator.api_server import ApiServer
from trio_sched.simulator.cluster_state import object_key
from trio_sched.simulator.lifecycle import create, serve_definition, write_fields
from trio_sched.simulator.manifest_yaml import ManifestLoader
from trio_sched.simulator.resource_types import ResourceType
from trio_sched.simulator.status_errors import ApiError

Json = dict[str, Any]
Source = Path | str | IO[str]

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
    """

    def __init__(self, source: str, document: int, line: int, problem: str) -> None:
        super().__init__(source, document, line, problem)
        self.source, self.document, self.line, self.problem = source, document, line, problem

    def __str__(self) -> str:
        where = self.source
        if self.line:
            where += f", line {self.line}"
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
        for name, text in _texts(source):
            found.extend(_objects(name, text))
    return sorted(found, key=_rank)


def _rank(manifest: Json) -> int:
    kind = manifest["kind"]
    return _RANK_OF_PODS if kind == "Pod" else _RANK.get(kind, _RANK_OF_OTHERS)


def _texts(source: Source) -> Iterator[tuple[str, str]]:
    if not isinstance(source, Path | str):
        yield getattr(source, "name", "<text>"), source.read()
        return
    path = Path(source)
    if path.is_dir():
        for entry in sorted(path.iterdir()):
            if entry.suffix in (".yaml", ".yml", ".json"):
                yield from _texts(entry)
        return
    try:
        yield str(path), path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ManifestError(str(path), 0, 0, f"cannot be read: {error}") from error


def _objects(name: str, text: str) -> Iterator[Json]:
    for document, line, value in _documents(name, text):
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
            raise ManifestError(name, document, line, f"{field} is missing")
    kind = value["kind"]
    if kind.endswith("List") and isinstance(value.get("items"), list):
        # Items of a typed list do not repeat kind and version.
        typed = {} if kind == "List" else {"apiVersion": value["apiVersion"], "kind": kind.removesuffix("List")}
        for item in value["items"]:
            yield from _unpacked(name, document, line, item, typed)
        return
    metadata = value.get("metadata")
    if not isinstance(metadata, dict) or not (metadata.get("name") or metadata.get("generateName")):
        raise ManifestError(name, document, line, f"the {kind} has no metadata.name")
    yield value


def _documents(name: str, text: str) -> Iterator[tuple[int, int, Any]]:
    """(number, first line, value) of each document."""
    if text.lstrip().startswith("{"):
        try:
            yield 1, 1, msgspec.json.decode(text)
            return
        except msgspec.DecodeError:
            pass  # YAML's own maps begin with a brace as well, and so does a run of several JSON objects
    loader = ManifestLoader(StringIO(text))
    number = 1
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None  # checked by check_node
            yield number, node.start_mark.line + 1, loader.construct_document(node)
            number += 1
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise ManifestError(name, number, line, error.problem or str(error)) from error
    except yaml.YAMLError as error:
        raise ManifestError(name, number, 0, str(error)) from error
    finally:
        loader.dispose()


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
        if resource is None:
            raise ManifestError(f"{kind} {name}", 0, 0, f"no resource of kind {kind} in {api_version} is served")
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        if namespace:
            _ensure_namespace(server, namespace)
        fields: Json = msgspec.json.decode(msgspec.json.encode(manifest))
        if resource.group == "events.k8s.io":
            fields = event_shapes.to_core(fields)
        try:
            if metadata.get("uid"):
                _restore(server, resource, namespace, fields)
            else:
                _create(server, resource, namespace, fields)
        except ApiError as error:
            raise ManifestError(f"{kind} {name}", 0, 0, error.message) from error
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
