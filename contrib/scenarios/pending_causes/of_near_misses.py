"""Pods that wait for nodes, and that have several reasons or are much like others that would run."""

from collections.abc import Sequence

from contrib.scenarios.manifests import (
    ZONE,
    as_stored,
    being_deleted,
    node,
    node_affinity,
    pod,
    priority_class,
    runtime_class,
    spread,
    taint,
)
from contrib.scenarios.pending_causes.pending_cause import PendingCause, cause_of

_BUSY = {"memory": "5Gi"}
_CONTROL_PLANE = taint("node-role.kubernetes.io/control-plane")

CAUSES_OF_NEAR_MISSES: Sequence[PendingCause] = (
    cause_of(
        "a toleration for another value of the taint, and a control plane",
        ["UntoleratedTaint"],
        ["dedicated=GPU", "it tolerates dedicated=gpu only"],
        "tolerate dedicated=GPU",
        node("n1", taints=[taint("dedicated", "GPU")]),
        node("n2", taints=[_CONTROL_PLANE]),
        pod(tolerations=[{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]),
    ),
    cause_of(
        "a toleration with a misspelt key, and too little CPU elsewhere",
        ["UntoleratedTaint"],
        ["dedicated=ml", "it tolerates dedicatd, did you mean dedicated?", "cpu 2"],
        "tolerate dedicated=ml",
        node("n1", taints=[taint("dedicated", "ml")]),
        node("n2", cpu="1"),
        pod(requests={"cpu": "2"}, tolerations=[{"key": "dedicatd", "operator": "Exists"}]),
    ),
    cause_of(
        "a cordoned node and a control plane",
        ["NodeCordoned"],
        ["cordoned", "n1", "control-plane"],
        "uncordon n1",
        node("n1", unschedulable=True),
        node("n2", taints=[_CONTROL_PLANE]),
        pod(),
    ),
    cause_of(
        "spread over zones of which one has only nodes with a taint",
        ["TopologySpread"],
        ["spread over zone", "b with 0", "control-plane"],
        "nodeTaintsPolicy Honor for zone",
        node("n1", zone="a"),
        node("n2", zone="b", taints=[_CONTROL_PLANE]),
        pod("web-1", labels={"app": "web"}, on="n1"),
        pod(labels={"app": "web"}, topologySpreadConstraints=spread(ZONE, labels={"app": "web"})),
    ),
    cause_of(
        "spread over zones of which one has only nodes that it does not select",
        ["TopologySpread"],
        ["spread over zone", "b with 0"],
        "nodeAffinityPolicy Honor for zone",
        node("n1", zone="a", labels={"pool": "web"}),
        node("n2", zone="b", labels={"pool": "db"}),
        pod("web-1", labels={"app": "web"}, on="n1"),
        pod(
            labels={"app": "web"},
            nodeSelector={"pool": "web"},
            topologySpreadConstraints=spread(ZONE, labels={"app": "web"}, nodeAffinityPolicy="Ignore"),
        ),
    ),
    cause_of(
        "room that only pods of a lower priority have, and a class that evicts nobody",
        ["InsufficientMemory"],
        ["memory", "preemptionPolicy Never keeps it from evicting default/running on n1"],
        "request memory ≤ 3.0Gi",
        node("n1"),
        priority_class("polite", 100, preemptionPolicy="Never"),
        pod("running", requests=_BUSY, on="n1"),
        pod(requests={"memory": "4Gi"}, priorityClassName="polite"),
    ),
    cause_of(
        "room that a pod has which is ending",
        ["InsufficientMemory"],
        ["memory", "default/running on n1 is ending"],
        "request memory ≤ 3.0Gi",
        node("n1"),
        being_deleted(pod("running", requests=_BUSY, on="n1"), "example.com/hold"),
        as_stored(pod(requests={"memory": "4Gi"}, schedulerName="default-scheduler")),
    ),
    cause_of(
        "CPUs that were probably meant to be thousandths",
        ["InsufficientCPU"],
        ["cpu 500", "did you mean 500m?"],
        "request cpu 500m instead of 500",
        node("n1"),
        pod(requests={"cpu": "500"}),
    ),
    cause_of(
        "a runtime class whose label the nodes have in another spelling",
        ["NodeSelectorMismatch"],
        ["runtime=Kata", "1 have runtime=kata"],
        "runtime class kata with runtime=kata instead of runtime=Kata",
        node("n1", labels={"runtime": "kata"}),
        node("n2"),
        runtime_class("kata", {"runtime": "Kata"}),
        pod(runtimeClassName="kata"),
    ),
    cause_of(
        "a misspelt label of nodes that have a taint, and other nodes",
        ["NodeSelectorMismatch"],
        ["pool=gpus", "1 have pool=gpu", "taint gpu"],
        "node selector pool=gpu instead of pool=gpus and tolerate gpu",
        node("n1", labels={"pool": "gpu"}, taints=[taint("gpu")]),
        node("n2", labels={"pool": "web"}),
        pod(nodeSelector={"pool": "gpus"}),
    ),
    cause_of(
        "a required label whose key is misspelt",
        ["NodeAffinityMismatch"],
        ["storage-nodes exists", "did you mean storage-node?"],
        "node affinity storage-node exists instead of storage-nodes exists",
        node("n1", labels={"storage-node": "yes"}),
        node("n2"),
        pod(affinity=node_affinity([{"key": "storage-nodes", "operator": "Exists"}])),
    ),
)
