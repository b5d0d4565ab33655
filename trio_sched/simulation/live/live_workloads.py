"""Workloads of a running cluster: which of them a pod belongs to, and why one that is asked about has no pods."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from attrs import define, evolve, field

from trio_sched.errors import nearest_name
from trio_sched.explanation.owners import controller_of
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.decoding.decoding import Page
from trio_sched.kube_client.errors import ApiError, Forbidden
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.verbs import get, list_pages
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.event import CoreEvent
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload import ReplicaSet
from trio_sched.simulation.asked_pods import Name, NoSuchPod
from trio_sched.simulation.live.quota_change import larger_quota

OWNERS: Final[Mapping[str, Kind[Any]]] = {
    "Job": Kind(group="batch", version="v1", plural="jobs", namespaced=True, type=ReplicaSet),
    "ReplicaSet": Kind(group="apps", version="v1", plural="replicasets", namespaced=True, type=ReplicaSet),
    "StatefulSet": Kind(group="apps", version="v1", plural="statefulsets", namespaced=True, type=AnyObject),
}
"""What may stand between a pod and its workload, of which the metadata are read; of a StatefulSet how many it wants."""
_BEHIND: Final[Mapping[str, str]] = {"CronJob": "Job", "Deployment": "ReplicaSet"}
"""Workload → what stands between it and its pods."""
_WORKLOADS: Final[Mapping[str, Kind[Any]]] = {
    kind: Kind(group=group, version="v1", plural=f"{kind.lower()}s", namespaced=True, type=AnyObject)
    for kind, group in (
        ("CronJob", "batch"),
        ("DaemonSet", "apps"),
        ("Deployment", "apps"),
        ("Job", "batch"),
        ("ReplicaSet", "apps"),
        ("ReplicationController", ""),
        ("StatefulSet", "apps"),
    )
}
_FAILED_CREATE: Final = "FailedCreate"
_PREFIX: Final = "Error creating: "


_EVENTS: Final = Kind(version="v1", plural="events", namespaced=True, type=CoreEvent)
_NAMESPACES: Final = Kind(version="v1", plural="namespaces", namespaced=False, type=AnyObject)


def possibly_meant(names: Iterable[Name], pods: Collection[Pod]) -> list[Pod]:
    """Pods that may be of a Deployment or a CronJob that is asked about, by the names of their controllers."""
    keys = {pod.key for pod in pods}
    wanted = [
        (name.namespace, f"{name.name}-")
        for name in names
        if name.kind in _BEHIND or (name.kind == "Pod" and f"{name.namespace}/{name.name}" not in keys)
    ]
    found = []
    for pod in pods if wanted else ():
        controller = controller_of(pod)
        if controller is not None and any(
            pod.namespace == namespace and controller.name.startswith(prefix) for namespace, prefix in wanted
        ):
            found.append(pod)
    return found


@define(eq=False)
class LiveWorkloads:
    """Looks workloads up with the rights of whoever asks."""

    client: KubeClient
    _refused: dict[str, Forbidden] = field(factory=dict, init=False)
    """Kind → what the server said when one of the kind that stands behind a pod was not to be read."""

    async def owners_of(self, pods: Iterable[Pod]) -> dict[tuple[str, str, str], Any]:
        """What may stand between *pods* and their workloads, by kind, namespace and name."""
        owners: dict[tuple[str, str, str], Any] = {}
        for pod in pods:
            controller = controller_of(pod)
            kind = OWNERS.get(controller.kind) if controller is not None else None
            if controller is None or kind is None or (controller.kind, pod.namespace, controller.name) in owners:
                continue
            owner = None  # gone, or not to be seen: then the controller itself is the workload
            try:
                owner = await get(self.client, kind, controller.name, namespace=pod.namespace)
            except Forbidden as refused:
                self._refused[controller.kind] = refused
            except ApiError:
                pass
            owners[controller.kind, pod.namespace, controller.name] = owner
        return owners

    async def explained(self, missing: NoSuchPod) -> NoSuchPod:
        """*missing*, with what the workload itself says, which right is missing, or what may be meant."""
        name = missing.name
        if (refused := self._refused.get(_BEHIND.get(name.kind, ""))) is not None:
            between = OWNERS[_BEHIND[name.kind]].plural
            return NoSuchPod(
                f"the pods of {name} cannot be found, because you may not read the {between} between them: {refused}; "
                f"ask for the right to get {between}, or name a pod",
                name,
            )
        kind = _WORKLOADS.get(name.kind)
        if kind is not None:
            try:
                found = await get(self.client, kind, name.name, namespace=name.namespace)
                refusal = await self._refusal(name, found) if _lacking(name.kind, found) else ""
                why = refusal or _why_no_pods(name, found)
            except Forbidden as refused:
                right = f"ask for the right to get {kind.plural}, or name a pod"
                return NoSuchPod(f"no pod of {name} is seen, and you may not read it: {refused}; {right}", name)
            except ApiError:
                pass  # there is none, or nothing is known of it
            else:
                return NoSuchPod(f"{name} has no pods: {why}", name)
        if missing.near:
            return missing
        meant = await self._nearest(name, kind)
        return NoSuchPod(f"{missing}; did you mean {meant}?", name, near=meant) if meant else missing

    async def lacking(self, names: Iterable[Name]) -> list[str]:
        """What keeps the workloads of these *names* from creating pods that they lack, a sentence each."""
        notes = []
        for name in names:
            kind = _WORKLOADS.get(name.kind)
            if kind is None:
                continue
            try:
                found = await get(self.client, kind, name.name, namespace=name.namespace)
            except ApiError:  # of its pods it has been said what there is to say
                continue
            lacking = _lacking(name.kind, found)
            refusal = await self._refusal(name, found) if lacking else ""
            if refusal:
                notes.append(f"{name} lacks {lacking} pod{'' if lacking == 1 else 's'}: {refusal}")
        return notes

    async def _refusal(self, name: Name, found: AnyObject) -> str:
        """Why the last pod of a workload could not be created, and what would let it; empty if none was refused."""
        message = _failure(found) or await self._last_failure(name)
        command = larger_quota(message, name.namespace, _lacking(name.kind, found))
        return f"{message}; to allow it: {command}" if command else message

    async def _last_failure(self, name: Name) -> str:
        """The message of the last event that says that a workload could not create a pod."""
        failures: list[CoreEvent] = []

        def take(page: Page[CoreEvent]) -> None:
            about = ((one, one.involved_object) for one in page.objects if one.reason == _FAILED_CREATE)
            failures.extend(one for one, of in about if (of.kind, of.name) == (name.kind, name.name))

        try:
            await list_pages(self.client, _EVENTS, take, namespace=name.namespace)
        except ApiError:
            return ""
        last = max(failures, key=lambda one: one.last_timestamp or "", default=None)
        return (
            "" if last is None else last.message.partition(" failed error: ")[2] or last.message.removeprefix(_PREFIX)
        )

    async def _nearest(self, name: Name, kind: Kind[Any] | None) -> str:
        """What of the cluster has no pods and may be meant: a workload of that kind, or a namespace."""
        if kind is not None:
            near = nearest_name(name.name, await self._names(kind, name.namespace))
            if near is not None:
                return str(evolve(name, name=near))
        namespaces = await self._names(_NAMESPACES)
        near = None if name.namespace in namespaces else nearest_name(name.namespace, namespaces)
        return "" if near is None else f"namespace {near}"

    async def _names(self, kind: Kind[Any], namespace: str = "") -> set[str]:
        """The names of all objects of a kind; none if these may not be listed."""
        found: set[str] = set()

        def take(page: Page[Any]) -> None:
            found.update(one.metadata.name for one in page.objects)

        try:
            await list_pages(self.client, kind, take, namespace=namespace, metadata_only=True)
        except ApiError:
            return set()
        return found


def _failure(found: AnyObject) -> str:
    """What a workload says of a pod that it could not create, or of its end."""
    for condition in (found.status or {}).get("conditions") or ():
        if condition.get("type") in ("ReplicaFailure", "Failed", "Suspended") and condition.get("status") == "True":
            return str(condition.get("message") or condition.get("reason"))
    return ""


def _lacking(kind: str, found: AnyObject) -> int:
    """How many pods a workload wants more than it has; 0 for a CronJob."""
    spec, status = found.spec or {}, found.status or {}
    if kind == "CronJob" or spec.get("suspend") is True:
        return 0
    if kind == "Job":
        is_over = any(one.get("type") in ("Complete", "Failed") for one in status.get("conditions") or ())
        wanted = 0 if is_over else spec.get("parallelism", 1)
        there = status.get("active", 0) + status.get("succeeded", 0)
    elif kind == "DaemonSet":
        wanted, there = status.get("desiredNumberScheduled", 0), status.get("currentNumberScheduled", 0)
    else:
        wanted, there = spec.get("replicas", 1), status.get("replicas", 0)
    return max(int(wanted) - int(there), 0)


def _why_no_pods(name: Name, found: AnyObject) -> str:
    """Why a workload has no pods, as it or its controller says."""
    spec = found.spec or {}
    if spec.get("suspend") is True:
        patch = """'{"spec":{"suspend":false}}'"""
        resume = (
            f"kubectl patch {name.kind.lower()} {shlex.quote(name.name)} -n {shlex.quote(name.namespace)} -p {patch}"
        )
        return f"it is suspended; to resume it: {resume}"
    if failure := _failure(found):
        return failure
    if name.kind == "CronJob":
        return "none of its jobs is running; it makes one when it is time"
    return "it wants none" if spec.get("replicas", 1) == 0 else "its controller has made none, and does not say why"
