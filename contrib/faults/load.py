"""What users do meanwhile: pods come and go, of all sorts, so that a fault hits work that is under way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import msgspec
import trio
from attrs import define, field

from trio_sched.kube_client.connection import JSON, MERGE_PATCH, KubeClient
from trio_sched.kube_client.errors import KubeClientError, NotFound

NODES = 8
PODS_PER_SECOND = 4.0
MOST_PODS = 150
"""The oldest are deleted above it: the cluster never gets full."""
DEVICES_PER_NODE = 4
NAMESPACE = "default"
POD_PATH = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIM_PATH = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
DEVICE_CLASS = "gpu.example.com"
TOO_MUCH_CPU = "200"


def node_manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    """The cluster: two small nodes, which are full now and then, large ones, and devices on half of these."""
    for number in range(NODES):
        amounts = {"cpu": "1" if number < 2 else "32", "memory": "64Gi", "pods": "500"}
        labels = {"kubernetes.io/hostname": f"n{number}", "zone": f"z{number % 2}"}
        status = {"allocatable": amounts, "capacity": amounts}
        yield "/api/v1/nodes", {"metadata": {"name": f"n{number}", "labels": labels}, "status": status}
    selector = {"cel": {"expression": f'device.driver == "{DEVICE_CLASS}"'}}
    yield (
        "/apis/resource.k8s.io/v1/deviceclasses",
        {"metadata": {"name": DEVICE_CLASS}, "spec": {"selectors": [selector]}},
    )
    for number in range(2, NODES, 2):
        devices = [{"name": f"gpu-{i}"} for i in range(DEVICES_PER_NODE)]
        spec = {
            "driver": DEVICE_CLASS,
            "nodeName": f"n{number}",
            "pool": {"name": f"n{number}", "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        }
        yield "/apis/resource.k8s.io/v1/resourceslices", {"metadata": {"name": f"n{number}-gpus"}, "spec": spec}


def pod_manifest(name: str, *, cpu: str = "10m", priority: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod of one container."""
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    labels = {"app": name.partition("-")[0]}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0, **spec},
    }


@define(eq=False)
class Load:
    """Creates and deletes pods, while the API server is there.

    Attributes:
        fitting: names of the pods that exist and fit.
        too_large: names of those that fit nowhere.
    """

    client: KubeClient
    random: Random
    fitting: dict[str, None] = field(init=False, factory=dict)
    too_large: dict[str, None] = field(init=False, factory=dict)
    _claims: dict[str, bool] = field(init=False, factory=dict)
    """The claims that exist, and whether their pod does."""
    _count: int = field(init=False, default=0)

    async def run(self) -> None:
        """Go on until cancelled."""
        while True:
            await trio.sleep(self.random.expovariate(PODS_PER_SECOND))
            with suppress(KubeClientError):  # the API server is away; what was not created is not expected
                await self._act()

    async def _act(self) -> None:
        self._count += 1
        name = f"load-{self._count}"
        if len(self.fitting) > MOST_PODS or self.random.random() < 0.2:
            await self._delete(self.fitting)
        if len(self.too_large) > 5:
            await self._delete(self.too_large)
        await self._release_claims()
        match self.random.randrange(8):
            case 0:
                await self._create(pod_manifest(name, cpu=TOO_MUCH_CPU), self.too_large)
            case 1:
                await self._create_with_device(name)
            case 2:
                terms = [{"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "load"}}}]
                affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
                await self._create(pod_manifest(name, affinity=affinity), self.fitting)
            case 3:
                spread = {
                    "maxSkew": 5,
                    "topologyKey": "zone",
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "load"}},
                }
                await self._create(pod_manifest(name, topologySpreadConstraints=[spread]), self.fitting)
            case _:
                cpu = self.random.choice(["10m", "50m", "100m"])
                await self._create(pod_manifest(name, cpu=cpu), self.fitting)

    async def _create(self, manifest: dict[str, Any], kept_in: dict[str, None]) -> None:
        await self._post(POD_PATH, manifest)
        kept_in[manifest["metadata"]["name"]] = None

    async def _create_with_device(self, name: str) -> None:
        if len(self._claims) >= 8:  # of twelve devices
            return
        self._claims[f"{name}-gpu"] = False
        request = {"name": "gpu", "exactly": {"deviceClassName": DEVICE_CLASS}}
        claim = {"metadata": {"name": f"{name}-gpu"}, "spec": {"devices": {"requests": [request]}}}
        await self._post(CLAIM_PATH, claim)
        claims = [{"name": "gpu", "resourceClaimName": f"{name}-gpu"}]
        await self._create(pod_manifest(f"{name}-gpu", resourceClaims=claims), self.fitting)
        self._claims[f"{name}-gpu"] = True

    async def _delete(self, among: dict[str, None]) -> None:
        if not among:
            return
        name = next(iter(among))
        del among[name]  # whether it is deleted or not, nothing is expected of it any more
        if name in self._claims:
            self._claims[name] = False
        with suppress(NotFound):
            await self.client.call(b"DELETE", f"{POD_PATH}/{name}".encode())

    async def _release_claims(self) -> None:
        """Delete the claims of pods that are to be gone, as a controller does; tried again until it has worked."""
        for name in [name for name, has_pod in self._claims.items() if not has_pod]:
            with suppress(NotFound):
                await self.client.call(b"DELETE", f"{POD_PATH}/{name}".encode())
            path = f"{CLAIM_PATH}/{name}"
            with suppress(NotFound):
                await self._patch(f"{path}/status", {"status": None})
                await self._patch(path, {"metadata": {"finalizers": None}})
                await self.client.call(b"DELETE", path.encode())
            del self._claims[name]

    async def _patch(self, path: str, body: dict[str, Any]) -> None:
        await self.client.call(b"PATCH", path.encode(), headers=MERGE_PATCH, body=msgspec.json.encode(body))

    async def _post(self, path: str, manifest: dict[str, Any]) -> None:
        await self.client.call(b"POST", path.encode(), headers=JSON, body=msgspec.json.encode(manifest))
