"""Waves of nodes and pods; every one has labels, taints, selectors, resources and a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from attrs import define, field, frozen

from trio_sched.documents.json_values import Json
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.cluster_objects import Refused

HOSTNAME = "kubernetes.io/hostname"
PODS_PER_NAMESPACE = 2
STORAGE_CLASS: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "soak"},
    "provisioner": "soak.test",
    "volumeBindingMode": "WaitForFirstConsumer",
}


@frozen
class Size:
    """How much comes at once, and how often."""

    waves: int
    nodes_per_wave: int
    pods_per_wave: int
    standing_nodes: int = 50
    """Ordinary nodes that are there from the beginning to the end."""


@define
class Wave:
    """What came together and goes together."""

    namespaces: list[Json] = field(factory=list)
    nodes: list[Node] = field(factory=list)
    pods: list[Json] = field(factory=list)
    claims: list[Json] = field(factory=list)


def make_wave(number: int, size: Size, rng: Random) -> Wave:
    """Wave *number*."""
    wave = Wave()
    for i in range(0, size.pods_per_wave, PODS_PER_NAMESPACE):
        name = f"wave-{number}-{i}"
        wave.namespaces.append(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": name, "labels": {f"soak.test/{name}": "x"}},
            }
        )
    for i in range(size.nodes_per_wave):
        unique = f"{number}-{i}"
        wave.nodes.append(
            node(
                f"node-{unique}",
                cpu=rng.choice(["4", "8"]),
                labels={
                    "topology.kubernetes.io/zone": f"zone-{unique}",
                    f"soak.test/key-{unique}": f"value-{unique}",
                },
                allocatable={f"soak.test/resource-{unique}": 10},
                taints=[f"soak.test/since=t{unique}:NoSchedule", f"soak.test/soft-{unique}:PreferNoSchedule"],
                images={f"registry.test/image-{unique}:1": 1 << 20},
                declared_features=[f"Feature{number}x{i}"],
            )
        )
    wave.pods.extend(_pods(number, size, rng, wave.claims))
    return wave


def _pods(number: int, size: Size, rng: Random, claims: list[Json]) -> Iterator[Json]:
    for i in range(size.pods_per_wave):
        unique, host = f"{number}-{i}", f"{number}-{rng.randrange(size.nodes_per_wave)}"
        namespace = f"wave-{number}-{i - i % PODS_PER_NAMESPACE}"
        labels = {"app": f"app-{unique}", f"soak.test/label-{unique}": "x"}
        none = {f"soak.test/zero-{unique}": "0"}
        spec: Json = {
            "containers": [
                {
                    "name": "main",
                    "image": f"registry.test/image-{host}:1",
                    "resources": {
                        "requests": {"cpu": rng.choice(["10m", "50m", "100m"]), **none},
                        "limits": none,
                    },
                }
            ],
            "tolerations": [
                {"key": "soak.test/since", "operator": "Equal", "value": f"t{host}", "effect": "NoSchedule"},
                {"key": f"soak.test/never-{unique}", "operator": "Exists"},
            ],
            "terminationGracePeriodSeconds": 1,
        }
        affinity: Json = {
            "nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {
                        "weight": 5,
                        "preference": {"matchExpressions": [{"key": f"soak.test/key-{host}", "operator": "Exists"}]},
                    },
                    {
                        "weight": 1,
                        "preference": {"matchExpressions": [{"key": f"soak.test/none-{unique}", "operator": "Exists"}]},
                    },
                ]
            }
        }
        selector = {"matchLabels": {"app": f"app-{unique}"}}
        match rng.randrange(8):
            case 0:
                spec["nodeSelector"] = {f"soak.test/key-{host}": f"value-{host}"}
                extended = {f"soak.test/resource-{host}": "1"}
                resources = spec["containers"][0]["resources"]
                spec["containers"][0]["resources"] = {kind: {**resources[kind], **extended} for kind in resources}
            case 1:
                affinity["podAntiAffinity"] = {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": selector, "topologyKey": HOSTNAME}
                    ]
                }
            case 2:
                affinity["podAffinity"] = {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "weight": 7,
                            "podAffinityTerm": {
                                "labelSelector": selector,
                                "topologyKey": f"soak.test/key-{host}",
                                "namespaceSelector": {"matchLabels": {f"soak.test/{namespace}": "x"}},
                            },
                        }
                    ]
                }
            case 3:
                spec["topologySpreadConstraints"] = [
                    {
                        "maxSkew": 1,
                        "topologyKey": key,
                        "whenUnsatisfiable": how,
                        "labelSelector": selector,
                    }
                    for key, how in ((HOSTNAME, "DoNotSchedule"), (f"soak.test/key-{host}", "ScheduleAnyway"))
                ]
            case 4:
                spec["nodeSelector"] = {f"soak.test/nowhere-{unique}": "x"}
            case 5:
                spec["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 1024 + rng.randrange(60_000)}]
            case 6 if i % 4 == 0:
                claims.append(_claim(namespace, f"claim-{unique}"))
                spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{unique}"}}]
        spec["affinity"] = affinity
        metadata = {"name": f"pod-{unique}", "namespace": namespace, "labels": labels}
        yield {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _claim(namespace: str, name: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "soak",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


async def bring(cluster: VirtualCluster, wave: Wave) -> None:
    """Create everything of *wave*."""
    for one in (*wave.namespaces, *wave.nodes, *wave.claims, *wave.pods):
        await cluster.create(one)


async def take_away(cluster: VirtualCluster, wave: Wave, rng: Random) -> None:
    """Delete everything of *wave*; now and then its nodes first."""
    order: list[list[Any]] = [wave.nodes, wave.pods] if rng.random() < 0.5 else [wave.pods, wave.nodes]
    for one in (*order[0], *order[1], *wave.claims, *wave.namespaces):
        try:
            await cluster.delete(one, grace_seconds=0 if order[0] is wave.nodes else None)  # no kubelet is left to ask
        except Refused as refused:
            if refused.code != 404:
                raise


def probes(count: int) -> list[Pod]:
    """Pods to decide on at any time: what they ask for is the same in every cluster."""
    return [
        pod(
            f"probe-{i}",
            cpu=f"{i + 1}m",
            labels={"app": f"probe-{i}"},
            node_selector={"soak.test/standing": "x"},
            tolerations=[f"soak.test/probe-{i}:NoSchedule"],
        )
        for i in range(count)
    ]
