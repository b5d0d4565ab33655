"""The cluster that plugins are checked on unless another is given: it varies in what the built-in ones use."""

from __future__ import annotations

from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing.builders import node, pod


def some_nodes() -> list[Node]:
    """Nodes that differ in what the built-in plugins use."""
    zones = ("a", "b", "c")
    return [
        node(
            f"node-{i}",
            cpu=("2", "4", "8")[i % 3],
            memory=("4Gi", "16Gi")[i % 2],
            pods=4 if i == 5 else 110,
            allocatable={"example.com/gpu": 2} if i % 4 == 0 else None,
            labels={"topology.kubernetes.io/zone": zones[i % 3], "disk": "ssd" if i % 2 else "hdd"},
            taints=["dedicated=batch:NoSchedule"] if i == 3 else ["slow:PreferNoSchedule"] if i == 4 else (),
            unschedulable=i == 6,
            images={"registry.test/app:1": 300 << 20} if i < 2 else None,
        )
        for i in range(8)
    ]


def some_running_pods() -> list[Pod]:
    """Pods on some of `some_nodes`."""
    return [
        pod(
            f"running-{i}",
            cpu=("500m", "1", None)[i % 3],
            memory=("1Gi", None)[i % 2],
            labels={"app": ("web", "db")[i % 2]},
            host_ports=(8080,) if i == 2 else (),
            node_name=f"node-{i % 5}",
        )
        for i in range(9)
    ]


def some_pods() -> list[Pod]:
    """Incoming pods that differ in what the built-in plugins use."""
    return [
        pod("plain"),
        pod("plain-too"),
        pod("small", cpu="100m", memory="128Mi", labels={"app": "web"}),
        pod("small-too", cpu="100m", memory="128Mi", labels={"app": "web"}),
        pod("big", cpu="3", memory="6Gi", priority=100),
        pod("impossible", cpu="100"),
        pod("gpu", cpu="1", requests={"example.com/gpu": 1}),
        pod("port", host_ports=(8080,)),
        pod("tolerant", tolerations=["dedicated", "slow", "node.kubernetes.io/unschedulable"]),
        pod("zoned", node_selector={"topology.kubernetes.io/zone": "b"}),
    ]
