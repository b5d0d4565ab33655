"""Creation, change and removal of objects: what every kind has in common."""

from datetime import datetime
from typing import Any

from attrs import frozen

from trio_sched.documents.json_values import Json
from trio_sched.objects.timestamps import format_time
from trio_sched.simulator.admission.resource_quotas import charge, charge_change
from trio_sched.simulator.errors.status_errors import (
    already_exists,
    conflict,
    forbidden,
    invalid,
    no_version,
    not_found,
    precondition_failed,
)
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.registry.empty_parts import may_have_empty_parts, without_empty_parts
from trio_sched.simulator.registry.new_metadata import check_namespace, new_metadata
from trio_sched.simulator.registry.served_definitions import DEFINITIONS, serve_definition, withdraw_definition
from trio_sched.simulator.registry.strategy import rules_of
from trio_sched.simulator.storage.clock import parse_timestamp
from trio_sched.simulator.storage.cluster_state import ClusterState, object_key
from trio_sched.simulator.storage.object_store import StoredObject, versioned
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.core.pod_resize import resize_problems, resized_spec
from trio_sched.simulator.validation.meta.field_problems import bad_value
from trio_sched.simulator.validation.meta.metadata import metadata_problems

PROTECTED_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_PROPAGATION_FINALIZERS = {"Foreground": FOREGROUND, "Orphan": ORPHAN}

_EVENTS = "events"
"""Written for every pod; they have no lists, and no maps but their labels and annotations."""
_OF_DELETION = ("deletionTimestamp", "deletionGracePeriodSeconds")
_SERVER_METADATA = ("uid", "creationTimestamp", "generation", *_OF_DELETION)


@frozen(kw_only=True)
class DeleteOptions:
    """The options of a deletion.

    Attributes:
        grace_seconds: instead of the pod's own; ``None``: the pod's own.
        uid: the object must have this uid.
        version: the object must be at this version.
        propagation: ``Foreground``: it goes after its dependents, ``Orphan``: they stay; else they go after it.
    """

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str | None = None
    dry_run: bool = False


def require(state: ClusterState, resource: ResourceType, namespace: str, name: str) -> StoredObject:
    """The stored object of that name.

    Raises:
        ApiError: 404, there is none.
    """
    stored = state.get(resource, namespace, name)
    if stored is None:
        raise not_found(resource, name)
    return stored


def create(
    state: ClusterState,
    resource: ResourceType,
    namespace: str,
    fields: Json,
    *,
    dry_run: bool = False,
    checked: bool = False,
) -> StoredObject:
    """Store a new object made from *fields*, which become the store's.

    Args:
        state: the cluster.
        resource: what it is.
        namespace: where; empty for what is in none.
        fields: the object; see `validation.decoding`.
        dry_run: store nothing.
        checked: its defaults are filled in, and it is known to break no rule of its kind.

    Raises:
        ApiError: the object breaks a rule, exists, or its namespace cannot take it.
    """
    metadata = new_metadata(state, resource, namespace, fields)
    if not resource.keeps_status_on_create and resource.has_status:
        fields.pop("status", None)
    name = metadata.get("name") or ""
    rules = rules_of(resource)
    is_looked_at = not checked and not resource.custom and resource.collection != _EVENTS
    has_empty_parts = is_looked_at and may_have_empty_parts(fields)
    if not checked or resource.custom:  # the default of a custom status was taken off
        rules.defaults(fields)
    sent_problems = [] if checked else list(rules.sent_problems(fields))
    rules.admit(state, resource, fields)
    if not checked:
        problems = [*metadata_problems(resource.plural, metadata), *rules.problems(fields), *sent_problems]
        if problems:
            raise invalid(resource, name, problems)
    if has_empty_parts:
        fields = without_empty_parts(fields, resource.message)
    if namespace:
        check_namespace(state, resource, namespace, name)
    rules.check(state, resource, fields)
    key = object_key(resource, namespace, name)
    if state.store.get(resource.collection, key) is not None:
        raise already_exists(resource, name)
    if namespace:
        charge(state, resource, namespace, fields, dry_run=dry_run)
    if dry_run:
        return versioned(key, 0, fields)
    stored = state.store.create(resource.collection, key, fields)
    if resource.collection == DEFINITIONS:
        serve_definition(state, stored)
    return stored


