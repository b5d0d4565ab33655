"""Nodes, with the fields that a scheduler reads."""

from msgspec import Struct, field

from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamedObject
from trio_sched.objects.taint import Taint


class NodePodPreemptionPolicy(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Who has switched off on the node that pods are preempted for pods that are resized there."""

    disable_resize_preemption: tuple[str, ...] | None = None


class NodeSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None
    pod_preemption_policy: NodePodPreemptionPolicy | None = None


class NodeCondition(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``status.conditions``; timestamps are left out because nothing depends on them."""

    type: str = ""
    status: str = ""


class ContainerImage(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """An image on the node, with all its names."""

    names: tuple[str, ...] | None = None
    size_bytes: int = 0


class NodeStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status``: what the kubelet reports."""

    allocatable: dict[str, Quantity] | None = None
    capacity: dict[str, Quantity] | None = None
    conditions: tuple[NodeCondition, ...] | None = None
    images: tuple[ContainerImage, ...] | None = None
    declared_features: tuple[str, ...] | None = None


class Node(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A node."""

    spec: NodeSpec = field(default_factory=NodeSpec)
    status: NodeStatus = field(default_factory=NodeStatus)

    @property
    def labels(self) -> dict[str, str]:
        """``metadata.labels``; empty if there are none. Read-only."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        """``metadata.annotations``; likewise."""
        return self.metadata.annotations or {}
