"""Clusters from manifests: they are put into the store of an API server, with namespaces and such that no file has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.go.text import shortened
from trio_sched.simulator.admission.admission import select_by_uid
from trio_sched.simulator.admission.runtime_classes import RUNTIME_CLASSES
from trio_sched.simulator.admission.workload_references import has_unknown_reference
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.errors.status_errors import ApiError, QuotaExceeded
from trio_sched.simulator.manifests.manifest_checks import CheckedManifests, check_manifests
from trio_sched.simulator.manifests.manifest_files import Source
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError, ManifestProblem, read_manifests
from trio_sched.simulator.pods.pod_defaults import DEFAULT_ACCOUNT
from trio_sched.simulator.registry.bootstrap_objects import BOOTSTRAP_OBJECTS
from trio_sched.simulator.registry.lifecycle import create, write_fields
from trio_sched.simulator.registry.served_definitions import serve_definition
from trio_sched.simulator.storage.cluster_state import object_key
from trio_sched.simulator.storage.kubernetes_versions import DEFAULT_MINOR
from trio_sched.simulator.storage.object_store import copied
from trio_sched.simulator.storage.resource_types import ResourceType

_HANDLER: Final = "runc"
"""The handler of RuntimeClasses that only pods mention."""

_ONLY_IN_1_35: Final = "Kubernetes 1.35 alone has it: simulate that with --kubernetes-version=1.35"


def load_manifests(
    sources: Iterable[Source],
    listed: Sequence[Manifest] = (),
    *,
    lenient: bool = False,
    strict: bool = False,
    begin: Callable[[str], None] = lambda _what: None,
    minor: int = DEFAULT_MINOR,
) -> CheckedManifests:
    """Read every object of *sources* and check it, see `read_manifests` and `check_manifests`.

    Args:
        sources: see `read_manifests`.
        listed: objects that are in no file, which are checked with the others.
        lenient: see `check_manifests`.
        strict: likewise.
        begin: is told what is done next.
        minor: see `check_manifests`.

    Raises:
        ManifestError: everything that is wrong with them.
    """
    read = read_manifests(sources, lambda name: begin(f"reading {name}"))
    begin(f"checking {len(read.manifests) + len(listed)} objects")
    checked = check_manifests([*listed, *read.manifests], read.problems, lenient=lenient, strict=strict, minor=minor)
    checked.files = read.files
    return checked


def populate(
    server: ApiServer,
    manifests: Sequence[Manifest] | Sequence[Json],
    no_room: Callable[[ManifestProblem], None] | None = None,
) -> int:
    """Put *manifests* into *server*'s store, without requests.

    Objects with a uid are from a dump and are stored as they are; all others are created as by a client, and the status
    in their manifest is kept. Namespaces without a manifest are created, and so are the service accounts and
    RuntimeClasses that pods name.

    Args:
        server: the server.
        manifests: checked ones, whose fields become the store's, or objects in code, which are checked here.
        no_room: takes what is said of pods beyond a ResourceQuota, which a cluster would not have; None: that is an
            error as any other.

    Returns:
        How many objects were stored.

    Raises:
        ManifestError: the server refuses some of them.
    """
    checked = [one if isinstance(one, Manifest) else Manifest(copied(one)) for one in manifests]
    if any(not isinstance(one, Manifest) for one in manifests):
        definitions = server.store.collection("customresourcedefinitions.apiextensions.k8s.io").in_order()
        known = [stored.fields for stored in definitions]
        minor = server.state.types.minor
        checked = check_manifests(checked, known_definitions=known, strict=True, minor=minor).manifests
    problems: list[ManifestProblem] = []
    stored = 0
    for manifest in checked:
        kind = manifest.fields["kind"]
        is_new = not manifest.fields["metadata"].get("uid")
        if kind == "Pod" and is_new and has_unknown_reference(manifest.fields, server.state.types.minor):
            problems.append(manifest.problem(_ONLY_IN_1_35, "spec.workloadRef"))
            continue
        try:
            _store(server, manifest)
            stored += 1
        except ApiError as error:
            manifest.fields["kind"] = kind  # the store takes it off
            found = list(_located(manifest, error))
            if no_room is not None and kind == "Pod" and isinstance(error, QuotaExceeded):
                no_room(found[0])
            else:
                problems += found
    if problems:
        raise ManifestError(problems)
    return stored


def _located(manifest: Manifest, error: ApiError) -> Iterator[ManifestProblem]:
    """What the server refuses, each field of it at its place."""
    causes = (error.details or {}).get("causes") if error.reason == "Invalid" else None
    if not causes:
        yield manifest.problem(shortened(error.message, 2_000))
    for cause in causes or ():
        yield manifest.problem(shortened(cause["message"], 2_000), cause["field"])


def _store(server: ApiServer, manifest: Manifest) -> None:
    fields = manifest.fields
    resource = server.state.types.of_kind(fields["apiVersion"], fields["kind"])
    assert resource is not None, "manifests were checked"
    metadata = fields["metadata"]
    namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
    if namespace:
        _ensure_namespace(server, namespace)
        if not resource.custom:
            _ensure_named(server, namespace, fields)
    if metadata.get("uid") and metadata.get("name"):
        _restore(server, resource, namespace, fields)
    else:
        _create(server, resource, namespace, fields)


def _ensure_namespace(server: ApiServer, name: str) -> None:
    """Create the namespace *name* if no manifest has it."""
    if server.store.get("namespaces", name) is None:
        create(server.state, server.state.types.core("namespaces"), "", {"metadata": {"name": name}})


def _ensure_named(server: ApiServer, namespace: str, fields: Json) -> None:
    """Create the service account and the RuntimeClass that *fields*, or the pods made of them, name.

    Dumps and manifests are often made without them, and a cluster that lacks them has no such pods.
    """
    spec: Json = fields.get("spec") or {}
    while "containers" not in spec:
        inner = spec.get("jobTemplate") or spec.get("template")
        if not isinstance(inner, dict) or not isinstance(inner.get("spec"), dict):
            return
        spec = inner["spec"]
    state = server.state
    account, runtime = spec.get("serviceAccountName") or DEFAULT_ACCOUNT, spec.get("runtimeClassName")
    if account != DEFAULT_ACCOUNT and state.store.get("serviceaccounts", f"{namespace}/{account}") is None:
        create(state, state.types.core("serviceaccounts"), namespace, {"metadata": {"name": account}})
    if runtime and state.store.get(RUNTIME_CLASSES, runtime) is None:
        overhead = {"overhead": {"podFixed": spec["overhead"]}} if spec.get("overhead") else {}
        runtime_class = {"metadata": {"name": runtime}, "handler": _HANDLER, **overhead}
        create(state, state.types.built_in("node.k8s.io/v1", "RuntimeClass"), "", runtime_class)


def _create(server: ApiServer, resource: ResourceType, namespace: str, fields: Json) -> None:
    status = fields.get("status")
    metadata = fields["metadata"]
    key = object_key(resource, namespace, metadata.get("name") or "")
    existing = server.store.get(resource.collection, key) if (resource.collection, key) in BOOTSTRAP_OBJECTS else None
    if existing is not None:
        marks = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
        kept = existing.fields["metadata"]
        merged = {name: {**(kept.get(name) or {}), **marks[name]} for name in marks}
        write_fields(server.state, resource, existing, metadata={**kept, **merged})
        return
    metadata.pop("resourceVersion", None)
    stored = create(server.state, resource, namespace, fields, checked=True)
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
    if resource.collection == "jobs.batch" and not kept["spec"].get("selector"):
        select_by_uid(kept)  # somebody has removed it from the dump; without one it would create pods for ever
    if resource.collection == "namespaces" and "deletionTimestamp" in metadata:
        server.state.terminating.add(metadata["name"])
    existing = server.store.get(resource.collection, key)
    if existing is not None:
        server.store.replace(resource.collection, existing, kept)
    else:
        stored = server.store.create(resource.collection, key, kept)
        if resource.kind == "CustomResourceDefinition":
            serve_definition(server.state, stored)