def change(
    state: ClusterState,
    resource: ResourceType,
    stored: StoredObject,
    fields: Json,
    *,
    subresource: str = "",
    dry_run: bool = False,
) -> StoredObject:
    """Store *fields* in place of *stored*; an update that changes nothing makes no new version.

    The *subresource* ``status`` changes the status alone, ``resize`` the resources of a pod, the empty one all
    but the status.

    Raises:
        ApiError: 409 if *fields* stem from another version or object, 422 if they break a rule.
    """
    old, old_metadata = stored.fields, stored.fields["metadata"]
    name = old_metadata["name"]
    rules = rules_of(resource)
    metadata = dict(fields.get("metadata") or {})
    version = metadata.pop("resourceVersion", None)
    if version and version != str(stored.version):
        raise conflict(resource, name) if version.isdecimal() else no_version(version)
    if not version and not resource.blind_updates:
        raise invalid(resource, name, [bad_value("metadata.resourceVersion", 0, "must be specified for an update")])
    if metadata.get("uid") not in (None, "", old_metadata["uid"]):
        raise precondition_failed(resource, stored.key, name, "UID", metadata["uid"], old_metadata["uid"])
    wrong = [
        bad_value(f"metadata.{field}", metadata[field], "field is immutable")
        for field in _OF_DELETION
        if metadata.get(field) not in (None, old_metadata.get(field))
        and _moment(metadata[field]) != _moment(old_metadata.get(field))
    ]
    for field in ("name", "namespace", *_SERVER_METADATA):
        if field in old_metadata:
            metadata[field] = old_metadata[field]
        else:
            metadata.pop(field, None)
    for field in [field for field, value in metadata.items() if value is None]:
        del metadata[field]
    if subresource == "status" and rules.status_keeps_metadata:
        metadata = _unversioned(old_metadata)
    if subresource == "status":
        new = {**old, "metadata": metadata}
        _take(new, fields, "status")
    elif subresource == "resize":
        new = {**old, "metadata": metadata, "spec": resized_spec(old["spec"], fields.get("spec") or {})}
        rules.defaults(new)
    else:
        new = {"metadata": metadata}
        new.update((k, v) for k, v in fields.items() if k not in ("metadata", "kind", "apiVersion"))
        if resource.has_status:
            _take(new, old, "status")
        rules.defaults(new)
        rules.admit_change(state, old, new)
    if not wrong and _is_same(old, new):
        return stored
    problems = [*wrong, *metadata_problems(resource.plural, metadata)]
    if subresource != "status":
        problems += rules.problems(new)
    if not resource.custom and may_have_empty_parts(new):
        new = without_empty_parts(new, resource.message)
        metadata = new["metadata"]
    changes = {"status": rules.status_problems, "resize": resize_problems}.get(subresource, rules.change_problems)
    problems += changes(old, new)
    if problems:
        raise invalid(resource, name, problems)
    if _is_same(old, new):
        return stored
    if resource.counts_generations and _spec_changed(resource, old, new):
        metadata["generation"] = old_metadata.get("generation", 0) + 1
    if subresource == "resize":
        rules.check(state, resource, new)
    elif not subresource:
        rules.check_change(state, old, new)
    if resource.namespaced and subresource in ("", "resize"):
        charge_change(state, resource, old, new, dry_run=dry_run)
    if dry_run:
        return versioned(stored.key, stored.version, new)
    if "deletionTimestamp" in metadata and not metadata.get("finalizers") and _no_grace_left(metadata):
        last = state.store.replace(resource.collection, stored, new)
        return _remove(state, resource, last)
    changed = state.store.replace(resource.collection, stored, new)
    if resource.collection == DEFINITIONS:
        serve_definition(state, changed)
    return changed


def _moment(value: Any) -> Any:
    """A time, however its zone is written."""
    try:
        return datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return value


def _is_same(old: Json, new: Json) -> bool:
    """Whether two versions of an object differ in nothing but their number."""
    return {**new, "metadata": None} == {**old, "metadata": None} and new["metadata"] == _unversioned(old["metadata"])


def _unversioned(metadata: Json) -> Json:
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


def _take(target: Json, source: Json, name: str) -> None:
    if source.get(name) is not None:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _spec_changed(resource: ResourceType, old: Json, new: Json) -> bool:
    if "spec" in old or "spec" in new:
        return bool(old.get("spec") != new.get("spec"))
    ignored = {"metadata", "status"}
    return any(old.get(name) != new.get(name) for name in {*old, *new} - ignored)


def _no_grace_left(metadata: Json) -> bool:
    return not metadata.get("deletionGracePeriodSeconds")


def write_fields(state: ClusterState, resource: ResourceType, stored: StoredObject, **changes: Any) -> StoredObject:
    """Replace whole top-level fields, without validation: for the server and the simulated kubelets and controllers."""
    fields = {**stored.fields, **changes}
    if "metadata" not in changes:
        fields["metadata"] = dict(stored.fields["metadata"])
    return state.store.replace(resource.collection, stored, fields)


def drop_finalizer(state: ClusterState, resource: ResourceType, stored: StoredObject, finalizer: str) -> StoredObject:
    """Take *finalizer* off an object; one that only waited for that is removed."""
    metadata = dict(stored.fields["metadata"])
    metadata["finalizers"] = [one for one in metadata.get("finalizers") or () if one != finalizer]
    if not metadata["finalizers"]:
        del metadata["finalizers"]
    written = write_fields(state, resource, stored, metadata=metadata)
    if "deletionTimestamp" in metadata and "finalizers" not in metadata and _no_grace_left(metadata):
        return _remove(state, resource, written)
    return written


