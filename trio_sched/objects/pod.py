"""Pods, with the fields that a scheduler reads."""

from msgspec import Struct, field

from trio_sched.objects.affinity import Affinity
from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import NamespacedObject
from trio_sched.objects.selector import LabelSelector
from trio_sched.objects.storage.volume import Volume
from trio_sched.objects.taint import Toleration


class ContainerResourceClaim(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The entry of ``spec.resourceClaims`` whose devices a container uses."""

    name: str = ""


class ResourceRequirements(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Requests and limits by resource name; quantities stay text until they are summed up."""

    requests: dict[str, Quantity] | None = None
    limits: dict[str, Quantity] | None = None
    claims: tuple[ContainerResourceClaim, ...] | None = None
    """The claims that a container uses."""


class ContainerPort(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A port of a container; only *host_port* matters to a scheduler."""

    container_port: int = 0
    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""


class RestartPolicyRule(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What is done when the container exits."""

    action: str = ""


class VolumeMount(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """Where a container finds a volume; a scheduler reads only what the kubelet has to support."""

    bind_mount_options: tuple[str, ...] | None = None


class Container(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A container or init container; ``restart_policy == "Always"`` on an init container makes it a sidecar."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartPolicyRule, ...] | None = None
    volume_mounts: tuple[VolumeMount, ...] | None = None


class PodSchedulingGate(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A scheduling gate: the pod is not scheduled before it is removed."""

    name: str = ""


class TopologySpreadConstraint(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How evenly matching pods are spread over the domains of *topology_key*."""

    max_skew: int = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class PodResourceClaim(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A reference to a ResourceClaim or a ResourceClaimTemplate."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The pod group that the pod is a member of."""

    pod_group_name: str | None = None


class PodWorkloadReference(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The workload of Kubernetes 1.35 that the pod belongs to, the pod group in it, and which copy of that.

    Pods that are watched have a `PodSchedulingGroup` instead.
    """

    name: str = ""
    pod_group: str = ""
    pod_group_replica_key: str = ""


class PodSpec(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``spec`` of a Pod."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    runtime_class_name: str = ""
    preemption_policy: str | None = None
    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    ephemeral_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: dict[str, Quantity] | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[PodResourceClaim, ...] | None = None
    scheduling_group: PodSchedulingGroup | None = None
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    workload_ref: PodWorkloadReference | None = None


class PodCondition(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """One entry of ``status.conditions``."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: int | None = None
    last_probe_time: str | None = None
    last_transition_time: str | None = None


class ContainerStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The kubelet's status of a container; its resources matter while it is being resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None


class PodResourceClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The ResourceClaim that was created from a template."""

    name: str = ""
    resource_claim_name: str | None = None


class ExtendedResourceClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """The ResourceClaim for the pod's extended resources."""

    resource_claim_name: str = ""


class NodeAllocatableMappedResources(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much of a resource of the node the devices of a claim are."""

    name: str = ""
    quantity: Quantity | None = None


class NodeAllocatableOverheadResources(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """How much of a resource of the node the devices of a claim take besides: for the pod, and for each container."""

    name: str = ""
    per_pod: Quantity | None = None
    per_container: Quantity | None = None


class NodeAllocatableResourceClaimStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """What the devices of a claim take of the node itself, CPU for instance; gate DRANodeAllocatableResources."""

    resource_claim_name: str = ""
    containers: tuple[str, ...] | None = None
    """The containers that use the claim."""
    resources: dict[str, Quantity] | None = None
    """In 1.36; the others came in its place."""
    mapping: tuple[NodeAllocatableMappedResources, ...] | None = None
    overhead: tuple[NodeAllocatableOverheadResources, ...] | None = None


class PodStatus(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """``status`` of a Pod."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: dict[str, Quantity] | None = None
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] | None = None
    extended_resource_claim_status: ExtendedResourceClaimStatus | None = None
    node_allocatable_resource_claim_statuses: tuple[NodeAllocatableResourceClaimStatus, ...] | None = None


class Pod(NamespacedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A pod; the properties are short forms of often used paths."""

    spec: PodSpec = field(default_factory=PodSpec)
    status: PodStatus = field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        """``metadata.uid``: differs among all pods that ever had this name."""
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        """``metadata.labels``; empty if there are none. Read-only."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        """``metadata.annotations``; likewise."""
        return self.metadata.annotations or {}

    @property
    def node_name(self) -> str:
        """``spec.nodeName``; empty until the pod is bound."""
        return self.spec.node_name

    @property
    def scheduler_name(self) -> str:
        """``spec.schedulerName``: the profile that schedules it."""
        return self.spec.scheduler_name

    @property
    def nominated_node_name(self) -> str:
        """``status.nominatedNodeName``; empty when there is none."""
        return self.status.nominated_node_name

    @property
    def priority(self) -> int:
        """``spec.priority``, 0 when it is not set."""
        return self.spec.priority or 0

    @property
    def group_key(self) -> str | None:
        """``namespace/name`` of the pod group that it is a member of; None if it is in none."""
        group = self.spec.scheduling_group
        if group is None or not group.pod_group_name:
            return None
        return f"{self.metadata.namespace}/{group.pod_group_name}"

    @property
    def is_terminal(self) -> bool:
        """Whether it has succeeded or failed and so uses no resources any more."""
        return self.status.phase in ("Succeeded", "Failed")
