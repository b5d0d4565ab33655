"""The controllers of pods."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod

_OF_DEPLOYMENTS: Final = "pod-template-hash"
"""The label of pods whose ReplicaSet a Deployment has made; that is named after both."""


@frozen(kw_only=True)
class Workload:
    """What makes a pod, in the end."""

    kind: str
    name: str


def controller_of(pod: Pod) -> OwnerReference | None:
    """The controller of *pod*."""
    return next((one for one in pod.metadata.owner_references or () if one.controller), None)


def is_of(owner: OwnerReference | None, pod: Pod) -> bool:
    """Whether *owner* is the controller of *pod*."""
    controller = controller_of(pod)
    return owner is not None and controller is not None and controller.uid == owner.uid


def siblings_of(pod: Pod, pods: Iterable[Pod]) -> list[Pod]:
    """Those of *pods* that the controller of *pod* has made, too, and that are for the same scheduler."""
    owner = controller_of(pod)
    return [
        one for one in pods if one.uid != pod.uid and one.scheduler_name == pod.scheduler_name and is_of(owner, one)
    ]


def workload_behind(pod: Pod) -> Workload | None:
    """What makes *pod*, as its labels and its controller say."""
    owner = controller_of(pod)
    if owner is None:
        return None
    ending = f"-{(pod.labels or {}).get(_OF_DEPLOYMENTS)}"
    if owner.kind == "ReplicaSet" and owner.name.endswith(ending):
        return Workload(kind="Deployment", name=owner.name.removesuffix(ending))
    return Workload(kind=owner.kind, name=owner.name)
