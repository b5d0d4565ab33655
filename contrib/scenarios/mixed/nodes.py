"""Scenarios of resources, and of taints, labels, ports and gates."""

from __future__ import annotations

from typing import Final

from contrib.scenarios.manifests import (
    ZONE,
    Json,
    node,
    node_affinity,
    pod,
    taint,
)
from contrib.scenarios.mixed.scenario import (
    SMALL,
    host_port,
    pods,
    scenario,
    three_nodes,
)

_MIB: Final = 1024 * 1024


def _with_image(one: Json, name: str, mebibytes: int) -> Json:
    image = {"names": [name], "sizeBytes": mebibytes * _MIB}
    return {**one, "status": {**one["status"], "images": [image]}}


RESOURCES: Final = (
    scenario("room on nodes of several sizes", three_nodes(), pods(5, requests={"cpu": "3", "memory": "2Gi"})),
    scenario(
        "init containers and sidecars",
        three_nodes(n1={"cpu": "4"}),
        pods(
            2,
            requests=SMALL,
            initContainers=[
                {
                    "name": "sidecar",
                    "image": "registry.test/side:1",
                    "restartPolicy": "Always",
                    "resources": {"requests": {"cpu": "2"}},
                },
                {"name": "init", "image": "registry.test/init:1", "resources": {"requests": {"cpu": "3"}}},
            ],
        ),
    ),
    scenario(
        "the overhead and the nodes of a runtime class",
        [
            *three_nodes(n1={"cpu": "2"}, n2={"labels": {"sandbox": "yes"}}),
            {
                "apiVersion": "node.k8s.io/v1",
                "kind": "RuntimeClass",
                "metadata": {"name": "sandbox"},
                "handler": "runsc",
                "overhead": {"podFixed": {"cpu": "3"}},
                "scheduling": {"nodeSelector": {"sandbox": "yes"}},
            },
        ],
        pods(3, requests=SMALL, runtimeClassName="sandbox"),
    ),
    scenario(
        "extended resources and ephemeral storage",
        three_nodes(
            n2={"offers": {"example.com/gpu": "4", "ephemeral-storage": "10Gi"}},
            n3={"offers": {"example.com/gpu": "2", "ephemeral-storage": "40Gi"}},
        ),
        [
            pod("p1", requests={"example.com/gpu": "1"}),
            pod("p2", requests={"example.com/gpu": "1", "ephemeral-storage": "20Gi"}),
            pod("p3", requests={"example.com/gpu": "4"}),
        ],
    ),
    scenario(
        "as many pods as nodes may run", three_nodes(n1={"pods": "1"}, n2={"pods": "2"}, n3={"pods": "0"}), pods(4)
    ),
    scenario(
        "images that nodes have",
        [
            node("n1", zone="a"),
            _with_image(node("n2", zone="b"), "registry.test/app:1", 900),
            _with_image(node("n3", zone="c"), "registry.test/init:1", 600),
        ],
        pods(1, initContainers=[{"name": "init", "image": "registry.test/init:1"}]),
    ),
)

NODES: Final = (
    scenario(
        "taints that some pods tolerate",
        three_nodes(
            n1={"taints": [taint("dedicated", "gpu")]},
            n2={"taints": [taint("dedicated", "gpu"), taint("spot", effect="NoExecute")]},
        ),
        [
            pod("p1", tolerations=[{"key": "dedicated", "operator": "Equal", "value": "gpu"}], requests=SMALL),
            pod("p2", tolerations=[{"operator": "Exists"}], nodeSelector={ZONE: "b"}),
            pod("p3", tolerations=[{"key": "dedicated", "operator": "Equal", "value": "cpu"}]),
            pod("p4", tolerations=[{"key": "spot", "operator": "Exists"}], nodeSelector={ZONE: "b"}),
        ],
    ),
    scenario(
        "a taint that is only avoided",
        three_nodes(n1={"taints": [taint("spot", effect="PreferNoSchedule")]}),
        [pod("p1"), pod("p2", tolerations=[{"key": "spot", "operator": "Exists"}])],
    ),
    scenario(
        "a cordoned node",
        three_nodes(n1={"unschedulable": True}),
        [
            pod("p1"),
            pod("p2", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            pod("p3", nodeSelector={ZONE: "a"}),
        ],
    ),
    scenario(
        "all operators of node affinity",
        three_nodes(n1={"labels": {"cores": "4", "disk": "hdd"}}, n2={"labels": {"cores": "12", "disk": "ssd"}}),
        [
            pod("p1", affinity=node_affinity([{"key": "cores", "operator": "Gt", "values": ["8"]}])),
            pod("p2", affinity=node_affinity([{"key": "cores", "operator": "Lt", "values": ["8"]}])),
            pod("p3", affinity=node_affinity([{"key": "disk", "operator": "DoesNotExist"}])),
            pod("p4", affinity=node_affinity([{"key": "disk", "operator": "NotIn", "values": ["hdd", "ssd"]}])),
            pod(
                "p5",
                affinity={
                    "nodeAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": {
                            "nodeSelectorTerms": [
                                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
                            ]
                        }
                    }
                },
            ),
            pod("p6", affinity=node_affinity([{"key": "disk", "operator": "In", "values": ["nvme"]}])),
        ],
    ),
    scenario(
        "weights of preferred node affinity",
        three_nodes(n2={"labels": {"disk": "ssd"}}, n3={"labels": {"disk": "nvme"}}),
        pods(
            2,
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": weight,
                            "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": [disk]}]},
                        }
                        for weight, disk in ((20, "ssd"), (90, "nvme"))
                    ]
                }
            },
        ),
    ),
    scenario(
        "host ports, addresses and protocols",
        [*three_nodes(), pod("running", on="n1", container=host_port(8080, hostIP="127.0.0.1"))],
        [
            pod("p1", requests=SMALL, container=host_port(8080, hostIP="10.0.0.1")),
            pod("p2", requests=SMALL, container=host_port(8080)),
            pod("p3", requests=SMALL, container=host_port(8080, protocol="UDP")),
            pod("p4", requests=SMALL, container=host_port(8080)),
            pod("p5", requests=SMALL, container=host_port(8080)),
        ],
    ),
    scenario(
        "a scheduling gate",
        three_nodes(n1={"cpu": "1"}, n2={"cpu": "1"}, n3={"cpu": "1"}),
        [
            pod("p1", requests={"cpu": "1", "memory": "4Gi"}, schedulingGates=[{"name": "example.com/quota"}]),
            *(pod(f"p{number}", requests={"cpu": "1", "memory": "4Gi"}) for number in (2, 3, 4, 5)),
        ],
    ),
)
