"""Pods of many kinds on nodes that are nearly full, so that some preempt others and some find no room."""

from __future__ import annotations

from random import Random
from typing import Any, Final

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
KINDS: Final = ("plain", "plain", "spread", "soft-spread", "apart", "apart-softly", "near", "selector", "large")
IMPORTANT: Final[dict[str, Any]] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "important"},
    "value": 1000,
}
_APPS: Final = 40
_IMPORTANT_EVERY: Final = 10


def mixed_pod(number: int, dice: Random) -> dict[str, Any]:
    """A pod of one of the `KINDS`, as a manifest; every tenth one may preempt others."""
    kind = dice.choice(KINDS)
    labels = {"app": f"{kind}-{number % _APPS}"}
    mine = {"matchLabels": labels}
    cpu = "1500m" if kind == "large" else dice.choice(["50m", "100m", "250m", "500m"])
    spec: dict[str, Any] = {}
    match kind:
        case "spread" | "soft-spread":
            when = "DoNotSchedule" if kind == "spread" else "ScheduleAnyway"
            rule = {"maxSkew": 2, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": mine}
            spec["topologySpreadConstraints"] = [rule]
        case "apart":
            required = [{"topologyKey": HOST, "labelSelector": mine}]
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        case "apart-softly":
            preferred = [{"weight": 50, "podAffinityTerm": {"topologyKey": HOST, "labelSelector": mine}}]
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        case "near":
            preferred = [{"weight": 10, "podAffinityTerm": {"topologyKey": ZONE, "labelSelector": mine}}]
            spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        case "selector":
            spec["nodeSelector"] = {"disk": "ssd"}
    if number % _IMPORTANT_EVERY == _IMPORTANT_EVERY - 1:
        spec["priorityClassName"] = IMPORTANT["metadata"]["name"]
    requests = {"cpu": cpu, "memory": dice.choice(["32Mi", "64Mi", "256Mi"])}
    container = {"name": "main", "image": "registry.test/app:1", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number:06}", "namespace": "default", "labels": labels},
        # There are no kubelets that would end them.
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def mixed_node(number: int, *, cpu: str = "4") -> dict[str, Any]:
    """A node in one of three zones; every third one has a fast disk, every tenth one should be avoided."""
    amounts = {"cpu": cpu, "memory": "16Gi", "pods": "110"}
    labels = {HOST: f"node-{number}", ZONE: f"zone-{number % 3}", "disk": "ssd" if number % 3 == 0 else "hdd"}
    taints = [{"key": "spot", "value": "true", "effect": "PreferNoSchedule"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "spec": {"taints": taints} if number % 10 == 9 else {},
        "status": {"allocatable": amounts, "capacity": amounts},
    }
