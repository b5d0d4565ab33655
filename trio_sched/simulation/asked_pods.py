"""The pods that somebody asks about: by name, by workload, by pod group, or all that are pending."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from trio_sched.errors import TrioSchedError, nearest_name
from trio_sched.explanation.commands import Workload, workload_of
from trio_sched.explanation.owners import controller_of, is_of, workload_behind
from trio_sched.go.text import shortened
from trio_sched.objects.pod import Pod

_KINDS: Final[Mapping[str, str]] = {
    "po": "Pod",
    "pod": "Pod",
    "pods": "Pod",
    "cj": "CronJob",
    "cronjob": "CronJob",
    "daemonset": "DaemonSet",
    "deploy": "Deployment",
    "deployment": "Deployment",
    "ds": "DaemonSet",
    "job": "Job",
    "podgroup": "PodGroup",
    "rc": "ReplicationController",
    "replicaset": "ReplicaSet",
    "replicationcontroller": "ReplicationController",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "sts": "StatefulSet",
}
"""What may stand before the slash, as in kubectl, with an s or without → the kind."""


class NoSuchPod(TrioSchedError):
    """There is no such pod, or no pod of such a workload."""

    def __init__(self, text: str, name: Name, near: str = "") -> None:
        super().__init__(text)
        self.name = name
        """What was asked about."""
        self.near = near
        """What may be meant, as the text says; empty if it says nothing."""


@frozen(kw_only=True)
class Name:
    """What somebody asks about."""

    kind: str
    namespace: str
    name: str

    @classmethod
    def read(cls, text: str, namespace: str) -> Name:
        """``NAME``, ``KIND/NAME`` or ``NAMESPACE/NAME``; *namespace* is that of the first two."""
        first, slash, rest = text.rpartition("/")
        if not slash:
            return cls(kind="Pod", namespace=namespace, name=text)
        kind = _KINDS.get(first.lower()) or _KINDS.get(first.lower().removesuffix("s").partition(".")[0])
        if kind is None:
            return cls(kind="Pod", namespace=first, name=rest)
        return cls(kind=kind, namespace=namespace, name=rest)

    def __str__(self) -> str:
        return f"{self.kind.lower() if self.kind != 'PodGroup' else 'pod group'} {self.namespace}/{self.name}"


@define(eq=False)
class AskedPods:
    """Finds them among all pods.

    Attributes:
        pods: all pods.
        owners: (kind, namespace, name) → the ReplicaSets and Jobs that may stand between a pod and its workload.
    """

    pods: Sequence[Pod]
    owners: Mapping[tuple[str, str, str], Any] = field(factory=dict)

    def named(self, name: Name) -> list[Pod]:
        """The pods that *name* stands for: one, or of a workload or group all that are pending, else all.

        Raises:
            NoSuchPod: there is none.
        """
        if name.kind == "Pod":
            found = [pod for pod in self.pods if pod.name == name.name and pod.namespace == name.namespace]
            found = found or [pod for pod in self._of_workload(None, name)]
        elif name.kind == "PodGroup":
            key = f"{name.namespace}/{name.name}"
            found = [pod for pod in self.pods if pod.group_key == key]
        else:
            found = self._of_workload(name.kind, name)
        if not found:
            raise self._missing(name)
        return [pod for pod in found if not pod.node_name] or found

    def pending(self) -> list[Pod]:
        """All that have no node."""
        return [pod for pod in self.pods if not pod.node_name and pod.metadata.deletion_timestamp is None]

    def workload(self, pod: Pod) -> Workload | None:
        """What makes *pod*."""
        controller = controller_of(pod)
        if controller is None:
            return None
        return workload_of(pod, self.owners.get((controller.kind, pod.namespace, controller.name)))

    def patched(self, pod: Pod) -> Workload | None:
        """What has the template of *pod*; where its ReplicaSet is not known, as the labels say."""
        controller = controller_of(pod)
        if controller is None or self.owners.get((controller.kind, pod.namespace, controller.name)) is not None:
            return self.workload(pod)
        return workload_behind(pod)

    def missing(self, pod: Pod) -> int:
        """How many more pods the StatefulSet of *pod* makes once it runs: one after the other."""
        controller = controller_of(pod)
        if controller is None or controller.kind != "StatefulSet":
            return 0
        found = self.owners.get((controller.kind, pod.namespace, controller.name))
        wanted = None if found is None else (found.spec or {}).get("replicas", 1)
        there = sum(is_of(controller, one) for one in self.pods)
        return max(wanted - there, 0) if isinstance(wanted, int) else 0

    def _of_workload(self, kind: str | None, name: Name) -> list[Pod]:
        found = []
        for pod in self.pods:
            controller = controller_of(pod) if pod.namespace == name.namespace else None
            if controller is None:
                continue
            behind = self.workload(pod)
            makers = [(controller.kind, controller.name), *([(behind.kind, behind.name)] if behind else [])]
            if any(maker == name.name and kind in (None, maker_kind) for maker_kind, maker in makers):
                found.append(pod)
        return found

    def _missing(self, name: Name) -> NoSuchPod:
        text = f"there is no {shortened(str(name))}"
        if name.kind not in ("Pod", "PodGroup"):
            text = f"there is no pod of {shortened(str(name))}"
        elsewhere = [pod.key for pod in self.pods if pod.name == name.name]
        near = elsewhere[0] if elsewhere else self._nearest(name)
        return NoSuchPod(f"{text}; did you mean {near}?" if near else text, name, near)

    def _nearest(self, name: Name) -> str:
        here = [pod for pod in self.pods if pod.namespace == name.namespace]
        workloads = {one.name for pod in here if (one := self.workload(pod)) is not None}
        near = nearest_name(name.name, {*(pod.name for pod in here), *workloads})
        if near is not None:
            return f"{name.namespace}/{near}"
        namespace = nearest_name(name.namespace, {pod.namespace for pod in self.pods})
        return f"namespace {namespace}" if namespace is not None and namespace != name.namespace else ""


def like_each_other(pods: Iterable[Pod], asked: AskedPods) -> list[list[Pod]]:
    """*pods* in groups of those that one workload makes and that ask for the same."""
    groups: dict[Any, list[Pod]] = {}
    for pod in pods:
        workload = asked.workload(pod)
        key: Any = pod.key if workload is None else (pod.namespace, workload, _asks(pod))
        groups.setdefault(key, []).append(pod)
    return list(groups.values())


def _asks(pod: Pod) -> str:
    """Equal for pods of one template."""
    spec = pod.spec
    claims = [one.persistent_volume_claim is None for one in spec.volumes or ()]
    parts = (spec.containers, spec.node_selector, spec.affinity, spec.topology_spread_constraints, claims)
    return repr((parts, spec.tolerations, spec.scheduling_gates, spec.resource_claims, spec.priority))
