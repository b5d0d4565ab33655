"""Pods and nodes for tests: a test gives only what matters to it; everything else has an ordinary default.

Taints and tolerations are written as ``kubectl taint`` writes taints, requirements as a word, an operator and values::

    node("gpu-1", cpu="8", labels={"pool": "gpu"}, taints=["nvidia.com/gpu=present:NoSchedule"])
    pod("train", cpu="500m", tolerations=["nvidia.com/gpu:NoSchedule"], affinity=node_affinity(term("pool In gpu tpu")))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from trio_sched.objects.affinity import Affinity, NodeAffinity, PreferredSchedulingTerm
from trio_sched.objects.amounts.quantity import Quantity
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.node import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus
from trio_sched.objects.pod import (
    Container,
    ContainerPort,
    Pod,
    PodResourceClaim,
    PodSchedulingGate,
    PodSchedulingGroup,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    TopologySpreadConstraint,
)
from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.objects.storage.volume import ClaimVolumeSource, Volume
from trio_sched.objects.taint import Taint, Toleration

HOSTNAME_LABEL = "kubernetes.io/hostname"


def taint(text: str) -> Taint:
    """The taint that ``kubectl taint nodes`` writes as ``key=value:Effect``, or ``key:Effect`` without a value."""
    what, _colon, effect = text.rpartition(":")
    if not what or not effect:
        raise ValueError(f"expected a taint as key=value:Effect, got {text!r}")
    key, _equals, value = what.partition("=")
    return Taint(key=key, value=value, effect=effect)


def toleration(text: str) -> Toleration:
    """A toleration of the taint *text*: ``key=value:Effect``; of any value without ``=``, of any effect without ``:``.

    The empty text tolerates every taint.
    """
    what, _colon, effect = text.partition(":")
    key, equals, value = what.partition("=")
    return Toleration(key=key, operator="Equal" if equals else "Exists", value=value, effect=effect)


def requirement(text: str) -> NodeSelectorRequirement:
    """A requirement written ``key Operator values…``: ``"disk In ssd nvme"``, ``"cores Gt 8"``, ``"gpu Exists"``."""
    key, operator, *values = text.split()
    return NodeSelectorRequirement(key=key, operator=operator, values=tuple(values) or None)


def term(*expressions: str, fields: Iterable[str] = ()) -> NodeSelectorTerm:
    """A node selector term; all of *expressions* (about labels) and *fields* (about ``metadata.name``) must hold."""
    return NodeSelectorTerm(
        match_expressions=tuple(map(requirement, expressions)) or None,
        match_fields=tuple(map(requirement, fields)) or None,
    )


def node_affinity(*required: NodeSelectorTerm, preferred: Iterable[tuple[int, NodeSelectorTerm]] = ()) -> Affinity:
    """Node affinity: nodes must match one of *required*; *preferred* are pairs (weight, term) that add to the score."""
    return Affinity(
        node_affinity=NodeAffinity(
            required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=required)
            if required
            else None,
            preferred_during_scheduling_ignored_during_execution=tuple(
                PreferredSchedulingTerm(weight=weight, preference=preference) for weight, preference in preferred
            )
            or None,
        )
    )


def container(
    name: str = "main",
    *,
    image: str = "registry.test/app:1",
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    host_ports: Iterable[int | ContainerPort] = (),
    sidecar: bool = False,
) -> Container:
    """A container; *sidecar* makes an init container restartable.

    What cannot be overcommitted (extended resources, huge pages) has a limit as high as its request, which API servers
    insist on.
    """
    amounts = _amounts(cpu, memory, requests)
    limits = {name: amount for name, amount in amounts.items() if "/" in name or name.startswith("hugepages-")}
    return Container(
        name=name,
        image=image,
        resources=ResourceRequirements(requests=amounts, limits=limits or None) if amounts else None,
        ports=tuple(map(_port, host_ports)) or None,
        restart_policy="Always" if sidecar else None,
    )


def pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    uid: str | None = None,
    cpu: Quantity | None = None,
    memory: Quantity | None = None,
    requests: Mapping[str, Quantity] | None = None,
    image: str = "registry.test/app:1",
    host_ports: Iterable[int | ContainerPort] = (),
    containers: Iterable[Container] | None = None,
    init_containers: Iterable[Container] = (),
    overhead: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    owner: OwnerReference | None = None,
    priority: int | None = None,
    preemption_policy: str | None = None,
    grace_seconds: int | None = None,
    scheduler_name: str = "default-scheduler",
    node_name: str = "",
    nominated_node_name: str = "",
    node_selector: Mapping[str, str] | None = None,
    affinity: Affinity | Iterable[Affinity] | None = None,
    tolerations: Iterable[str | Toleration] = (),
    spread: Iterable[TopologySpreadConstraint] = (),
    gates: Iterable[str] = (),
    claims: Iterable[str | PodResourceClaim] = (),
    volumes: Iterable[str | Volume] = (),
    group: str = "",
    phase: str = "",
) -> Pod:
    """A pending pod; with *node_name* a running one.

    Args:
        name: its name.
        namespace: its namespace.
        uid: its UID; needed only if a test has two pods of the same name.
        cpu: the CPU request of its only container.
        memory: its memory request.
        requests: its requests for any other resources.
        image: its image.
        host_ports: its host ports (TCP), or whole `ContainerPort` objects.
        containers: replace the one made from the arguments above.
        init_containers: ``spec.initContainers``.
        overhead: ``spec.overhead``.
        labels: its labels.
        annotations: its annotations.
        owner: its owner; see `owner_reference`.
        priority: ``spec.priority``.
        preemption_policy: ``spec.preemptionPolicy``.
        grace_seconds: ``spec.terminationGracePeriodSeconds``.
        scheduler_name: ``spec.schedulerName``, the profile that schedules it.
        node_name: the node it runs on.
        nominated_node_name: ``status.nominatedNodeName``.
        node_selector: ``spec.nodeSelector``.
        affinity: see `node_affinity`, `pod_affinity` and `pod_anti_affinity`; several are combined.
        tolerations: see `toleration`.
        spread: its topology spread constraints; see `spread_constraint`.
        gates: names of its scheduling gates.
        claims: names of its resource claims, or whole `PodResourceClaim` objects, which can name templates.
        volumes: names of PersistentVolumeClaims, or whole `Volume` objects.
        group: its pod group.
        phase: ``status.phase``; by default Running with a node, else Pending.
    """
    if containers is None:
        containers = [container(image=image, cpu=cpu, memory=memory, requests=requests, host_ports=host_ports)]
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"uid-of-{namespace}/{name}" if uid is None else uid,
            labels=dict(labels) if labels else None,
            annotations=dict(annotations) if annotations else None,
            owner_references=(owner,) if owner is not None else None,
        ),
        spec=PodSpec(
            node_name=node_name,
            scheduler_name=scheduler_name,
            priority=priority,
            preemption_policy=preemption_policy,
            termination_grace_period_seconds=grace_seconds,
            containers=tuple(containers),
            init_containers=tuple(init_containers) or None,
            overhead=dict(overhead) if overhead else None,
            node_selector=dict(node_selector) if node_selector is not None else None,
            affinity=affinity if affinity is None or isinstance(affinity, Affinity) else _combined(affinity),
            tolerations=tuple(t if isinstance(t, Toleration) else toleration(t) for t in tolerations) or None,
            topology_spread_constraints=tuple(spread) or None,
            volumes=tuple(_volume(number, one) for number, one in enumerate(volumes)) or None,
            scheduling_gates=tuple(PodSchedulingGate(name=gate) for gate in gates) or None,
            resource_claims=tuple(map(_pod_claim, claims)) or None,
            scheduling_group=PodSchedulingGroup(pod_group_name=group) if group else None,
        ),
        status=PodStatus(
            phase=phase or ("Running" if node_name else "Pending"), nominated_node_name=nominated_node_name
        ),
    )


def node(
    name: str = "node",
    *,
    cpu: Quantity = "4",
    memory: Quantity = "16Gi",
    pods: Quantity = 110,
    allocatable: Mapping[str, Quantity] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    taints: Iterable[str | Taint] = (),
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    declared_features: Iterable[str] = (),
    conditions: Mapping[str, str] | None = None,
) -> Node:
    """A node.

    Args:
        name: its name, which is also the value of its label ``kubernetes.io/hostname``.
        cpu: its allocatable CPU.
        memory: its allocatable memory.
        pods: how many pods can run on it.
        allocatable: its other allocatable resources.
        labels: its labels besides the one with its name.
        annotations: its annotations.
        taints: see `taint`.
        unschedulable: whether it is cordoned.
        images: image name → size in bytes.
        declared_features: features that its kubelet declares.
        conditions: type → status of its conditions, ``{"Ready": "True"}`` for instance.
    """
    amounts: dict[str, Quantity] = {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})}
    return Node(
        metadata=ObjectMeta(
            name=name,
            uid=f"uid-of-{name}",
            labels={HOSTNAME_LABEL: name, **(labels or {})},
            annotations=dict(annotations) if annotations else None,
        ),
        spec=NodeSpec(
            unschedulable=unschedulable,
            taints=tuple(t if isinstance(t, Taint) else taint(t) for t in taints) or None,
        ),
        status=NodeStatus(
            allocatable=amounts,
            capacity=amounts,
            images=tuple(ContainerImage(names=(image,), size_bytes=size) for image, size in (images or {}).items())
            or None,
            declared_features=tuple(declared_features) or None,
            conditions=tuple(NodeCondition(type=key, status=value) for key, value in (conditions or {}).items())
            or None,
        ),
    )


def _amounts(
    cpu: Quantity | None, memory: Quantity | None, requests: Mapping[str, Quantity] | None
) -> dict[str, Quantity]:
    named = {"cpu": cpu, "memory": memory}
    return {**{name: amount for name, amount in named.items() if amount is not None}, **(requests or {})}


def _combined(affinities: Iterable[Affinity]) -> Affinity:
    """One with the parts of all.

    Raises:
        ValueError: two have the same part.
    """
    found: dict[str, object] = {}
    for one in affinities:
        for part in one.__struct_fields__:
            value = getattr(one, part)
            if value is not None and found.setdefault(part, value) is not value:
                raise ValueError(f"{part} is given twice: put all terms into one {part}(…)")
    return Affinity(**found)  # type: ignore[arg-type]  # its own parts


def _volume(number: int, volume: str | Volume) -> Volume:
    if isinstance(volume, Volume):
        return volume
    return Volume(name=f"v{number}", persistent_volume_claim=ClaimVolumeSource(claim_name=volume))


def _pod_claim(claim: str | PodResourceClaim) -> PodResourceClaim:
    return claim if isinstance(claim, PodResourceClaim) else PodResourceClaim(name=claim, resource_claim_name=claim)


def _port(port: int | ContainerPort) -> ContainerPort:
    return port if isinstance(port, ContainerPort) else ContainerPort(port, port, protocol="TCP")
