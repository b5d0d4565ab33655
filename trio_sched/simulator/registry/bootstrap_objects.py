"""The objects that an API server creates when it starts: system namespaces and priority classes, its own service."""

from typing import Final

from trio_sched.documents.json_values import Json
from trio_sched.simulator.registry.lifecycle import create
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES = (
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
)
BOOTSTRAP_OBJECTS: Final = frozenset(
    {("namespaces", name) for name in _NAMESPACES}
    | {("priorityclasses.scheduling.k8s.io", name) for name, _, _ in _PRIORITY_CLASSES}
    | {("services", "default/kubernetes")}
)
"""Collection and key of each."""


def create_bootstrap_objects(state: ClusterState) -> None:
    """Create the objects that every new cluster has."""
    namespaces = state.types.core("namespaces")
    for name in _NAMESPACES:
        create(state, namespaces, "", {"metadata": {"name": name}})
    classes = _required(state, "scheduling.k8s.io", "priorityclasses")
    for name, value, description in _PRIORITY_CLASSES:
        create(state, classes, "", {"metadata": {"name": name}, "value": value, "description": description})
    services = state.types.core("services")
    labels = {"component": "apiserver", "provider": "kubernetes"}
    port = {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}
    spec: Json = {"clusterIP": "10.96.0.1", "ports": [port]}
    create(state, services, "default", {"metadata": {"name": "kubernetes", "labels": labels}, "spec": spec})


def _required(state: ClusterState, group: str, plural: str) -> ResourceType:
    found = state.types.find(group, "v1", plural)
    assert found is not None  # a built-in type
    return found
