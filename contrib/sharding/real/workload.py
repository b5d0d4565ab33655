"""Nodes, and bursts of pods of many kinds that fill them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any, Final

import msgspec
import trio
from attrs import define, field

from trio_sched.kube_client.connection import JSON, MERGE_PATCH, KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
POOL: Final = "example.com/pool"
"""The label that says which shard a node belongs to, where one does."""
RELABEL_SECONDS: Final = (0.0, 4.0)
"""From one change of it to the next."""
POD_PATH: Final = "/api/v1/namespaces/default/pods"
CLAIM_PATH: Final = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PRIORITY: Final = {"metadata": {"name": "important"}, "value": 1000}
NODES: Final = 12
NODE_CPU_MILLI: Final = 4000
DEVICE_CLASS: Final = "gpu.example.com"
DEVICES_PER_NODE: Final = 3
NODES_WITH_DEVICES: Final = 6
ANCHOR: Final = {"app": "anchor"}
FILLED: Final = 1.1
"""Pods are deleted above so many times the allocatable CPU: most of the time some find no place."""
IMPORTANT_SHARE: Final = 0.5
"""The share of the allocatable CPU at most: there are less important pods to evict."""
BURST_PODS: Final = (2, 20)
BURST_SECONDS: Final = (0.2, 2.5)
"""From one burst to the next."""
_KINDS: Final = {
    "plain": 3,
    "owned": 3,
    "important": 1,
    "zone": 2,
    "apart": 1,
    "repels": 1,
    "repelled": 2,
    "beside": 1,
    "spread": 1,
    "device": 1,
}
"""How often each is chosen."""


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """What the cluster has before pods come, with the paths of the collections."""
    # What the default role of kube-scheduler lacks; the leases of the shards have other names than that of the leader.
    rule = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "create", "update", "watch"],
    }
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "shards"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:kube-scheduler"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    yield f"{rbac}/clusterroles", {"metadata": {"name": "shards"}, "rules": [rule]}
    yield f"{rbac}/clusterrolebindings", {"metadata": {"name": "shards"}, "roleRef": role, "subjects": [subject]}
    yield "/apis/scheduling.k8s.io/v1/priorityclasses", PRIORITY
    selector = {"cel": {"expression": f'device.driver == "{DEVICE_CLASS}"'}}
    yield (
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"metadata": {"name": DEVICE_CLASS}, "spec": {"selectors": [selector]}},
    )
    for number in range(NODES):
        yield "/api/v1/nodes", node_manifest(number)
    for name in (f"n{number}" for number in range(NODES_WITH_DEVICES)):
        spec = {
            "driver": DEVICE_CLASS,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{number}"} for number in range(DEVICES_PER_NODE)],
        }
        yield "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": name}, "spec": spec}
    yield POD_PATH, {**pod_manifest("anchor", 10, ANCHOR, nodeSelector={ZONE: "z1"}, priorityClassName="important")}


def node_manifest(number: int) -> dict[str, Any]:
    """A node in one of three zones."""
    amounts = {"cpu": f"{NODE_CPU_MILLI}m", "memory": "16Gi", "pods": "12"}
    name = f"n{number}"
    labels = {HOST: name, ZONE: f"z{number % 3}"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": amounts, "capacity": amounts}}


def pod_manifest(name: str, cpu_milli: int, labels: dict[str, str], **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    requests = {"cpu": f"{cpu_milli}m", "memory": "16Mi"}
    container = {"name": "main", "image": "registry.test/app:1", "resources": {"requests": requests}}
    return {
        "metadata": {"name": name, "labels": labels},
        # There are no kubelets that would end it.
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


def anti_affinity(labels: dict[str, str], key: str) -> dict[str, Any]:
    """No pod with *labels* may be in the same place by the label *key*."""
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


@define(eq=False)
class Load:
    """Creates pods in bursts, and deletes the oldest when there are many."""

    client: KubeClient
    random: Random
    cpu_milli: dict[str, int] = field(factory=dict, init=False)
    """What the pods request that exist, as far as this object has not deleted them."""
    deleted: set[str] = field(factory=set, init=False)
    """The names of those that it has deleted."""
    created_at: dict[str, float] = field(factory=dict, init=False)
    _important: dict[str, int] = field(factory=dict, init=False)
    _claims: set[str] = field(factory=set, init=False)
    """Claims, by the name of their pod."""
    _burst: int = field(default=0, init=False)

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await trio.sleep(self.random.uniform(*BURST_SECONDS))
            self._burst += 1
            number = self.random.randint(*BURST_PODS)
            async with trio.open_nursery() as nursery:
                for index in range(number):
                    nursery.start_soon(self._create, f"p-{self._burst}-{index}")
                for name in self._to_delete():
                    nursery.start_soon(self._delete, name)

    async def relabel(self, shards: int) -> None:
        """Bring nodes into other shards until cancelled, a fifth of them back at once."""
        while True:
            await trio.sleep(self.random.uniform(*RELABEL_SECONDS))
            names = self.random.sample(range(NODES), k=self.random.randint(1, 3))
            for _ in range(1 + (self.random.random() < 0.2)):
                value = self.random.choice([*map(str, range(shards)), "blue", None])
                for number in names:
                    await self._patch(f"/api/v1/nodes/n{number}", {"metadata": {"labels": {POOL: value}}})

    def gone(self, name: str) -> None:
        """A pod is gone: deleted, or evicted."""
        self.cpu_milli.pop(name, None)
        self._important.pop(name, None)

    def _to_delete(self) -> list[str]:
        found, left = [], sum(self.cpu_milli.values())
        for name, cpu_milli in self.cpu_milli.items():
            if left > FILLED * NODES * NODE_CPU_MILLI or self.random.random() < 0.03:
                found.append(name)
                left -= cpu_milli
        # A pod that is evicted leaves its claim.
        return [*found, *(name for name in self._claims if name not in self.cpu_milli)]

    async def _create(self, name: str) -> None:
        kind = self.random.choices(list(_KINDS), list(_KINDS.values()))[0]
        cpu_milli = self.random.choice([100, 250, 500, 1000, 2000])
        if kind == "device":
            cpu_milli = 10
            if len(self._claims) >= DEVICES_PER_NODE * NODES_WITH_DEVICES:
                return
            self._claims.add(name)
            request = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_CLASS}}
            await self._post(CLAIM_PATH, {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}}})
        if kind == "important":
            if sum(self._important.values()) + cpu_milli > IMPORTANT_SHARE * NODES * NODE_CPU_MILLI:
                return
            self._important[name] = cpu_milli
        self.cpu_milli[name] = cpu_milli
        self.created_at[name] = trio.current_time()
        await self._post(POD_PATH, self._manifest(kind, name, cpu_milli))

    def _manifest(self, kind: str, name: str, cpu_milli: int) -> dict[str, Any]:
        burst, app = self._burst, f"{kind}-{self.random.randrange(5)}"
        match kind:
            case "owned":
                made = pod_manifest(name, cpu_milli, {"app": app})
                owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": app, "controller": True}
                made["metadata"]["ownerReferences"] = [owner]
                return made
            case "important":
                return pod_manifest(name, cpu_milli, {"app": kind}, priorityClassName="important")
            case "zone":
                selector = {ZONE: f"z{self.random.randrange(3)}"}
                return pod_manifest(name, cpu_milli, {"app": kind}, nodeSelector=selector)
            case "apart":
                return pod_manifest(name, cpu_milli, {"app": app}, affinity=anti_affinity({"app": app}, HOST))
            case "repels":
                # Nobody knows of the term when the pods come that it is about.
                affinity = anti_affinity({"app": f"repelled-{burst}"}, self.random.choice([ZONE, HOST]))
                return pod_manifest(name, cpu_milli, {"app": kind}, affinity=affinity)
            case "repelled":
                return pod_manifest(name, cpu_milli, {"app": f"repelled-{burst}"})
            case "beside":
                term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": ANCHOR}}
                affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
                return pod_manifest(name, cpu_milli, {"app": kind}, affinity=affinity)
            case "spread":
                constraint = {
                    "maxSkew": 2,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": {"app": app}},
                }
                return pod_manifest(name, cpu_milli, {"app": app}, topologySpreadConstraints=[constraint])
            case "device":
                claims = [{"name": "gpu", "resourceClaimName": name}]
                return pod_manifest(name, cpu_milli, {"app": kind}, resourceClaims=claims)
            case _:
                return pod_manifest(name, cpu_milli, {"app": kind})

    async def _delete(self, name: str) -> None:
        self.deleted.add(name)
        self.gone(name)
        with suppress(NotFound):
            await self.client.call(b"DELETE", f"{POD_PATH}/{name}".encode())
        if name in self._claims:  # as a controller does
            path = f"{CLAIM_PATH}/{name}"
            with suppress(NotFound):
                await self._patch(f"{path}/status", {"status": None})
                await self._patch(path, {"metadata": {"finalizers": None}})
                await self.client.call(b"DELETE", path.encode())
            self._claims.discard(name)

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await self.client.call(b"PATCH", path.encode(), headers=MERGE_PATCH, body=msgspec.json.encode(body))

    async def _post(self, path: str, manifest: dict[str, Any]) -> None:
        with suppress(KubeClientError):
            await self.client.call(b"POST", path.encode(), headers=JSON, body=msgspec.json.encode(manifest))
