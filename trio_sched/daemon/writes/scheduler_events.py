"""Every event that this scheduler records, with the type, reason, action and text that kube-scheduler gives it.

Source: the calls of ``Eventf`` in kube-scheduler 1.36, and client-go's leader election.
"""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from trio_sched.config.schema import LeaderElection
from trio_sched.objects.event import ObjectReference
from trio_sched.objects.lease import Lease
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod

EventType = Literal["Normal", "Warning"]


@frozen(kw_only=True)
class PodEvent:
    """An event about a pod, without what the recorder adds: name, time, and the instance that reports it."""

    pod: Pod
    """The pod, or the object that *regarding* refers to."""
    type: EventType
    reason: str
    action: str
    note: str
    """The text; the recorder cuts it to the size that the API server takes."""
    reporting_controller: str
    """The profile that reports it."""
    once: bool = False
    """It cannot happen again to this version of the pod, so the recorder keeps no series for it."""
    regarding: ObjectReference | None = None
    """What it is about, if that is no pod."""


@frozen(kw_only=True)
class LeaseEvent:
    """An event about the lease of the leader election, recorded as ``v1``, as kube-scheduler does."""

    namespace: str
    name: str
    type: EventType
    reason: str
    note: str
    component: str
    """The ``source`` of the event: the first profile."""
    uid: str
    resource_version: str
    """The resource version of the lease as it was written last."""


@frozen(kw_only=True)
class PodGroupEvent:
    """An event about a pod group, recorded as ``v1``."""

    kind: str
    """What it is about: the PodGroup, or the Workload that contains the group."""
    about: ObjectMeta
    api_version: str
    """The one in which the server serves it."""
    type: EventType
    reason: str
    note: str
    component: str
    """The profile that reports it."""


def scheduled(pod: Pod, node_name: str) -> PodEvent:
    """*pod* was bound to *node_name*."""
    return PodEvent(
        pod=pod,
        type="Normal",
        reason="Scheduled",
        action="Binding",
        note=f"Successfully assigned {pod.key} to {node_name}",
        reporting_controller=pod.scheduler_name,
        once=True,
    )


def failed_scheduling(pod: Pod, message: str) -> PodEvent:
    """FailedScheduling: an attempt to schedule *pod* failed; *message* says why."""
    return PodEvent(
        pod=pod,
        type="Warning",
        reason="FailedScheduling",
        action="Scheduling",
        note=message,
        reporting_controller=pod.scheduler_name,
    )


def skipped_deleting(pod: Pod) -> PodEvent:
    """FailedScheduling: *pod* was not scheduled because it is being deleted."""
    return failed_scheduling(pod, f"skip schedule deleting pod: {pod.key}")


def preempted(
    victim: Pod, node_name: str, *, kind: str, uid: str, profile: str, before_binding: bool = False
) -> PodEvent:
    """*victim* was evicted to make room.

    Args:
        victim: the pod.
        node_name: its node.
        kind: of the preemptor, ``pod`` or ``podgroup``.
        uid: of the preemptor.
        profile: the profile that schedules the preemptor.
        before_binding: whether *victim* was not bound yet.
    """
    where = " (in kube-scheduler memory)." if before_binding else ""
    return PodEvent(
        pod=victim,
        type="Normal",
        reason="Preempted",
        action="Preempting",
        note=f"Preempted by {kind} {uid} on node {node_name}{where}",
        reporting_controller=profile,
    )


def evicted_with_gang(pod: Pod, group: str) -> PodEvent:
    """*pod* was evicted because its gang or tree, ``pod group namespace/name``, could not be completed."""
    return PodEvent(
        pod=pod,
        type="Normal",
        reason="EvictedWithGang",
        action="Evicting",
        note=f"Evicted because {group} stayed incomplete; it is scheduled again as a whole",
        reporting_controller=pod.scheduler_name,
    )


def became_leader(lease: Lease, *, identity: str, component: str) -> LeaseEvent:
    """The candidate *identity* acquired *lease*."""
    return _on_lease(lease, component, f"{identity} became leader")


def stopped_leading(lease: Lease, *, identity: str, component: str) -> LeaseEvent:
    """The candidate *identity* released or lost *lease*."""
    return _on_lease(lease, component, f"{identity} stopped leading")


def reloaded(election: LeaderElection, note: str, *, component: str, is_failure: bool) -> LeaseEvent:
    """The configuration was reloaded, or could not be; the lease stands for the scheduler."""
    return LeaseEvent(
        namespace=election.resource_namespace,
        name=election.resource_name,
        uid="",
        resource_version="",
        type="Warning" if is_failure else "Normal",
        reason="ConfigurationNotReloaded" if is_failure else "ConfigurationReloaded",
        note=note,
        component=component,
    )


def _on_lease(lease: Lease, component: str, note: str) -> LeaseEvent:
    return LeaseEvent(
        namespace=lease.metadata.namespace,
        name=lease.metadata.name,
        uid=lease.metadata.uid,
        resource_version=lease.metadata.resource_version,
        type="Normal",
        reason="LeaderElection",
        note=note,
        component=component,
    )
