"""The Workloads of Kubernetes 1.35, which contain their pod groups; pods name both, and a key for each copy of a group.

1.36 has PodGroups of their own instead, and pods that name one: what is here makes these of those. A group that was
made so is called after the workload, the group in it and the key if there is one, ``training:workers:0``. No PodGroup
can be called so, since names of objects have no colons.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct, field, structs

from trio_sched.objects.metadata import NamespacedObject, ObjectMeta
from trio_sched.objects.pod import Pod, PodSchedulingGroup, PodWorkloadReference
from trio_sched.objects.pod_groups.pod_group import (
    BasicSchedulingPolicy,
    PodGroup,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)

PLURAL: Final = "workloads"
_SEPARATOR: Final = ":"


class WorkloadPodGroup(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A pod group in a workload."""

    name: str = ""
    policy: PodGroupSchedulingPolicy = field(default_factory=PodGroupSchedulingPolicy)


class WorkloadSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Workload."""

    pod_groups: tuple[WorkloadPodGroup, ...] | None = None


class Workload(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``scheduling.k8s.io/v1alpha1`` Workload."""

    spec: WorkloadSpec = field(default_factory=WorkloadSpec)


def is_of_workload(group: str) -> bool:
    """Whether the pod group called *group* is of a workload, and so no object of the API server."""
    return _SEPARATOR in group


def workload_of(group: PodGroup) -> ObjectMeta:
    """Name, namespace and UID of the workload that *group* is of; the UID is empty if the workload is not known."""
    found = group.metadata
    name, uid = (text.partition(_SEPARATOR)[0] for text in (found.name, found.uid))
    return ObjectMeta(name=name, namespace=found.namespace, uid=uid, resource_version=found.resource_version)


def workload_and_group(name: str) -> tuple[str, str]:
    """The names of the workload of 1.35 that the pod group called *name* is of, and of the group in it.

    The first is empty if it is no such group.
    """
    workload, separator, rest = name.partition(_SEPARATOR)
    return (workload, rest.partition(_SEPARATOR)[0]) if separator else ("", name)


def join_group(pod: Pod) -> None:
    """Put *pod*, just decoded, into the pod group that its ``spec.workloadRef`` stands for."""
    spec = pod.spec
    if spec.workload_ref is None:
        return
    if spec.scheduling_group is None:
        group = PodSchedulingGroup(pod_group_name=_name(spec.workload_ref))
        structs.force_setattr(spec, "scheduling_group", group)
    structs.force_setattr(spec, "workload_ref", None)


def stay_in_group(pod: Pod, known: Pod) -> None:
    """Let *pod*, just decoded, be in the group that it was in when it was *known*.

    A server of 1.36 shows pods that 1.35 has stored without their reference, and a pod never changes its group.
    """
    group = known.spec.scheduling_group
    if group is None or pod.spec.scheduling_group is not None or pod.metadata.uid != known.metadata.uid:
        return
    if is_of_workload(group.pod_group_name or ""):
        structs.force_setattr(pod.spec, "scheduling_group", group)


def group_in(workload: Workload, name: str, priority: int | None) -> PodGroup | None:
    """The pod group *name* of *workload* as an object of its own; None if the workload has no such group.

    Args:
        workload: which has the group.
        name: of the group.
        priority: that of its pods.
    """
    _workload, own_name = workload_and_group(name)
    found = next((one for one in workload.spec.pod_groups or () if one.name == own_name), None)
    if found is None:
        return None
    # Groups of one workload need UIDs that differ.
    uid = f"{workload.metadata.uid}{_SEPARATOR}{name.partition(_SEPARATOR)[2]}"
    metadata = structs.replace(workload.metadata, name=name, uid=uid)
    return PodGroup(metadata=metadata, spec=PodGroupSpec(scheduling_policy=found.policy, priority=priority))


def group_without_workload(namespace: str, name: str) -> PodGroup:
    """The pod group *name* where no workloads are served: its pods are scheduled one by one."""
    policy = PodGroupSchedulingPolicy(basic=BasicSchedulingPolicy())
    return PodGroup(metadata=ObjectMeta(name=name, namespace=namespace), spec=PodGroupSpec(scheduling_policy=policy))


def with_groups_of_workloads(
    objects: Collection[PodGroup | Workload], pods: Collection[Pod], *, are_served: bool = True
) -> list[PodGroup]:
    """The pod groups among *objects*, and those of the workloads among them.

    Args:
        objects: pod groups and workloads.
        pods: of a group that they name there is one for each copy, with their priority.
        are_served: whether the API server has workloads; if not, pods that name one are scheduled one by one.
    """
    groups = [one for one in objects if isinstance(one, PodGroup)]
    workloads = {(one.namespace, one.name): one for one in objects if isinstance(one, Workload)}
    if not workloads and are_served:
        return groups
    wanted: dict[tuple[str, str], int | None] = {}
    for pod in pods:
        group = pod.spec.scheduling_group
        if group is not None and group.pod_group_name:
            wanted.setdefault((pod.metadata.namespace, group.pod_group_name), pod.spec.priority)
    for one in workloads.values():
        for contained in one.spec.pod_groups or ():
            wanted.setdefault((one.namespace, f"{one.name}{_SEPARATOR}{contained.name}"), None)
    for (namespace, name), priority in wanted.items():
        if not is_of_workload(name):
            continue
        if not are_served:
            groups.append(group_without_workload(namespace, name))
            continue
        workload = workloads.get((namespace, workload_and_group(name)[0]))
        made = None if workload is None else group_in(workload, name, priority)
        if made is not None:
            groups.append(made)
    return groups


def reference_to(group: str) -> PodWorkloadReference | None:
    """How a pod of 1.35 names the pod group called *group*; None if that is of no workload."""
    workload, _separator, rest = group.partition(_SEPARATOR)
    name, _separator, key = rest.partition(_SEPARATOR)
    return PodWorkloadReference(name=workload, pod_group=name, pod_group_replica_key=key) if rest else None


def _name(reference: PodWorkloadReference) -> str:
    parts = (reference.name, reference.pod_group, reference.pod_group_replica_key)
    return _SEPARATOR.join(parts if parts[2] else parts[:2])
