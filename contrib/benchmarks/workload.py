"""Nodes and pods to measure with, as a server would send them."""

from typing import Any

GIB = 1 << 30


def node(i: int) -> dict[str, Any]:
    allocatable = {"cpu": "32", "memory": "256Gi", "ephemeral-storage": "500Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": f"node-{i:05}",
            "labels": {
                "kubernetes.io/hostname": f"node-{i:05}",
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/region": "r",
                "topology.kubernetes.io/zone": f"zone-{i % 3}",
                "pool": ("general", "memory", "edge")[i % 7 % 3],
            },
        },
        "spec": {"taints": [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]} if i % 10 == 9 else {},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": [{"names": [f"registry.test/app-{i % 20}:1"], "sizeBytes": 200_000_000 + i % 20 * 50_000_000}],
        },
    }


def pod(i: int, shape: int = 0, *, mixed: bool = False) -> dict[str, Any]:
    """Pod number *i*; pods of one *shape* have equal specs and labels, *mixed* ones have various constraints."""
    spec: dict[str, Any] = {
        "schedulerName": "default-scheduler",
        "containers": [
            {
                "name": "main",
                "image": f"registry.test/app-{shape % 20}:1",
                "resources": {"requests": {"cpu": f"{50 + shape}m", "memory": "64Mi"}},
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
            }
        ],
        "tolerations": [
            {
                "key": "node.kubernetes.io/not-ready",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
        ],
    }
    if mixed:
        match shape % 5:
            case 0:
                spec["nodeSelector"] = {"pool": "memory"}
            case 1:
                term = {
                    "matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-1"]}]
                }
                preferred = [{"weight": 10, "preference": term}]
                spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
            case 2:
                spec["tolerations"].append({"key": "spot", "operator": "Exists"})
            case 3:
                spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 10_000 + shape}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"pod-{i:06}",
            "namespace": "default",
            "uid": f"uid-{i:06}",
            "labels": {"app": f"app-{shape}", "pod-template-hash": "5d9c7b"},
        },
        "spec": spec,
        "status": {"phase": "Pending"},
    }


CONSTRAINTS = ("plain", "spread", "affinity", "host-anti-affinity", "preferred-affinity")


def constrained_pod(i: int, app: int, constraint: str) -> dict[str, Any]:
    """Pod number *i* of one of twenty apps, constrained by other pods as *constraint* says."""
    made = pod(i, app)
    own = {"matchLabels": {"app": f"app-{app}"}}
    other = {"matchLabels": {"app": f"app-{(app + 1) % 20}"}}
    anti_affinity_terms = [{"topologyKey": "kubernetes.io/hostname", "labelSelector": own}]
    affinity_term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": other}
    affinity: dict[str, Any] = {}
    if constraint in ("affinity", "host-anti-affinity"):
        affinity["podAntiAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": anti_affinity_terms}
    if constraint in ("affinity", "preferred-affinity"):
        preferred = [{"weight": 50, "podAffinityTerm": affinity_term}]
        affinity["podAffinity"] = {"preferredDuringSchedulingIgnoredDuringExecution": preferred}
    if affinity:
        made["spec"]["affinity"] = affinity
    if constraint == "spread":
        made["spec"]["topologySpreadConstraints"] = [
            {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": own}
            for key, action in (
                ("topology.kubernetes.io/zone", "DoNotSchedule"),
                ("kubernetes.io/hostname", "ScheduleAnyway"),
            )
        ]
    return made


def big_pod(i: int, priority: int) -> dict[str, Any]:
    """A pod of which four fill a node."""
    made = pod(i)
    made["spec"]["priority"] = priority
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "8", "memory": "1Gi"}
    return made
