"""What may change in a pod."""

from __future__ import annotations

from trio_sched.simulator.status_errors import FieldProblem, forbidden_field
from trio_sched.simulator.validation.shapes import Json

_IMMUTABLE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def update_problems(old: Json, new: Json) -> list[FieldProblem]:
    """What is wrong with changing a pod's spec from *old* to *new*."""
    if old == new:
        return []
    problems = []
    tolerations = new.get("tolerations") or []
    if any(toleration not in tolerations for toleration in old.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        if not _only_seconds_changed(old.get("tolerations") or [], tolerations):
            problems.append(forbidden_field("spec.tolerations", detail))
    gates_before = [gate.get("name") for gate in old.get("schedulingGates") or ()]
    added = [gate["name"] for gate in new.get("schedulingGates") or () if gate.get("name") not in gates_before]
    if added:
        detail = f"only deletion is allowed, but found new scheduling gate '{added[0]}'"
        problems.append(forbidden_field("spec.schedulingGates", detail))
    if _mutable_parts_removed(old, gated=bool(gates_before)) != _mutable_parts_removed(new, gated=bool(gates_before)):
        problems.append(forbidden_field("spec", _IMMUTABLE))
    return problems


def _only_seconds_changed(old: list[Json], new: list[Json]) -> bool:
    def without_seconds(toleration: Json) -> Json:
        return {name: value for name, value in toleration.items() if name != "tolerationSeconds"}

    kept = [without_seconds(toleration) for toleration in new]
    return all(without_seconds(toleration) in kept for toleration in old)


def _mutable_parts_removed(spec: Json, *, gated: bool) -> Json:
    """*spec* without what may change; a gated pod may also change its node selector and affinity."""
    mutable = {"activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"}
    if gated:
        mutable |= {"nodeSelector", "affinity"}
    fixed = {name: value for name, value in spec.items() if name not in mutable}
    for name in ("containers", "initContainers"):
        if fixed.get(name):
            fixed[name] = [{**container, "image": ""} for container in fixed[name]]
    return fixed
