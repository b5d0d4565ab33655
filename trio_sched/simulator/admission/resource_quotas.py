"""ResourceQuotas: objects that would exceed one are refused, and the status says what is used."""

from typing import Any

from trio_sched.documents.json_values import Json
from trio_sched.objects.amounts.quantity import parse_nano
from trio_sched.objects.amounts.quantity_text import format_nano, style_of
from trio_sched.simulator.admission.quota_usage import is_in_scope, missing, usage_of, uses_other
from trio_sched.simulator.errors.status_errors import forbidden, quota_exceeded
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType

QUOTAS = "resourcequotas"


def charge_change(state: ClusterState, resource: ResourceType, old: Json, new: Json, *, dry_run: bool) -> None:
    """Count what an object uses more than before it was changed.

    Raises:
        ApiError: as for `charge`.
    """
    if uses_other(resource, old, new):
        charge(state, resource, new["metadata"]["namespace"], new, old=old, dry_run=dry_run)


def charge(
    state: ClusterState, resource: ResourceType, namespace: str, fields: Json, *, old: Json | None = None, dry_run: bool
) -> None:
    """Count a new object in the quotas of its namespace, or one that was *old* before.

    Raises:
        ApiError: 403, it would exceed one, or does not say what one limits.
    """
    changed = []
    for quota in state.store.collection(QUOTAS).in_order(namespace):
        hard = quota.fields["spec"].get("hard") or {}
        used = usage_of(resource, fields)
        lacks = missing(hard, resource, fields)
        concerned = lacks is not None or not used.keys().isdisjoint(hard)
        if not concerned or not is_in_scope(quota.fields, resource, fields):
            continue
        if old is not None and is_in_scope(quota.fields, resource, old):
            counted_before = usage_of(resource, old)
            used = {one: max(amount - counted_before.get(one, 0), 0) for one, amount in used.items()}
            if not any(used.get(one) for one in hard):
                continue
        name, quota_name = fields["metadata"].get("name") or "", quota.fields["metadata"]["name"]
        if lacks is not None:
            raise forbidden(resource, name, f"failed quota: {quota_name}: {lacks}")
        status = quota.fields.get("status") or {}
        before = status.get("used") if status.get("hard") == hard else None
        if before is None:
            before = counted(state, quota)
        after = dict(before)
        exceeded = []
        for limited in sorted(used.keys() & hard.keys()):
            total = parse_nano(before.get(limited, 0)) + used[limited]
            after[limited] = _written(total, hard[limited], before.get(limited))
            if used[limited] and total > parse_nano(hard[limited]):
                exceeded.append(limited)
        if exceeded:
            requested = {one: _written(used[one], hard[one], None) for one in exceeded}
            raise quota_exceeded(
                resource,
                name,
                f"exceeded quota: {quota_name}, requested: {_listed(requested, exceeded)}, "
                f"used: {_listed(before, exceeded)}, limited: {_listed(hard, exceeded)}",
            )
        changed.append((quota, {"hard": dict(hard), "used": after}))
    if not dry_run:
        for quota, status in changed:
            write_status(state, quota, status)


def counted(state: ClusterState, quota: StoredObject) -> Json:
    """What is used of a quota by all that there is."""
    hard, namespace = quota.fields["spec"].get("hard") or {}, quota.fields["metadata"]["namespace"]
    totals = dict.fromkeys(hard, 0)
    for resource in state.types.storages():
        if not resource.namespaced or resource.collection == "events":
            continue
        for stored in state.store.collection(resource.collection).in_order(namespace):
            if is_in_scope(quota.fields, resource, stored.fields):
                for name, amount in usage_of(resource, stored.fields).items():
                    if name in totals:
                        totals[name] += amount
    return {name: _written(amount, hard[name], None) for name, amount in totals.items()}


def write_status(state: ClusterState, quota: StoredObject, status: Json) -> None:
    """Write the status of a quota unless it has it already."""
    if quota.fields.get("status") != status:
        metadata = dict(quota.fields["metadata"])
        state.store.replace(QUOTAS, quota, {**quota.fields, "metadata": metadata, "status": status})


def _written(amount: int, limit: Any, before: Any) -> str:
    return format_nano(amount, style_of(before if before not in (None, "0", 0) else limit))


def _listed(amounts: Json, names: list[str]) -> str:
    return ",".join(f"{name}={amounts.get(name, '0')}" for name in names)
