"""Random operations and faults about devices and claims, and checks that no device ever has two owners."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import trio
from attrs import define, field
from chaos import Chaos

from trio_sched.daemon.assembly import Assembly
from trio_sched.objects.pod import PodResourceClaim
from trio_sched.objects.resource.resource_claim import ResourceClaim
from trio_sched.simulator.controllers.devices.devices import DEVICES
from trio_sched.simulator.storage.object_store import Change
from trio_sched.snapshot.devices.allocated_devices import DeviceId
from trio_sched.testing import device_class, device_request, node, pod, resource_claim
from trio_sched.testing.cluster import VirtualCluster

DRIVER = "gpu.example.com"
NODES, PER_NODE = 6, 4
CLAIMS = "resourceclaims.resource.k8s.io"
_CLAIM = "resourceclaims"
_SHARED = ("shared-1", "shared-2")
_TEMPLATES = ("one", "two", "either")


def gpu_node(number: int, failed: tuple[str, ...] = ()) -> Any:
    """A node whose driver publishes devices of two models."""
    declared = {
        "count": PER_NODE,
        "failed": list(failed),
        "device": {"attributes": {"model": {"string": "old" if number % 2 else "new"}}},
    }
    return node(
        f"node-{number}", cpu=8, pods=10, annotations={DEVICES: msgspec.json.encode({DRIVER: declared}).decode()}
    )


async def prepare(cluster: VirtualCluster) -> None:
    """A class, templates of claims, and claims that pods share."""
    await cluster.create(device_class(DRIVER))
    new = f'device.attributes["{DRIVER}"].model == "new"'
    requests = {
        "one": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER}}],
        "two": [{"name": "gpu", "exactly": {"deviceClassName": DRIVER, "count": 2}}],
        "either": [
            {
                "name": "gpu",
                "firstAvailable": [
                    {"name": "new", "deviceClassName": DRIVER, "count": 2, "selectors": [{"cel": {"expression": new}}]},
                    {"name": "any", "deviceClassName": DRIVER},
                ],
            }
        ],
    }
    for name in _TEMPLATES:
        await cluster.create(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name},
                "spec": {"spec": {"devices": {"requests": requests[name]}}},
            }
        )
    for name in _SHARED:
        await cluster.create(resource_claim(name, device_request("gpu", DRIVER)))


@define(eq=False)
class DeviceChaos(Chaos):
    """Pods with claims come and go; devices fail; writes of claims are refused, or their replies are lost."""

    broken: set[str] = field(factory=set)

    def actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        return {
            self.create_pod: 40,
            self.delete_pod: 18,
            self.delete_claim: 3,
            self.fail_devices: 4,
            self.cordon: 3,
            self.uncordon: 3,
            self.remove_node: 1,
            self.bring_node_back: 3,
            self.break_something: 5,
            self.break_claims: 14,
            self.restart: 3,
            self.outage: 1,
        }

    async def create_pod(self) -> None:
        self.count += 1
        claims: list[str | PodResourceClaim] = []
        kind = self.dice.random()
        if kind < 0.75:
            template = self.dice.choice(_TEMPLATES)
            claims.append(PodResourceClaim(name="own", resource_claim_template_name=template))
        if kind > 0.65:
            claims.append(self.dice.choice(_SHARED))
        life = self.dice.choice([None, "10", "30"])
        annotations = {"trio-sched.dev/run-seconds": life} if life else {}
        await self.cluster.create(pod(f"p{self.count}", cpu="100m", claims=claims, annotations=annotations))

    async def delete_claim(self) -> None:
        """A generated claim, of which the controller makes another."""
        stored = list(self.cluster.api.store.collection(CLAIMS).objects.values())
        made = [one for one in stored if one.fields["metadata"]["name"] not in _SHARED]
        if made:
            await self.cluster.delete(
                {
                    "apiVersion": "resource.k8s.io/v1",
                    "kind": "ResourceClaim",
                    "metadata": {"name": self.dice.choice(made).fields["metadata"]["name"]},
                }
            )

    def some_node(self) -> str:
        return f"node-{self.dice.randint(1, NODES)}"

    async def fail_devices(self) -> None:
        number = self.dice.randint(1, NODES)
        failed = tuple(f"gpu-{n}" for n in range(PER_NODE) if self.dice.random() < 0.2)
        annotations = gpu_node(number, failed).metadata.annotations
        await self.cluster.patch(node(f"node-{number}"), {"metadata": {"annotations": annotations}})

    async def bring_node_back(self) -> None:
        if self.missing:
            name = self.dice.choice(sorted(self.missing))
            await self.cluster.create(gpu_node(int(name.rpartition("-")[2])))
            self.missing.discard(name)

    async def break_claims(self) -> None:
        faults, count = self.cluster.api.faults, self.dice.randint(1, 3)
        match self.dice.randrange(5):
            case 0:
                faults.drop_next(count, verb="patch", resource=_CLAIM)
            case 1:
                faults.fail_next(count, verb="patch", resource=_CLAIM, code=409, reason="Conflict")
            case 2:
                faults.fail_next(count, verb="patch", resource=_CLAIM, code=503, reason="ServiceUnavailable")
            case 3:
                faults.fail_next(1, verb="watch", resource=_CLAIM, code=410, reason="Expired")
            case _:
                faults.set_latency(self.dice.choice([0, 0.01, 0.5, 3]), verb="patch", resource=_CLAIM)


@define(eq=False)
class DeviceLedger:
    """Follows every change of claims in the API server.

    Attributes:
        double: moments at which a device was in two claims.
        allocations: how many there were.
    """

    cluster: VirtualCluster
    double: list[str] = field(factory=list)
    allocations: int = 0
    _owners: dict[DeviceId, set[str]] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection(CLAIMS).listen(self.see)

    def see(self, change: Change) -> None:
        key = change.current.key
        if change.previous is not None:
            for device in devices_of(change.previous.fields):
                self._owners[device].discard(key)
        if change.type == "DELETED":
            return
        now = devices_of(change.current.fields)
        before = [] if change.previous is None else devices_of(change.previous.fields)
        self.allocations += bool(now) and not before
        for device in now:
            owners = self._owners.setdefault(device, set())
            if owners:
                self.double.append(f"{trio.current_time():.3f} {device}: {sorted(owners)} and {key}")
            owners.add(key)


def devices_of(fields: dict[str, Any]) -> list[DeviceId]:
    """The allocated devices of a claim."""
    claim = msgspec.convert({name: fields[name] for name in ("metadata", "status") if name in fields}, ResourceClaim)
    results = () if claim.status.allocation is None else claim.status.allocation.devices.results or ()
    return [DeviceId(one.driver, one.pool, one.device) for one in results]


async def calm_down(cluster: VirtualCluster, chaos: DeviceChaos) -> None:
    """Remove all faults, restore all nodes and devices, and let the cluster come to rest."""
    cluster.api.faults.clear()
    cluster.api.resume()
    for name in sorted(chaos.missing):
        await cluster.create(gpu_node(int(name.rpartition("-")[2])))
    for number in range(1, NODES + 1):
        annotations = gpu_node(number).metadata.annotations
        patch = {"spec": {"unschedulable": None}, "metadata": {"annotations": annotations}}
        await cluster.patch(node(f"node-{number}"), patch)
    await cluster.settle()
    await trio.sleep(400)  # no event tells of a device that a failed bind has freed: pods wait for the periodic flush
    await cluster.settle()


def check_claims(cluster: VirtualCluster) -> None:
    """No claim is forgotten: each allocation is reserved for pods that run where its devices are."""
    pods = {one.uid: one for one in cluster.pods()}
    for stored in cluster.api.store.collection(CLAIMS).objects.values():
        status = stored.fields.get("status") or {}
        reserved = status.get("reservedFor") or []
        assert bool(status.get("allocation")) == bool(reserved), (stored.key, status)
        for consumer in reserved:
            one = pods[consumer["uid"]]
            if one.node_name:
                assert {device.pool for device in devices_of(stored.fields)} == {one.node_name}, stored.key


def check_waiting_pods_lack_devices(cluster: VirtualCluster) -> None:
    """Of the pods that wait, none needs just one device while one is free."""
    used = {d for one in cluster.api.store.collection(CLAIMS).objects.values() for d in devices_of(one.fields)}
    free = NODES * PER_NODE - len(used)
    waiting = [one for one in cluster.pods() if not one.node_name and not one.is_terminal]
    easy = [
        one.key
        for one in waiting
        if [c.resource_claim_template_name for c in one.spec.resource_claims or ()] == ["one"]
    ]
    if free:
        seats = {f"node-{n}": 10 for n in range(1, NODES + 1)}
        for one in cluster.pods():
            if one.node_name and not one.is_terminal:
                seats[one.node_name] -= 1
        used_by_node = {n: sum(d.pool == n for d in used) for n in seats}
        assert not easy or all(used_by_node[n] == PER_NODE or not seats[n] for n in seats), easy


def check_memory_equals_server(cluster: VirtualCluster, assembly: Assembly) -> None:
    """The devices that a scheduler holds for allocated are those of the claims in the API server."""
    stored = {d for one in cluster.api.store.collection(CLAIMS).objects.values() for d in devices_of(one.fields)}
    devices = assembly.scheduler.cache.table.devices
    assert set(devices.allocated.dedicated) == stored
    assert set(devices.allocated.dedicated.values()) <= {1}
