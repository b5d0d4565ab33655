"""Nodes that refuse a pod for different reasons, requests that come from elsewhere, and pods that are ending."""

from collections.abc import Sequence

from contrib.scenarios.manifests import (
    HOST,
    ZONE,
    Json,
    affinity,
    being_deleted,
    bound_claim,
    claim,
    limit_range,
    node,
    pod,
    priority_class,
    spread,
    storage_class,
    taint,
    uses,
    volume,
)
from contrib.scenarios.pending_causes.pending_cause import PendingCause, cause_of

_APART = affinity("podAntiAffinity", {"app": "db"}, ZONE)
_RESTARTS_ALL = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}


def of_replica_set(one: Json) -> Json:
    """A pod of the same ReplicaSet as all others."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "db", "uid": "uid-db", "controller": True}
    return {**one, "metadata": {**one["metadata"], "ownerReferences": [owner]}}


def with_selector(one: Json, labels: Json) -> Json:
    """A claim that selects volumes by their labels."""
    return {**one, "spec": {**one["spec"], "selector": {"matchLabels": labels}}}


CAUSES_OF_COMBINATIONS: Sequence[PendingCause] = (
    cause_of(
        "an init container that requests more than the rest",
        ["InsufficientCPU"],
        ["cpu 6", "init container warm asks for 6 CPU", "4 CPU (n1)"],
        "request cpu ≤ 4",
        node("n1"),
        pod(
            requests={"cpu": "1"},
            initContainers=[{"name": "warm", "image": "i", "resources": {"requests": {"cpu": "6"}}}],
        ),
    ),
    cause_of(
        "a request that a LimitRange keeps from being as small as is free",
        ["InsufficientMemory"],
        ["memory 4.0Gi", "1.0Gi (n1)", "LimitRange least refuses memory of less than 2Gi per container"],
        "lower the minimum of the LimitRange least and request memory ≤ 1.0Gi",
        node("n1", memory="1Gi"),
        limit_range("least", min={"memory": "2Gi"}),
        pod(requests={"memory": "4Gi"}),
    ),
    cause_of(
        "a limit that would be too far above a smaller request",
        ["InsufficientCPU"],
        ["cpu 3", "2 CPU (n1)"],
        "request cpu ≤ 2 and limit cpu 3",
        node("n1", cpu="2"),
        limit_range("ratio", maxLimitRequestRatio={"cpu": "1.5"}),
        pod(requests={"cpu": "3"}, container={"resources": {"limits": {"cpu": "4"}}}),
    ),
    cause_of(
        "a taint on one node, too little memory on the other",
        ["InsufficientMemory"],
        ["memory 4.0Gi", "2.0Gi (n2)", "1 more pass all but taint dedicated=gpu", "not tolerate: n1"],
        "request memory ≤ 2.0Gi",
        node("n1", taints=[taint("dedicated", "gpu")]),
        node("n2", memory="2Gi"),
        pod(requests={"memory": "4Gi"}),
    ),
    cause_of(
        "four nodes, and a reason for each",
        ["InsufficientMemory"],
        ["memory 4.0Gi", "all but cpu 2", "all but taint dedicated=gpu", "all but node selector disk=ssd"],
        "request memory ≤ 2.0Gi",
        node("n1", memory="2Gi", labels={"disk": "ssd"}),
        node("n2", cpu="1", labels={"disk": "ssd"}),
        node("n3", taints=[taint("dedicated", "gpu")], labels={"disk": "ssd"}),
        node("n4"),
        pod(requests={"memory": "4Gi", "cpu": "2"}, nodeSelector={"disk": "ssd"}),
    ),
    cause_of(
        "a node selector for another zone than that of the volume",
        ["NodeSelectorMismatch"],
        [f"node selector {ZONE}=b", "volume disk-1 of the claim data", "zone In a only: n1"],
        f"no node selector {ZONE}=b",
        node("n1"),
        node("n2", zone="b"),
        storage_class("fast"),
        volume("disk-1", "data", zones=["a"]),
        bound_claim("data", "disk-1"),
        pod(nodeSelector={ZONE: "b"}, volumes=uses("data")),
    ),
    cause_of(
        "a misspelt label of a node with a taint",
        ["NodeSelectorMismatch", "UntoleratedTaint"],
        [f"did you mean {ZONE}?", "taint dedicated=gpu", "and cpu 2"],
        f"node selector {ZONE}=a instead of {ZONE}s=a and tolerate dedicated=gpu",
        node("n1", taints=[taint("dedicated", "gpu")]),
        node("n2", zone="b", cpu="1"),
        pod(requests={"cpu": "2"}, nodeSelector={f"{ZONE}s": "a"}),
    ),
    cause_of(
        "a feature that no kubelet declares",
        ["FeatureNotDeclared"],
        ["RestartAllContainersOnContainerExits", "restart rule RestartAllContainers"],
        "no restart rule RestartAllContainers",
        node("n1"),
        pod(
            container={"restartPolicy": "Never", "restartPolicyRules": [_RESTARTS_ALL]},
            restartPolicy="Never",
        ),
    ),
    cause_of(
        "a spread over nodes of which one is cordoned, and counts",
        ["TopologySpread"],
        ["spread over hostname (maxSkew 1)", "the fewest have n3 with 0", "cordoned: n3"],
        "uncordon n3",
        *(node(name) for name in ("n1", "n2")),
        node("n3", unschedulable=True),
        *(pod(f"web-{name}", on=name, labels={"app": "web"}) for name in ("n1", "n2")),
        pod(labels={"app": "web"}, topologySpreadConstraints=spread(HOST, labels={"app": "web"})),
    ),
    cause_of(
        "pod affinity to a pod on a node without the topology label",
        ["PodAffinityMismatch"],
        ["pod affinity to app=cache in zone", "none has the label", "default/cache (n1)"],
        f"label n1 {ZONE}=b",
        node("n1", zone=None),
        node("n2", zone="b"),
        pod("cache", on="n1", labels={"app": "cache"}),
        pod(affinity=affinity("podAffinity", {"app": "cache"}, ZONE)),
    ),
    cause_of(
        "pod affinity to a pod that is pending itself",
        ["PodAffinityMismatch"],
        ["no running pod", "default/cache does, and is pending itself (node selector disk=ssd)", "has to run first"],
        "first let default/cache run: label n1 disk=ssd",
        node("n1"),
        pod("cache", labels={"app": "cache"}, nodeSelector={"disk": "ssd"}),
        pod(affinity=affinity("podAffinity", {"app": "cache"}, ZONE)),
    ),
    cause_of(
        "one pod per zone, and a pod in each",
        ["PodAntiAffinityMismatch", "ExistingPodsAntiAffinity"],
        ["pod anti-affinity to app=db in zone", "default/db-a (n1)"],
        f"one more node like n1, in another {ZONE}",
        node("n1"),
        of_replica_set(pod("db-a", labels={"app": "db"}, on="n1", affinity=_APART)),
        of_replica_set(pod(labels={"app": "db"}, affinity=_APART)),
    ),
    cause_of(
        "a pod that is ending, and that a finalizer holds",
        ["TooManyPods"],
        ["as many pods as they may"],
        "force the deletion of default/running without the finalizers example.com/hold",
        node("n1", pods="1"),
        being_deleted(pod("running", on="n1"), "example.com/hold"),
        pod(),
    ),
    cause_of(
        "a claim for one pod, which is ending, and which a finalizer holds",
        ["ClaimInUse"],
        ["the claim data is ReadWriteOncePod", "in use by default/running (n1, being deleted)"],
        "force the deletion of default/running without the finalizers example.com/hold",
        priority_class("highest", 2000),
        node("n1"),
        storage_class("fast"),
        volume("disk-1", "data", mode="ReadWriteOncePod"),
        bound_claim("data", "disk-1", modes=["ReadWriteOncePod"]),
        being_deleted(pod("running", on="n1", volumes=uses("data")), "example.com/hold"),
        pod(volumes=uses("data")),
    ),
    cause_of(
        "a claim that is being deleted, of a class that provisions nothing",
        ["ClaimIsBeingDeleted"],
        ["data", "default/running"],
        "delete default/running and make a new, empty claim data once the old one is gone and make a volume",
        node("n1"),
        storage_class("fast", provisioner="kubernetes.io/no-provisioner"),
        volume("disk-1", "data"),
        being_deleted(bound_claim("data", "disk-1"), "kubernetes.io/pvc-protection"),
        pod("running", on="n1", volumes=uses("data")),
        pod(volumes=uses("data")),
    ),
    cause_of(
        "a claim whose selector takes no volume",
        ["NoVolumeForClaim"],
        ["data", "disk-1 of this class has other labels than its selector asks for"],
        "recreate the claim data without selector",
        node("n1"),
        storage_class("manual", provisioner="kubernetes.io/no-provisioner"),
        volume("disk-1", of_class="manual"),
        with_selector(claim("data", of_class="manual"), {"tier": "silver"}),
        pod(volumes=uses("data")),
    ),
    cause_of(
        "a place that another pending pod takes first",
        ["InsufficientCPU"],
        ["cpu 2", "all but cordoned"],
        "request cpu ≤ 1",
        priority_class("high", 1000),
        node("n1", cpu="1"),
        node("n2", cpu="4", unschedulable=True),
        pod("first", requests={"cpu": "3"}, priority=1000, priorityClassName="high"),
        pod(requests={"cpu": "2"}),
    ),
    cause_of(
        "a node whose place another pending pod takes first",
        ["NodeCordoned"],
        ["cordoned: n1", "default/first (priority 1000), pending too, comes before it"],
        "uncordon n1 and request cpu ≤ 1",
        priority_class("urgent", 1000),
        node("n1", unschedulable=True),
        pod("first", requests={"cpu": "3"}, priority=1000, priorityClassName="urgent"),
        pod(requests={"cpu": "2"}),
    ),
    cause_of(
        "the pod is being deleted",
        ["PodIsBeingDeleted"],
        ["being deleted", "example.com/hold"],
        "",
        node("n1", taints=[taint("dedicated", "gpu")]),
        being_deleted(pod(), "example.com/hold"),
    ),
)
