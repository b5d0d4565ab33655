"""The controllers of pods."""

from __future__ import annotations

from collections.abc import Iterable

from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod


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
