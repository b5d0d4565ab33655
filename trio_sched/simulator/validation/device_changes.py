"""What may change in claims of devices, in their status, and in resource slices.

The status of a claim is checked as thoroughly as the API server checks it, because that is all there is between two
schedulers and one device.
"""

from collections.abc import Iterator
from typing import Final

from trio_sched.simulator.field_problems import FieldProblem, bad_value, duplicate, forbidden_field, required
from trio_sched.simulator.validation.shapes import Json, dicts

_MAX_RESERVED: Final = 256
_MAX_RESULTS: Final = 32


def claim_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a claim or a template."""
    if old.get("spec") != new.get("spec"):
        return [bad_value("spec", new.get("spec"), "field is immutable")]
    return []


def slice_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of a resource slice."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    problems = [
        bad_value(f"spec.{name}", after.get(name), "field is immutable")
        for name in ("driver", "nodeName")
        if before.get(name) != after.get(name)
    ]
    if (before.get("pool") or {}).get("name") != (after.get("pool") or {}).get("name"):
        problems.append(bad_value("spec.pool.name", (after.get("pool") or {}).get("name"), "field is immutable"))
    return problems


def claim_status_changes(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with a change of the status of a claim."""
    before, after = old.get("status") or {}, new.get("status") or {}
    problems: list[FieldProblem] = []
    reserved = dicts(after.get("reservedFor"))
    if len(reserved) > _MAX_RESERVED:
        problems.append(
            FieldProblem(
                "FieldValueTooMany",
                "status.reservedFor",
                f"Too many: {len(reserved)}: must have at most {_MAX_RESERVED} items",
            )
        )
    seen: set[str] = set()
    for position, consumer in enumerate(reserved):
        path = f"status.reservedFor[{position}]"
        problems += [required(f"{path}.{name}") for name in ("resource", "name", "uid") if not consumer.get(name)]
        if consumer.get("uid") in seen:
            problems.append(duplicate(path, consumer.get("uid")))
        seen.add(consumer.get("uid") or "")
    if reserved and "allocation" not in after:
        problems.append(
            forbidden_field("status.reservedFor", "may not be specified when `allocated` is not set"),
        )
    elif "deletionTimestamp" in new["metadata"] and any(
        one not in dicts(before.get("reservedFor")) for one in reserved
    ):
        detail = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
        problems.append(forbidden_field("status.reservedFor", detail))
    if "allocation" in after:
        if "allocation" not in before:
            problems += _allocation_problems(after["allocation"], new.get("spec") or {})
        elif before["allocation"] != after["allocation"]:
            problems.append(bad_value("status.allocation", after["allocation"], "field is immutable"))
    return problems


def _allocation_problems(allocation: Json, spec: Json) -> Iterator[FieldProblem]:
    results = dicts((allocation.get("devices") or {}).get("results"))
    if len(results) > _MAX_RESULTS:
        path = "status.allocation.devices.results"
        detail = f"Too many: {len(results)}: must have at most {_MAX_RESULTS} items"
        yield FieldProblem("FieldValueTooMany", path, detail)
    names: set[str] = set()
    for request in dicts((spec.get("devices") or {}).get("requests")):
        name = request.get("name") or ""
        alternatives = [f"{name}/{one.get('name') or ''}" for one in dicts(request.get("firstAvailable"))]
        names.update(alternatives or [name])
    for position, result in enumerate(results):
        path = f"status.allocation.devices.results[{position}]"
        for field in ("request", "driver", "pool", "device"):
            if not result.get(field):
                yield required(f"{path}.{field}")
        if result.get("request") and result["request"] not in names:
            detail = (
                "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
            )
            yield bad_value(f"{path}.request", result["request"], detail)
