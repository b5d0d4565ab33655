"""Server-side apply: each manager applies the fields that it owns, and the server keeps the owners of fields.

Ownership is kept per field of maps; lists that are merged by a key are merged, and owned as a whole by the last manager
that applied them.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from trio_sched.simulator.cluster_state import ClusterState
from trio_sched.simulator.lifecycle import change, create
from trio_sched.simulator.object_store import StoredObject
from trio_sched.simulator.status_errors import ApiError, bad_request, not_found
from trio_sched.simulator.strategic_merge import strategic_merge
from trio_sched.simulator.targets import Target
from trio_sched.simulator.validation.shapes import message_of_kind

Json = dict[str, Any]
Path = tuple[str, ...]

_NOT_OWNED = {("kind",), ("apiVersion",), ("metadata", "name"), ("metadata", "namespace"), ("metadata", "uid")}


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
    metadata = dict(configuration.get("metadata") or {})
    if metadata.get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    if metadata.get("name", target.name) != target.name:
        raise bad_request(
            f"the name of the object ({metadata['name']}) does not match the name on the URL ({target.name})"
        )
    metadata["name"] = target.name
    wanted = {k: v for k, v in configuration.items() if k not in ("kind", "apiVersion")} | {"metadata": metadata}
    owned = set(_leaves(wanted)) - _NOT_OWNED
    stored = state.get(resource, target.namespace, target.name)
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": resource.api_version,
        "time": state.timestamp(),
        "fieldsType": "FieldsV1",
        "fieldsV1": _as_fields(owned),
    }
    if target.subresource:
        entry["subresource"] = target.subresource
    if stored is None:
        if target.subresource:
            raise not_found(resource, target.name)
        metadata["managedFields"] = [entry]
        return 201, create(state, resource, target.namespace, wanted, dry_run=dry_run)
    current: Json = msgspec.json.decode(b"{" + stored.tail)
    entries: list[Json] = current["metadata"].get("managedFields") or []
    mine, others = _mine_and_others(entries, manager, target.subresource)
    taken = {path for other in others for path in _from_fields(other.get("fieldsV1") or {})}
    contested = sorted(path for path in owned & taken if _at(current, path) != _at(wanted, path))
    if contested and not force:
        raise _apply_conflict(contested, others)
    merged = strategic_merge(current, wanted, message_of_kind(resource.api_version, resource.kind))
    for path in _from_fields((mine or {}).get("fieldsV1") or {}):
        if path not in owned and path not in taken:
            _drop(merged, path)
    kept = [_without(other, owned) if force else other for other in others]
    merged["metadata"]["managedFields"] = [*(other for other in kept if other["fieldsV1"]), entry]
    if mine is not None and _same_but_time(mine, entry):
        merged["metadata"]["managedFields"] = entries
    merged["metadata"].setdefault("resourceVersion", str(stored.version))
    return 200, change(state, resource, stored, merged, subresource=target.subresource, dry_run=dry_run)


def _mine_and_others(entries: list[Json], manager: str, subresource: str) -> tuple[Json | None, list[Json]]:
    mine, others = None, []
    for entry in entries:
        same = entry.get("manager") == manager and entry.get("operation") == "Apply"
        if same and entry.get("subresource", "") == subresource:
            mine = entry
        else:
            others.append(entry)
    return mine, others


def _same_but_time(one: Json, other: Json) -> bool:
    return {**one, "time": ""} == {**other, "time": ""}


def _without(entry: Json, owned: set[Path]) -> Json:
    left = set(_from_fields(entry.get("fieldsV1") or {})) - owned
    return {**entry, "fieldsV1": _as_fields(left)}


def _apply_conflict(contested: list[Path], others: list[Json]) -> ApiError:
    causes = []
    for path in contested:
        owner = next(e for e in others if path in set(_from_fields(e.get("fieldsV1") or {})))
        who = f'conflict with "{owner.get("manager")}" using {owner.get("apiVersion")}'
        causes.append({"reason": "FieldManagerConflict", "message": who, "field": "." + ".".join(path)})
    plural = "conflict" if len(causes) == 1 else "conflicts"
    text = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    message = f"Apply failed with {len(causes)} {plural}: {text}"
    return ApiError(409, "Conflict", message, {"causes": causes})


def _leaves(value: Json, path: Path = ()) -> Iterator[Path]:
    """The paths of everything in *value* that is no map."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, (*path, name))
        else:
            yield (*path, name)


def _as_fields(paths: set[Path]) -> Json:
    """*paths* as ``fieldsV1``: nested maps whose keys begin with ``f:``."""
    root: Json = {}
    for path in sorted(paths):
        place = root
        for step in path:
            place = place.setdefault(f"f:{step}", {})
    return root


def _from_fields(fields: Json, path: Path = ()) -> Iterator[Path]:
    for name, inner in fields.items():
        if not name.startswith("f:"):
            continue
        here = (*path, name[2:])
        if inner:
            yield from _from_fields(inner, here)
        else:
            yield here


def _at(value: Any, path: Path) -> Any:
    for step in path:
        if not isinstance(value, dict):
            return None
        value = value.get(step)
    return value


def _drop(value: Any, path: Path) -> None:
    parent = _at(value, path[:-1])
    if isinstance(parent, dict):
        parent.pop(path[-1], None)
