"""Refuses pods by the labels of their namespace, and warns of them."""

from __future__ import annotations

from typing import Final

from attrs import evolve, frozen

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.pod_security.restricted import violations
from trio_sched.simulator.admission.pod_security.subject import LATEST, Subject
from trio_sched.simulator.errors.status_errors import forbidden
from trio_sched.simulator.pods.containers import placed_containers
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.object_store import StoredObject
from trio_sched.simulator.storage.resource_types import ResourceType
from trio_sched.simulator.validation.core.namespaces import LABEL_PREFIX, LEVELS, VERSION

_TEMPLATES: Final = frozenset(
    {"replicationcontrollers", "podtemplates", "replicasets.apps", "deployments.apps", "statefulsets.apps"}
    | {"daemonsets.apps", "jobs.batch", "cronjobs.batch"}
)


@frozen
class Standard:
    """A level of the Pod Security Standards, and a version of it: ``latest`` or like ``v1.30``."""

    level: str = "privileged"
    version: str = "latest"

    def __str__(self) -> str:
        return f"{self.level}:{self.version}"

    @property
    def rank(self) -> int:
        """The stricter, the higher."""
        return LEVELS.index(self.level)


def _standard(labels: Json, mode: str, if_wrong: str) -> Standard:
    level = labels.get(f"{LABEL_PREFIX}{mode}", "privileged")
    version = labels.get(f"{LABEL_PREFIX}{mode}-version", "latest")
    return Standard(level if level in LEVELS else if_wrong, version if VERSION.fullmatch(version) else "latest")


def enforced(labels: Json) -> Standard:
    """What a namespace with these *labels* enforces; a level that is none counts as the strictest."""
    return _standard(labels, "enforce", "restricted")


def _warned_about(labels: Json) -> Standard:
    standard = _standard(labels, "warn", "privileged")
    level = labels.get(f"{LABEL_PREFIX}enforce")
    if f"{LABEL_PREFIX}warn" in labels or level not in LEVELS or level == "privileged":
        return standard
    version = standard.version if f"{LABEL_PREFIX}warn-version" in labels else enforced(labels).version
    return evolve(standard, level=level, version=version)


def check_pod(state: ClusterState, resource: ResourceType, fields: Json) -> None:
    """Refuse a new pod that its namespace does not take.

    Raises:
        ApiError: 403.
    """
    labels = _labels_of(state, fields["metadata"].get("namespace") or "")
    if f"{LABEL_PREFIX}enforce" not in labels:
        return
    standard = enforced(labels)
    detail = _detail(standard, fields)
    if detail:
        name = fields["metadata"].get("name") or ""
        raise forbidden(resource, name, f'violates PodSecurity "{standard}": {detail}')


def check_pod_change(state: ClusterState, old: Json, new: Json) -> None:
    """Refuse a change of a pod that its namespace does not take; only other images are a reason to look.

    Raises:
        ApiError: 403.
    """
    if _is_significant(old["spec"], new["spec"]):
        check_pod(state, state.types.core("pods"), new)


def _is_significant(before: Json, after: Json) -> bool:
    if any(len(before.get(kind) or ()) != len(after.get(kind) or ()) for kind in ("containers", "initContainers")):
        return True
    images = {_image(one) for one, _ in placed_containers(before, "")}
    return any(_image(one) not in images for one, _ in placed_containers(after, ""))


def _image(container: Json) -> tuple[str, str]:
    return container.get("name") or "", container.get("image") or ""


def warnings(
    state: ClusterState, resource: ResourceType, before: StoredObject | None, stored: StoredObject
) -> list[str]:
    """What to tell the client about a request that was carried out.

    Args:
        state: the cluster.
        resource: what was written.
        before: the version before; None: it is new.
        stored: what was written.
    """
    if resource.collection == "namespaces":
        return [] if before is None else _warnings_of_namespace(state, before.fields, stored.fields)
    if resource.collection != "pods" and resource.collection not in _TEMPLATES:
        return []
    labels = _labels_of(state, stored.fields["metadata"].get("namespace") or "")
    standard = _warned_about(labels)
    if standard.level == "privileged":
        return []
    subject = stored.fields
    if resource.collection in _TEMPLATES:
        subject = _template_of(stored.fields)
    elif before is not None and not _is_significant(before.fields["spec"], subject["spec"]):
        return []
    detail = _detail(standard, subject)
    return [f'would violate PodSecurity "{standard}": {detail}'] if detail else []


def _template_of(fields: Json) -> Json:
    spec = fields.get("spec") or fields
    template = ((spec.get("jobTemplate") or {}).get("spec") or spec).get("template")
    return template or {}


def _warnings_of_namespace(state: ClusterState, old: Json, new: Json) -> list[str]:
    """Which pods of a namespace it would not take now that its labels are others."""
    before, after = (enforced(fields["metadata"].get("labels") or {}) for fields in (old, new))
    if before == after or after.level == "privileged":
        return []
    if before.version == after.version and after.rank <= before.rank:
        return []
    name = new["metadata"]["name"]
    names_of: dict[str, list[str]] = {}
    for pod in state.store.collection("pods").in_order(name):
        if found := _violations(after, pod.fields):
            names_of.setdefault(", ".join(reason for reason, _ in found), []).append(pod.fields["metadata"]["name"])
    if not names_of:
        return []
    head = f'existing pods in namespace "{name}" violate the new PodSecurity enforce level "{after}"'
    return [head, *sorted(_pods_and_reason(sorted(names), reason) for reason, names in names_of.items())]


def _pods_and_reason(names: list[str], reason: str) -> str:
    others = len(names) - 1
    also = f" (and {others} other {'pod' if others == 1 else 'pods'})" if others else ""
    return f"{names[0]}{also}: {reason}"


def _labels_of(state: ClusterState, namespace: str) -> Json:
    stored = state.store.get("namespaces", namespace)
    labels: Json = {} if stored is None else stored.fields["metadata"].get("labels") or {}
    return labels


def _detail(standard: Standard, fields: Json) -> str:
    found = _violations(standard, fields)
    return ", ".join(f"{reason} ({detail})" if detail else reason for reason, detail in found)


def _violations(standard: Standard, fields: Json) -> list[tuple[str, str]]:
    if standard.level == "privileged":
        return []
    chosen = VERSION.fullmatch(standard.version)
    minor = LATEST if chosen is None else min(int(chosen[1]), LATEST)
    annotations = (fields.get("metadata") or {}).get("annotations") or {}
    subject = Subject(annotations, fields.get("spec") or {}, minor)
    return violations(subject, is_restricted=standard.level == "restricted")
