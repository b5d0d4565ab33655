"""Scenarios of volumes."""

from __future__ import annotations

from typing import Final

from contrib.scenarios.manifests import (
    NAMESPACE,
    ZONE,
    Json,
    bound_claim,
    claim,
    pod,
    storage_class,
    uses,
    volume,
)
from contrib.scenarios.mixed.scenario import (
    pods,
    scenario,
    three_nodes,
)


def _unbound(name: str, size: str, zone: str) -> Json:
    made = volume(name, "", zones=[zone])
    spec = {key: value for key, value in made["spec"].items() if key != "claimRef"}
    return {**made, "spec": {**spec, "capacity": {"storage": size}, "storageClassName": "local"}}


def _csi_node(name: str, limit: int) -> Json:
    driver = {"name": "disk.test", "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": limit}}
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": name}}
    return {**head, "spec": {"drivers": [driver]}}


def _csi_driver() -> Json:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "disk.test"}}
    return {**head, "spec": {"storageCapacity": True}}


def _capacity(zone: str, size: str) -> Json:
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity"}
    metadata = {"name": f"in-{zone}", "namespace": NAMESPACE}
    topology = {"matchLabels": {ZONE: zone}}
    return {**head, "metadata": metadata, "storageClassName": "fast", "capacity": size, "nodeTopology": topology}


VOLUMES: Final = (
    scenario(
        "volumes in two zones",
        [
            *three_nodes(),
            storage_class("fast"),
            volume("disk-1", "data-1", zones=["b"]),
            volume("disk-2", "data-2", zones=["d"]),
            bound_claim("data-1", "disk-1"),
            bound_claim("data-2", "disk-2"),
        ],
        [pod("p1", volumes=uses("data-1")), pod("p2", volumes=uses("data-2")), pod("p3", volumes=uses("data-3"))],
    ),
    scenario(
        "volumes that wait for their first pod",
        [
            *three_nodes(),
            storage_class("local", provisioner="kubernetes.io/no-provisioner"),
            _unbound("large", "50Gi", "c"),
            _unbound("small", "5Gi", "b"),
            claim("data-1", size="4Gi", of_class="local"),
            claim("data-2", size="20Gi", of_class="local"),
            claim("data-3", size="1Gi", of_class="local"),
        ],
        [pod(f"p{number}", volumes=uses(f"data-{number}")) for number in (1, 2, 3)],
    ),
    scenario(
        "a class whose volumes are in one zone",
        [
            *three_nodes(),
            storage_class("fast", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["c", "d"]}]}]),
            claim("data", of_class="fast"),
        ],
        pods(2, volumes=uses("data")),
    ),
    scenario(
        "room for volumes by zone",
        [
            *three_nodes(),
            storage_class("fast"),
            _csi_driver(),
            _capacity("a", "1Gi"),
            _capacity("b", "20Gi"),
            claim("data-1", size="10Gi", of_class="fast"),
            claim("data-2", size="50Gi", of_class="fast"),
        ],
        [pod("p1", volumes=uses("data-1")), pod("p2", volumes=uses("data-2"))],
    ),
    scenario(
        "as many volumes as nodes can attach",
        [
            *three_nodes(),
            storage_class("fast"),
            *(_csi_node(name, limit) for name, limit in (("n1", 1), ("n2", 2), ("n3", 0))),
            *(volume(f"disk-{n}", f"data-{n}") for n in range(1, 5)),
            *(bound_claim(f"data-{n}", f"disk-{n}") for n in range(1, 5)),
        ],
        [pod(f"p{n}", volumes=uses(f"data-{n}")) for n in range(1, 5)],
    ),
    scenario(
        "a volume for one pod, and one that waits for a class",
        [
            *three_nodes(),
            storage_class("fast"),
            storage_class("slow", provisioner="kubernetes.io/no-provisioner", mode="Immediate"),
            volume("disk-1", "data", mode="ReadWriteOncePod"),
            bound_claim("data", "disk-1", modes=["ReadWriteOncePod"]),
            claim("late", of_class="slow"),
        ],
        [pod("p1", volumes=uses("data")), pod("p2", volumes=uses("data")), pod("p3", volumes=uses("late"))],
    ),
)
