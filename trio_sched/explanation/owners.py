"""The controllers of pods."""

from __future__ import annotations

from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod


def controller_of(pod: Pod) -> OwnerReference | None:
    """The controller of *pod*."""
    return next((one for one in pod.metadata.owner_references or () if one.controller), None)


def is_of(owner: OwnerReference | None, pod: Pod) -> bool:
    """Whether *owner* is the controller of *pod*."""
    controller = controller_of(pod)
    return owner is not None and controller is not None and controller.uid == owner.uid
