"""Workloads of 1.35 and their pods, as manifests."""

from typing import Any


def workload(name: str, **min_counts: int) -> dict[str, Any]:
    """A workload with a gang of so many pods for each name; 0 makes a group of pods that are scheduled one by one."""
    groups = [
        {"name": group, "policy": {"gang": {"minCount": count}} if count else {"basic": {}}}
        for group, count in min_counts.items()
    ]
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"podGroups": groups},
    }


def member_of_workload(name: str, workload: str, group: str, key: str = "", *, cpu: str = "1") -> dict[str, Any]:
    """A pod of a group in a workload, of the copy *key* of it."""
    reference = {"name": workload, "podGroup": group, **({"podGroupReplicaKey": key} if key else {})}
    container = {"name": "app", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], "workloadRef": reference},
    }
