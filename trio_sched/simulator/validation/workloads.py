"""Rules of what makes pods for ever: Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.label_matching import matches_labels
from trio_sched.simulator.validation.core.pods import template_problems
from trio_sched.simulator.validation.core.volume_claims import claim_spec_problems
from trio_sched.simulator.validation.meta import names
from trio_sched.simulator.validation.meta.field_problems import (
    FieldProblem,
    bad_value,
    forbidden_field,
    required,
    unsupported,
)
from trio_sched.simulator.validation.meta.metadata import immutable, label_problems
from trio_sched.simulator.validation.meta.numbers import amount, amount_problems, negative_problems
from trio_sched.simulator.validation.meta.selectors import label_selector_problems

StatusProblems = Callable[[Json, Json], Iterator[FieldProblem]]
"""What is wrong with the new status of an object: its fields before and after."""

_NO_MATCH = "`selector` does not match template `labels`"


def replica_set_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new ReplicaSet."""
    spec = fields.get("spec") or {}
    yield from negative_problems(spec, "spec", "replicas", "minReadySeconds")
    yield from _selector_problems(spec, "deployment")
    yield from _template_problems(spec, "ReplicaSet")


def deployment_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new Deployment."""
    spec = fields.get("spec") or {}
    yield from negative_problems(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit")
    yield from negative_problems(spec, "spec", "progressDeadlineSeconds")
    yield from _selector_problems(spec, "deployment")
    yield from _template_problems(spec, "ReplicaSet")
    strategy = spec.get("strategy") or {}
    match strategy.get("type"):
        case "Recreate":
            if strategy.get("rollingUpdate") is not None:
                detail = "may not be specified when strategy `type` is 'Recreate'"
                yield forbidden_field("spec.strategy.rollingUpdate", detail)
        case "RollingUpdate":
            yield from _rolling_problems(strategy.get("rollingUpdate") or {}, "spec.strategy.rollingUpdate")
        case _:
            yield unsupported("spec.strategy", strategy, ("Recreate", "RollingUpdate"))
    deadline, ready = spec.get("progressDeadlineSeconds"), spec.get("minReadySeconds") or 0
    if deadline is not None and deadline <= ready:
        yield bad_value("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")


def _rolling_problems(update: Json, path: str) -> Iterator[FieldProblem]:
    unavailable, surge = update.get("maxUnavailable", "25%"), update.get("maxSurge", "25%")
    yield from amount_problems(unavailable, f"{path}.maxUnavailable")
    yield from amount_problems(surge, f"{path}.maxSurge", percent=False)
    if not amount(unavailable) and not amount(surge):
        yield bad_value(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")


def stateful_set_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new StatefulSet."""
    spec = fields.get("spec") or {}
    policy = spec.get("podManagementPolicy")
    if policy not in ("OrderedReady", "Parallel"):
        yield bad_value("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'")
    yield from _stateful_update_problems(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        if retention.get(field, "Retain") not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            yield unsupported(path, retention[field], ("Retain", "Delete"))
    claims = spec.get("volumeClaimTemplates") or []
    for index, claim in enumerate(claims):
        yield from claim_spec_problems(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from negative_problems(spec, "spec", "replicas", "minReadySeconds")
    yield from negative_problems(spec.get("ordinals") or {}, "spec.ordinals", "start")
    service = spec.get("serviceName")
    if service and (problem := names.dns_label(service)):
        yield bad_value("spec.serviceName", service, problem)
    yield from _selector_problems(spec, "statefulset")
    # Its controller replaces volumes of these names, so that containers may mount them.
    template = dict(spec.get("template") or {})
    of_pod = template["spec"] = dict(template.get("spec") or {})
    of_pod.pop("hostname", None)
    of_pod.pop("subdomain", None)
    own = {(claim.get("metadata") or {}).get("name") or "" for claim in claims}
    others = [volume for volume in of_pod.get("volumes") or () if volume.get("name") not in own]
    made = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(own)]
    of_pod["volumes"] = [*made, *others]
    yield from _template_problems({**spec, "template": template}, "StatefulSet")


def _stateful_update_problems(strategy: Json, path: str) -> Iterator[FieldProblem]:
    kind, update = strategy.get("type"), strategy.get("rollingUpdate")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield bad_value(path, strategy, "must be 'RollingUpdate' or 'OnDelete'")
    elif kind == "OnDelete" and update is not None:
        yield bad_value(f"{path}.rollingUpdate", update, "only allowed for updateStrategy 'RollingUpdate'")
    elif update is not None:
        yield from negative_problems(update, f"{path}.rollingUpdate", "partition")


def daemon_set_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new DaemonSet."""
    spec = fields.get("spec") or {}
    yield from _selector_problems(spec, "daemonset", is_required=True)
    yield from _template_problems(spec, "DaemonSet")
    yield from negative_problems(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    strategy = spec.get("updateStrategy") or {}
    kind = strategy.get("type")
    if kind not in ("RollingUpdate", "OnDelete"):
        yield unsupported("spec.updateStrategy", strategy, ("RollingUpdate", "OnDelete"))
    elif kind == "RollingUpdate":
        update, path = strategy.get("rollingUpdate") or {}, "spec.updateStrategy.rollingUpdate"
        unavailable, surge = update.get("maxUnavailable", 1), update.get("maxSurge", 0)
        yield from amount_problems(unavailable, f"{path}.maxUnavailable")
        yield from amount_problems(surge, f"{path}.maxSurge")
        if amount(unavailable) and amount(surge):
            yield bad_value(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
        elif not amount(unavailable) and not amount(surge):
            yield required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def replication_controller_problems(fields: Json) -> Iterator[FieldProblem]:
    """What is wrong with a new ReplicationController."""
    spec = fields.get("spec") or {}
    selector, template = spec.get("selector") or {}, spec.get("template")
    yield from negative_problems(spec, "spec", "replicas", "minReadySeconds")
    if not selector:
        yield required("spec.selector")
    if template is None:
        yield required("spec.template")
        return
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector and not selector.items() <= labels.items():
        yield bad_value("spec.template.metadata.labels", labels, _NO_MATCH)
    yield from label_problems(selector, "spec.selector")
    yield from template_problems(template, "spec.template")
    yield from _running_for_ever(template.get("spec") or {}, "spec.template.spec", "ReplicationController")


def _selector_problems(spec: Json, kind: str, *, is_required: bool = True) -> Iterator[FieldProblem]:
    selector = spec.get("selector")
    if selector is None:
        if is_required:
            yield required("spec.selector")
        return
    yield from label_selector_problems(selector, "spec.selector")
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield bad_value("spec.selector", selector, f"empty selector is invalid for {kind}")


def _template_problems(spec: Json, kind: str) -> Iterator[FieldProblem]:
    template, selector = spec.get("template") or {}, spec.get("selector")
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector is not None and not matches_labels(selector, labels):
        yield bad_value("spec.template.metadata.labels", labels, _NO_MATCH)
    yield from template_problems(template, "spec.template")
    yield from _running_for_ever(template.get("spec") or {}, "spec.template.spec", kind)


def _running_for_ever(spec: Json, path: str, kind: str) -> Iterator[FieldProblem]:
    if spec.get("restartPolicy") != "Always":
        yield unsupported(f"{path}.restartPolicy", spec.get("restartPolicy"), ("Always",))
    if spec.get("activeDeadlineSeconds") is not None:
        yield forbidden_field(f"{path}.activeDeadlineSeconds", f"activeDeadlineSeconds in {kind} is not Supported")


def selector_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a Deployment, a ReplicaSet or a DaemonSet."""
    yield from immutable(old.get("spec") or {}, new.get("spec") or {}, "selector")


def stateful_set_changes(old: Json, new: Json) -> Iterator[FieldProblem]:
    """What is wrong with a change of a StatefulSet."""
    mutable = {"replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds"}
    mutable.add("persistentVolumeClaimRetentionPolicy")

    def fixed(fields: Json) -> dict[str, Any]:
        return {name: value for name, value in (fields.get("spec") or {}).items() if name not in mutable}

    if fixed(old) != fixed(new):
        detail = (
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
            "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
        )
        yield forbidden_field("spec", detail)


def _counters(*numbers: str, at_most_replicas: tuple[str, ...] = (), ready: str = "readyReplicas") -> StatusProblems:
    """The rules of a status that counts.

    Args:
        numbers: what must not be negative.
        at_most_replicas: what must not be more than ``replicas``.
        ready: how messages call ``readyReplicas``.
    """

    def problems(old: Json, new: Json) -> Iterator[FieldProblem]:
        before, status = old.get("status") or {}, new.get("status") or {}
        yield from negative_problems(status, "status", *numbers)
        for name in at_most_replicas:
            if status.get(name, 0) > status.get("replicas", 0):
                yield bad_value(f"status.{name}", status.get(name, 0), "cannot be greater than status.replicas")
        if at_most_replicas and status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
            detail = f"cannot be greater than {ready}"
            yield bad_value("status.availableReplicas", status.get("availableReplicas", 0), detail)
        collisions, had = status.get("collisionCount"), before.get("collisionCount")
        if "collisionCount" in numbers and had is not None and (collisions is None or collisions < had):
            yield bad_value("status.collisionCount", collisions or 0, "cannot be decremented")

    return problems


DEPLOYMENT_STATUS: Final = _counters(
    *("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas"),
    *("unavailableReplicas", "terminatingReplicas", "collisionCount"),
    at_most_replicas=("updatedReplicas", "readyReplicas", "availableReplicas"),
)
REPLICA_SET_STATUS: Final = _counters(
    *("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"),
    "terminatingReplicas",
    at_most_replicas=("fullyLabeledReplicas", "readyReplicas", "availableReplicas"),
)
STATEFUL_SET_STATUS: Final = _counters(
    *("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration"),
    "collisionCount",
    at_most_replicas=("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"),
    ready="status.readyReplicas",
)
DAEMON_SET_STATUS: Final = _counters(
    *("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration"),
    *("updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
)
