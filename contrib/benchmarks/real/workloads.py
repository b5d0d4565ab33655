"""The workloads on which both schedulers run: nodes, pods that are there, pods to schedule."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from contrib.benchmarks.workload import (
    CLAIM_TEMPLATE,
    DEVICE_CLASS,
    PRIORITY_CLASS,
    VICTIMS_PER_NODE,
    device_slice,
    new_pod,
    node,
    node_name,
)
from trio_sched.documents.json_values import Json

POD_PATH, NODE_PATH = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
PRIORITY_CLASS_PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"
DEVICE_PATH, CLAIM_PATH = "/apis/resource.k8s.io/v1", "/apis/resource.k8s.io/v1/namespaces/default"


@frozen(kw_only=True)
class Workload:
    """One workload and its goals.

    Attributes:
        name: as it is asked for.
        nodes: their number.
        pods: how many pods are to be scheduled.
        pod_type: of these pods; see ``new_pod``.
        cpu_goal: at most this share of kube-scheduler's CPU per pod, start-up included.
        speed_goal: the last pod is bound so many times sooner after the start of the process; 0: no goal.
        node_size: see ``node``.
        running_per_node: pods of low priority that are on each node already.
        pods_per_second: the pods come at this rate, to a scheduler that has started; 0: all are there before it starts.
    """

    name: str
    nodes: int
    pods: int
    pod_type: str
    cpu_goal: float
    speed_goal: float = 0.0
    node_size: str = "large"
    running_per_node: int = 0
    pods_per_second: float = 0.0

    @property
    def title(self) -> str:
        """For tables."""
        return f"{self.name}, {self.nodes:,} nodes, {self.pods:,} pods"

    @property
    def measured_pods(self) -> int:
        """Over how many pods the CPU is spread: at a low rate the first one only shows that the scheduler is up."""
        return self.pods - 1 if self.pods_per_second else self.pods

    @property
    def unschedulable(self) -> set[str]:
        """The names of the pods that fit on no node."""
        if self.pod_type != "one-in-ten-too-large":
            return set()
        return {_name(self.first_pod + i) for i in range(self.pods) if (self.first_pod + i) % 10 == 9}

    @property
    def first_pod(self) -> int:
        """The number of the first pod to schedule: those that run already come before it."""
        return self.nodes * self.running_per_node

    @property
    def schedulable(self) -> set[str]:
        """The names of the pods that will be bound."""
        return {_name(self.first_pod + i) for i in range(self.pods)} - self.unschedulable


WORKLOADS = (
    Workload(name="basic-1000", nodes=1_000, pods=5_000, pod_type="plain", cpu_goal=0.25, speed_goal=2.0),
    Workload(name="basic-5000", nodes=5_000, pods=5_000, pod_type="plain", cpu_goal=0.20, speed_goal=2.5),
    Workload(name="zone-spread", nodes=5_000, pods=2_000, pod_type="zone-spread", cpu_goal=0.20, speed_goal=3.0),
    Workload(
        name="host-anti-affinity",
        nodes=1_000,
        pods=2_000,
        pod_type="host-anti-affinity",
        cpu_goal=0.20,
        speed_goal=2.0,
    ),
    Workload(
        name="preferred-affinity",
        nodes=1_000,
        pods=2_000,
        pod_type="preferred-affinity",
        cpu_goal=0.25,
        speed_goal=2.0,
    ),
    Workload(name="mixed", nodes=1_000, pods=2_000, pod_type="mixed", cpu_goal=0.25, speed_goal=2.0),
    Workload(
        name="preemption",
        nodes=500,
        pods=500,
        pod_type="preemptor",
        cpu_goal=0.30,
        speed_goal=2.0,
        node_size="small",
        running_per_node=VICTIMS_PER_NODE,
    ),
    Workload(name="daemonset", nodes=5_000, pods=3_000, pod_type="daemon", cpu_goal=0.40, speed_goal=1.3),
    Workload(
        name="unschedulable",
        nodes=1_000,
        pods=3_000,
        pod_type="one-in-ten-too-large",
        cpu_goal=0.25,
        speed_goal=2.0,
    ),
    Workload(name="claims", nodes=1_000, pods=2_000, pod_type="claim", cpu_goal=0.30, speed_goal=3.0),
    # Hardly anything but the start: the first lists, and what is made of them.
    Workload(
        name="large-start",
        nodes=5_000,
        pods=100,
        pod_type="plain",
        cpu_goal=1.0,
        speed_goal=1.0,
        running_per_node=10,
    ),
    Workload(
        name="low-rate",
        nodes=1_000,
        pods=1_500,
        pod_type="plain",
        cpu_goal=0.35,
        pods_per_second=100.0,
    ),
)


def prepared_objects(workload: Workload) -> Iterator[tuple[str, Json]]:
    """(collection, object) of everything that is there before the scheduler starts, in an order to create it in."""
    if workload.pod_type == "preemptor":
        yield PRIORITY_CLASS_PATH, PRIORITY_CLASS
    if workload.pod_type == "claim":
        yield f"{DEVICE_PATH}/deviceclasses", DEVICE_CLASS
        yield f"{CLAIM_PATH}/resourceclaimtemplates", CLAIM_TEMPLATE
        for i in range(workload.nodes):
            yield f"{DEVICE_PATH}/resourceslices", device_slice(i)
    for i in range(workload.nodes):
        yield NODE_PATH, node(i, workload.node_size)
    for i in range(workload.first_pod):
        victim = new_pod("victim", i)
        victim["spec"]["nodeName"] = node_name(i % workload.nodes)
        yield POD_PATH, victim
    # At a low rate one pod is there all the same: its bind shows that the scheduler has started.
    for i in range(1 if workload.pods_per_second else workload.pods):
        yield POD_PATH, pod_to_schedule(workload, i)


def pod_to_schedule(workload: Workload, i: int) -> Json:
    """Pod number *i* of those to schedule."""
    number = workload.first_pod + i
    made = new_pod(workload.pod_type, number if workload.pod_type != "daemon" else i)
    made["metadata"]["name"] = _name(number)
    return made


def _name(number: int) -> str:
    return f"pod-{number:06}"