def delete(state: ClusterState, resource: ResourceType, stored: StoredObject, options: DeleteOptions) -> StoredObject:
    """Remove *stored*, or mark it as terminating: for the kubelet, for finalizers, until a namespace is empty.

    Returns:
        The object as it was removed or marked; it is still in the store in the latter case.

    Raises:
        ApiError: 409 if a precondition fails, 403 for namespaces that may not be deleted.
    """
    metadata = stored.fields["metadata"]
    name = metadata["name"]
    if options.uid and options.uid != metadata["uid"]:
        raise precondition_failed(resource, stored.key, name, "UID", options.uid, metadata["uid"])
    if options.version and options.version != str(stored.version):
        found = str(stored.version)
        raise precondition_failed(resource, stored.key, name, "ResourceVersion", options.version, found)
    if resource.collection == "namespaces" and name in PROTECTED_NAMESPACES:
        raise forbidden(resource, name, "this namespace may not be deleted")
    grace = _grace(resource, stored, options)
    if options.dry_run:
        return stored
    if resource.collection == "namespaces":
        return _terminate_namespace(state, resource, stored)
    finalizer = _PROPAGATION_FINALIZERS.get(options.propagation or "")
    if finalizer is not None and finalizer not in (metadata.get("finalizers") or ()):
        kept = [*(metadata.get("finalizers") or ()), finalizer]
        stored = write_fields(state, resource, stored, metadata={**metadata, "finalizers": kept})
        metadata = stored.fields["metadata"]
    if grace == 0 and not metadata.get("finalizers"):
        return _remove(state, resource, stored)
    return _mark(state, resource, stored, grace)


def _grace(resource: ResourceType, stored: StoredObject, options: DeleteOptions) -> int:
    """The grace period in seconds; 0 for pods that no kubelet runs."""
    if resource.collection != "pods":
        return 0
    spec = stored.fields["spec"]
    if not spec.get("nodeName") or is_finished(stored.fields):
        return 0
    grace = options.grace_seconds
    if grace is None:
        grace = spec.get("terminationGracePeriodSeconds", 30)
    return max(int(grace), 0) if grace >= 0 else 1


def _mark(state: ClusterState, resource: ResourceType, stored: StoredObject, grace: int) -> StoredObject:
    metadata = dict(stored.fields["metadata"])
    if "deletionTimestamp" in metadata:
        left = metadata.get("deletionGracePeriodSeconds", 0)
        if grace >= left:
            return stored
        began = parse_timestamp(metadata["deletionTimestamp"]) or state.now()
        deadline = began.timestamp() - left + grace
        metadata["deletionTimestamp"] = format_time(began.fromtimestamp(deadline, began.tzinfo))
    else:
        now = state.now()
        metadata["deletionTimestamp"] = format_time(now.fromtimestamp(now.timestamp() + grace, now.tzinfo))
        if "generation" in metadata:
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = grace
    return write_fields(state, resource, stored, metadata=metadata)


def _remove(state: ClusterState, resource: ResourceType, stored: StoredObject) -> StoredObject:
    removed = state.store.delete(resource.collection, stored)
    if resource.collection == DEFINITIONS:
        withdraw_definition(state, stored)
    namespace = stored.fields["metadata"].get("namespace")
    if namespace in state.terminating:
        if resource.collection == "pods":
            _empty_namespace(state, namespace)
        else:
            _finish_if_empty(state, namespace)
    return removed


def _terminate_namespace(state: ClusterState, resource: ResourceType, stored: StoredObject) -> StoredObject:
    name = stored.fields["metadata"]["name"]
    if name not in state.terminating:
        metadata = {**stored.fields["metadata"], "deletionTimestamp": state.timestamp()}
        stored = write_fields(state, resource, stored, metadata=metadata, status={"phase": "Terminating"})
        state.terminating.add(name)
    for pod in list(state.store.collection("pods").in_order(name)):
        delete(state, state.types.core("pods"), pod, DeleteOptions())
    _empty_namespace(state, name)
    return stored


def _empty_namespace(state: ClusterState, name: str) -> None:
    """Delete what is in a terminating namespace, which is done when no pod is left."""
    if next(iter(state.store.collection("pods").in_order(name)), None) is not None:
        return
    kinds = [kind for kind in state.types.storages() if kind.namespaced]
    for kind in kinds:
        for found in list(state.store.collection(kind.collection).in_order(name)):
            delete(state, kind, found, DeleteOptions())
    _finish_if_empty(state, name)


def _finish_if_empty(state: ClusterState, name: str) -> None:
    """Remove a terminating namespace once it is empty and has no finalizer."""
    stored = state.store.get("namespaces", name)
    if stored is None or stored.fields["metadata"].get("finalizers"):
        return
    for kind in state.types.storages():
        if kind.namespaced and next(iter(state.store.collection(kind.collection).in_order(name)), None) is not None:
            return
    state.terminating.discard(name)
    state.store.delete("namespaces", stored)
