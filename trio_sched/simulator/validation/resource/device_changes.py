"""What may change in claims of devices and in resource slices; for the status of claims see `claim_status`."""

from trio_sched.simulator.raw_objects import Json
from trio_sched.simulator.validation.meta.field_problems import FieldProblem, bad_value


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
