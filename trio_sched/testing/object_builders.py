"""Namespaces, Services and controllers, disruption budgets, priority classes for tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trio_sched.objects.disruption_budget import DisruptionBudgetSpec, DisruptionBudgetStatus, PodDisruptionBudget
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.pod_groups.workload import (
    LabelSelectorSpec,
    MapSelectorSpec,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from trio_sched.testing.label_builders import Selector, read_selector

_API_VERSIONS = {
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicationController": "v1",
    "Pod": "v1",
    "Node": "v1",
    "Job": "batch/v1",
    "CronJob": "batch/v1",
    "PodGroup": "scheduling.k8s.io/v1alpha2",
    "CompositePodGroup": "scheduling.k8s.io/v1alpha3",
}


def metadata(
    name: str,
    namespace: str = "",
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
) -> ObjectMeta:
    """The metadata of an object, with a UID made of namespace and name; for objects that have no builder.

    Args:
        name: its name.
        namespace: its namespace; empty if its kind has none.
        labels: its labels.
        annotations: its annotations.
        owner: its owner reference.
    """
    return ObjectMeta(
        name=name,
        namespace=namespace,
        uid=f"uid-of-{namespace}/{name}" if namespace else f"uid-of-{name}",
        labels=dict(labels) if labels else None,
        annotations=dict(annotations) if annotations else None,
        owner_references=(owner,) if owner is not None else None,
    )


def owner_reference(
    kind: str,
    name: str,
    *,
    namespace: str = "default",
    api_version: str = "",
    uid: str | None = None,
    controller: bool = True,
) -> OwnerReference:
    """A reference to the owner of an object, for ``pod(owner=…)``.

    Args:
        kind: of the owner, ``ReplicaSet`` for instance.
        name: of the owner.
        namespace: of the owner; with *name* it makes the UID.
        api_version: by default that of *kind*, for the kinds of Kubernetes that own pods.
        uid: by default the one that a builder gives the owner.
        controller: whether the owner manages the object.

    Raises:
        ValueError: the API version of *kind* is not known here.
    """
    version = api_version or _API_VERSIONS.get(kind, "")
    if not version:
        raise ValueError(f"owner_reference does not know the API version of kind {kind!r}: give api_version")
    return OwnerReference(
        api_version=version,
        kind=kind,
        name=name,
        uid=f"uid-of-{namespace}/{name}" if uid is None else uid,
        controller=controller,
    )


def namespace(name: str = "default", *, labels: Mapping[str, str] | None = None) -> Namespace:
    """A namespace; an API server gives it the label ``kubernetes.io/metadata.name`` too."""
    return Namespace(metadata=metadata(name, labels={"kubernetes.io/metadata.name": name, **(labels or {})}))


def service(name: str = "service", selector: Mapping[str, str] | None = None, *, namespace: str = "default") -> Service:
    """A Service for the pods with all labels of *selector*; None selects no pod."""
    return Service(metadata(name, namespace), MapSelectorSpec(None if selector is None else dict(selector)))


def replication_controller(
    name: str = "controller", selector: Mapping[str, str] | None = None, *, namespace: str = "default"
) -> ReplicationController:
    """A ReplicationController of the pods with all labels of *selector*."""
    spec = MapSelectorSpec(None if selector is None else dict(selector))
    return ReplicationController(metadata(name, namespace), spec)


def replica_set(name: str = "replica-set", selector: Selector = "", *, namespace: str = "default") -> ReplicaSet:
    """A ReplicaSet of the pods that *selector* matches; see `label_selector`."""
    return ReplicaSet(metadata(name, namespace), LabelSelectorSpec(read_selector(selector)))


def stateful_set(name: str = "stateful-set", selector: Selector = "", *, namespace: str = "default") -> StatefulSet:
    """A StatefulSet of the pods that *selector* matches; see `label_selector`."""
    return StatefulSet(metadata(name, namespace), LabelSelectorSpec(read_selector(selector)))


def disruption_budget(
    name: str = "budget",
    selector: Selector = "",
    *,
    namespace: str = "default",
    allowed: int = 0,
    disrupted: Iterable[str] = (),
) -> PodDisruptionBudget:
    """A PodDisruptionBudget.

    Args:
        name: its name.
        selector: the pods that it protects; see `label_selector`.
        namespace: its namespace, and that of these pods.
        allowed: how many of them may be evicted now.
        disrupted: names of pods whose eviction was allowed and that are still there.
    """
    return PodDisruptionBudget(
        metadata=metadata(name, namespace),
        spec=DisruptionBudgetSpec(selector=read_selector(selector)),
        status=DisruptionBudgetStatus(
            disruptions_allowed=allowed,
            disrupted_pods=dict.fromkeys(disrupted, "2026-01-01T00:00:00Z") or None,
        ),
    )


def priority_class(
    name: str = "important",
    value: int = 1000,
    *,
    preemption_policy: str | None = None,
    is_default: bool = False,
) -> dict[str, Any]:
    """A PriorityClass, as a manifest for `VirtualCluster.create`: schedulers read priorities of pods, not classes.

    Args:
        name: its name; pods name it as ``priorityClassName``.
        value: the priority of its pods.
        preemption_policy: of its pods, ``Never`` for instance.
        is_default: whether pods without a class get it.
    """
    manifest: dict[str, Any] = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    if preemption_policy is not None:
        manifest["preemptionPolicy"] = preemption_policy
    return {**manifest, "globalDefault": True} if is_default else manifest
