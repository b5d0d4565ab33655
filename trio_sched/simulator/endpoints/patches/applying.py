"""Server-side apply: each manager applies the fields that it owns, and the server keeps the owners of fields.

Of objects that nobody has applied no owners are kept; all they have belongs to ``before-first-apply`` from the first
time on.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.messages import Request
from trio_sched.simulator.endpoints.negotiation import mapping
from trio_sched.simulator.endpoints.patches.field_sets import (
    MISSING,
    Path,
    as_fields,
    from_fields,
    is_key,
    maps_of,
    merged,
    paths_of,
    remove,
    root_of,
    shown,
    value_at,
)
from trio_sched.simulator.errors.status_errors import ApiError, bad_request, not_found
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.registry.lifecycle import change, create
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject, copied
from trio_sched.simulator.storage.resource_types import ResourceType

_NEVER_OWNED: Final = frozenset(
    {("f:kind",), ("f:apiVersion",), ("f:metadata",)}
    | {
        ("f:metadata", f"f:{name}")
        for name in (
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "generation",
            "managedFields",
            "name",
            "namespace",
            "resourceVersion",
            "selfLink",
            "uid",
        )
    }
)
_UNKNOWN_WRITER: Final = "before-first-apply"
_LONGEST_MANAGER: Final = 128


def apply_configuration(
    state: ClusterState, target: Target, configuration: Json, manager: str, *, force: bool, dry_run: bool
) -> tuple[int, StoredObject]:
    """Apply *configuration* for *manager*; fields that other managers own are kept.

    Returns:
        The HTTP status (201 for a new object) and the object.

    Raises:
        ApiError: 409, another manager owns a field that this one would change, and *force* is not set.
    """
    resource = target.resource
    wanted = _wanted(target, configuration)
    owned = _owned(resource, wanted, target.subresource)
    stored = state.get(resource, target.namespace, target.name)
    entry = _entry(state, resource, manager, "Apply", target.subresource, owned)
    if stored is None:
        if target.subresource:
            raise not_found(resource, target.name)
        wanted["metadata"]["managedFields"] = [entry]
        return 201, create(state, resource, target.namespace, wanted, dry_run=dry_run)
    current: Json = msgspec.json.decode(b"{" + stored.tail)
    entries: list[Json] = current["metadata"].pop("managedFields", None) or []
    if not entries:
        everything = {
            path for part in ("", "status") for found in (_owned, _maps) for path in found(resource, current, part)
        }
        entries = [_entry(state, resource, _UNKNOWN_WRITER, "Update", "", everything)]
    mine, others = _mine_and_others(entries, entry)
    result: Json = merged(current, wanted, root_of(resource))
    changed = {path for path in owned if _has_changed(current, result, path)}
    contested = [(other, sorted(changed & _paths_in(other))) for other in others]
    if not force and any(paths for _, paths in contested):
        raise _apply_conflict([(other, path) for other, paths in contested for path in paths])
    kept = [_without(other, changed) for other in others]
    _remove_released(result, _paths_in(mine) - owned, owned.union(*(_paths_in(other) for other in kept)))
    written = [*(other for other in kept if other["fieldsV1"]), entry]
    if mine is not None and _same_but_time([*others, mine], written):
        written = entries
    result["metadata"]["managedFields"] = written
    result["metadata"].setdefault("resourceVersion", str(stored.version))
    return 200, change(state, resource, stored, result, subresource=target.subresource, dry_run=dry_run)


def note_update(
    state: ClusterState, target: Target, stored: StoredObject, fields: Json, request: Request, subresource: str
) -> None:
    """Let the writer of *request* own what *fields*, in place, change of *stored*; only of objects that were applied.

    Raises:
        ApiError: as for `lifecycle.change`.
    """
    metadata = fields.get("metadata")
    if not isinstance(metadata, dict):
        return
    given = metadata.get("managedFields")
    if given in ([], [{}]):  # a request to forget who owns what
        del metadata["managedFields"]
        return
    entries: list[Json] = stored.fields["metadata"].get("managedFields") or []
    if not entries:
        return
    metadata["managedFields"] = entries = given or entries
    resource, part = target.resource, "status" if subresource == "status" else ""
    # Only what comes of the change says what is changed: the fields may lack what has a default.
    result = change(state, resource, stored, copied(fields), subresource=part, dry_run=True).fields
    before, after = _owned(resource, stored.fields, part), _owned(resource, result, part)
    changed = {path for path in after if _has_changed(stored.fields, result, path)}
    changed |= {path for path in _maps(resource, result, part) if value_at(stored.fields, path) is MISSING}
    gone = {path for path in _maps(resource, stored.fields, part) if value_at(result, path) is MISSING}
    taken = changed | (before - after) | gone
    if not taken:
        return
    entry = _entry(state, resource, _writer(request), "Update", subresource, changed)
    mine, _ = _mine_and_others(entries, entry)
    kept = [_without(one, taken) for one in entries if one is not mine]
    entry["fieldsV1"] = as_fields((_paths_in(mine) - taken) | changed)
    metadata["managedFields"] = [one for one in (*kept, entry) if one.get("fieldsV1")]


def _writer(request: Request) -> str:
    """Who sends *request*, as the API server names its managers."""
    named = request.parameters.get("fieldManager") or request.headers.get("user-agent", "").partition("/")[0]
    return named[:_LONGEST_MANAGER] or "unknown"


def _has_changed(old: Json, new: Json, path: Path) -> bool:
    before = value_at(old, path)
    return before is MISSING if _is_item(path) else before != value_at(new, path)


def _wanted(target: Target, configuration: Json) -> Json:
    """*configuration* as it is applied.

    Raises:
        ApiError: 400, it is not that of the target.
    """
    metadata = dict(mapping(configuration, "metadata"))
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    if target.namespace and metadata.get("namespace") not in (None, "", target.namespace):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    _check_keys(target, configuration)
    metadata["name"] = target.name
    return {k: v for k, v in configuration.items() if k not in ("kind", "apiVersion")} | {"metadata": metadata}


def _check_keys(target: Target, configuration: Json) -> None:
    """Refuse items of one list with equal keys."""
    seen: set[Path] = set()
    for path in paths_of(configuration, root_of(target.resource)):
        if _is_item(path) and path in seen:
            raise unusable(target, f"{shown(path[:-1])}: duplicate entries for key {shown(path[-1:])}")
        seen.add(path)


def unusable(target: Target, why: str) -> ApiError:
    """A configuration that no object can be made of."""
    resource, name = target.resource, f"{target.namespace}/{target.name}"
    kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
    return ApiError(500, "", f"failed to create typed patch object ({name}; {kind}): {why}")


def _owned(resource: ResourceType, fields: Json, subresource: str) -> set[Path]:
    """The paths of *fields* that a writer through *subresource* can own."""
    return _writable(resource, paths_of(fields, root_of(resource)), subresource)


def _maps(resource: ResourceType, fields: Json, subresource: str) -> set[Path]:
    """The paths of the maps in *fields*, which belong to the writer who adds them."""
    return _writable(resource, maps_of(fields, root_of(resource)), subresource)


def _writable(resource: ResourceType, paths: Iterable[Path], subresource: str) -> set[Path]:
    found = {path for path in paths if path[:2] not in _NEVER_OWNED and path not in _NEVER_OWNED}
    if subresource == "status":
        return {path for path in found if path[0] == "f:status"}
    return {path for path in found if path[0] != "f:status"} if resource.has_status else found


def _entry(
    state: ClusterState, resource: ResourceType, manager: str, operation: str, subresource: str, owned: set[Path]
) -> Json:
    entry = {
        "manager": manager,
        "operation": operation,
        "apiVersion": resource.api_version,
        "time": state.timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": as_fields(owned),
    }
    return {**entry, "subresource": subresource} if subresource else entry


def _is_item(path: Path) -> bool:
    return path[-1].startswith("k:")


def _paths_in(entry: Json | None) -> set[Path]:
    return set() if entry is None else set(from_fields(entry.get("fieldsV1")))


def _mine_and_others(entries: list[Json], entry: Json) -> tuple[Json | None, list[Json]]:
    """The entry among *entries* of the writer of *entry*, and the others."""
    names = ("manager", "operation", "subresource") + (("apiVersion",) if entry["operation"] == "Update" else ())
    mine, others = None, []
    for one in entries:
        if all((one.get(name) or "") == (entry.get(name) or "") for name in names):
            mine = one
        else:
            others.append(one)
    return mine, others


def _without(entry: Json, paths: set[Path]) -> Json:
    owned = _paths_in(entry)
    return {**entry, "fieldsV1": as_fields(owned - paths)} if owned & paths else entry


def _same_but_time(one: list[Json], other: list[Json]) -> bool:
    return [{**entry, "time": ""} for entry in one] == [{**entry, "time": ""} for entry in other]


def _remove_released(fields: Json, released: set[Path], owned: set[Path]) -> None:
    """Remove from *fields* what its manager applies no longer, unless somebody owns it or a part of it."""
    needed = {path[:end] for path in owned for end in range(1, len(path) + 1)}
    for path in sorted(released):  # items come before their parts, without which they could not be found
        if path not in needed and not is_key(path):
            remove(fields, path)


def _apply_conflict(contested: list[tuple[Json, Path]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {_shown(other)}", "field": shown(path)}
        for other, path in contested
    ]
    if len(causes) == 1:
        text = f"{causes[0]['message']}: {causes[0]['field']}"
    else:
        fields: dict[str, list[str]] = {}
        for other, path in contested:
            fields.setdefault(_shown(other), []).append(f"- {shown(path)}")
        text = "\n".join(line for who in sorted(fields) for line in (f"conflicts with {who}:", *fields[who]))
    plural = "conflict" if len(causes) == 1 else "conflicts"
    message = f"Apply failed with {len(causes)} {plural}: {text}"
    return ApiError(409, "Conflict", message, {"causes": causes})


def _shown(entry: Json) -> str:
    """A manager as conflicts name it."""
    text = f'"{entry.get("manager")}"'
    if entry.get("subresource"):
        text += f' with subresource "{entry["subresource"]}"'
    if entry.get("operation") == "Update":
        text += f" using {entry.get('apiVersion')}"
    return text
