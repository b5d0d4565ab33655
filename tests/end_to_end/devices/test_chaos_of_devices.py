"""Devices under random faults, restarts and changes of leaders: none ever has two owners, and none is forgotten."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from chaos import NODE_CPU, Chaos, calm_down, check_cache_equals_server, check_fresh_scheduler_agrees
from ledger import Ledger, check_nothing_left
from msgspec import to_builtins
from trio.testing import MockClock

from trio_sched.daemon.assembly import Assembly
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import device, device_class, node, pod, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

MINUTES = 4
DEVICES = 2
CLAIMS = "resourceclaims.resource.k8s.io"
TEMPLATE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}},
}


def devices_of(claim: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    for result in (allocation.get("devices") or {}).get("results") or ():
        yield result["driver"], result["pool"], result["device"]


@define(eq=False)
class DeviceLedger:
    """Looks at every change of a claim for a device with two owners."""

    cluster: VirtualCluster
    doubles: list[str] = field(factory=list)
    allocations: int = 0

    def __attrs_post_init__(self) -> None:
        self.cluster.api.store.collection(CLAIMS).listen(self.see)

    def see(self, change: Change) -> None:
        if change.type == "DELETED" or not list(devices_of(change.current.fields)):
            return
        self.allocations += 1
        owners = Counter(device for claim in self.claims() for device in devices_of(claim))
        self.doubles += [f"{trio.current_time():.3f} {name}" for name, count in owners.items() if count > 1]

    def claims(self) -> list[dict[str, Any]]:
        return [stored.fields for stored in self.cluster.api.store.collection(CLAIMS).objects.values()]

    def check(self, assembly: Assembly) -> None:
        """What is allocated in the API is what the scheduler knows, and every bound pod has its claim."""
        assert self.doubles == []
        stored = {device for claim in self.claims() for device in devices_of(claim)}
        table = assembly.scheduler.cache.table.devices
        assert {tuple(one) for one in table.allocated.dedicated} == stored
        assert set(table.allocated.dedicated.values()) <= {1}
        assert len(table.claims) == len(self.claims())
        assert table.claims._in_flight == {}
        assert table.claims._stored == {}
        reserved = {
            consumer["uid"]
            for claim in self.claims()
            for consumer in (claim.get("status") or {}).get("reservedFor") or ()
        }
        running = {
            one.uid
            for one in self.cluster.pods()
            if one.node_name and one.spec.resource_claims and one.status.phase not in ("Succeeded", "Failed")
        }
        assert running <= reserved


@define(eq=False)
class DeviceChaos(Chaos):
    """Pods with claims, and faults when these are written."""

    def actions(self) -> dict[Callable[[], Awaitable[None]], int]:
        return {
            self.create_pod: 40,
            self.delete_pod: 14,
            self.label_pod: 4,
            self.cordon: 3,
            self.uncordon: 3,
            self.break_something: 8,
            self.break_claims: 12,
            self.restart: 3,
            self.outage: 1,
        }

    async def create_pod(self) -> None:
        self.count += 1
        name = f"p{self.count}"
        life = self.dice.choice([None, "10", "30"])
        annotations = {"trio-sched.dev/run-seconds": life} if life else {}
        made = pod(name, cpu="100m", annotations=annotations, claims=[f"{name}-claim"])
        if self.dice.random() < 0.5:
            await self.cluster.create(resource_claim(f"{name}-claim"))
            await self.cluster.create(made)
            return
        manifest = {"apiVersion": "v1", "kind": "Pod", **to_builtins(made)}
        manifest["metadata"].pop("uid", None)
        manifest["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]
        await self.cluster.create(manifest)

    async def break_claims(self) -> None:
        faults, count = self.cluster.api.faults, self.dice.randint(1, 3)
        match self.dice.randrange(5):
            case 0:
                faults.drop_next(count, verb="patch", resource="resourceclaims")
            case 1:
                faults.fail_next(count, verb="patch", resource="resourceclaims", code=409, reason="Conflict")
            case 2:
                faults.fail_next(count, verb="patch", resource="resourceclaims", code=503, reason="ServiceUnavailable")
            case 3:
                faults.set_latency(self.dice.choice([0, 0.01, 0.5, 3]), verb="patch", resource="resourceclaims")
            case _:
                faults.drop_next(count, verb="get", resource="resourceclaims")


async def prepare(cluster: VirtualCluster) -> None:
    await cluster.create(device_class())
    await cluster.create(TEMPLATE)
    for number in range(1, 9):
        devices = [device(f"gpu-{n}") for n in range(DEVICES)]
        await cluster.create(resource_slice(f"node-{number}", *devices))


def check_no_device_is_free_beside_waiting_pods(cluster: VirtualCluster, ledger: DeviceLedger) -> None:
    waiting = [one.name for one in cluster.pods() if not one.node_name]
    taken = sum(1 for claim in ledger.claims() for _device in devices_of(claim))
    assert not waiting or taken == 8 * DEVICES, waiting


@pytest.mark.parametrize("seed", range(2))
async def test_no_device_has_two_owners_and_none_is_forgotten(seed: int, autojump_clock: MockClock) -> None:
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2) as cluster:
        await prepare(cluster)
        history, devices = Ledger(cluster), DeviceLedger(cluster)
        chaos = DeviceChaos(cluster, Random(seed))
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
        await calm_down(cluster, chaos)
        await trio.sleep(600)  # what waited for no event is tried again
        await cluster.settle()
        assert chaos.count > 50
        assert devices.allocations > 30
        history.check()
        devices.check(cluster.schedulers[0].assembly)
        check_no_device_is_free_beside_waiting_pods(cluster, devices)
        check_nothing_left(cluster)
        check_cache_equals_server(cluster, cluster.schedulers[0].assembly)
        await check_fresh_scheduler_agrees(cluster)
        devices.check(cluster.schedulers[-1].assembly)


@pytest.mark.parametrize("seed", [100])
async def test_devices_under_changing_leaders(seed: int, autojump_clock: MockClock) -> None:
    nodes = [node(f"node-{number}", cpu=NODE_CPU, pods=10) for number in range(1, 9)]
    async with virtual_cluster(nodes=nodes, seed=seed, bind_latency_seconds=0.2, leader_elect=True) as cluster:
        await prepare(cluster)
        history, devices = Ledger(cluster), DeviceLedger(cluster)
        chaos = DeviceChaos(cluster, Random(seed))
        await cluster.start_scheduler()
        next_change = 30.0
        while trio.current_time() < MINUTES * 60:
            await chaos.act()
            await trio.sleep(chaos.dice.expovariate(1.0))
            running = [process for process in cluster.schedulers if process.running]
            for process in cluster.schedulers:
                if not process.running and process.has_failed:
                    await process.failed()
            if trio.current_time() > next_change or not running:
                next_change = trio.current_time() + chaos.dice.uniform(10, 40)
                if running:
                    leaving = chaos.dice.choice(running)
                    await (leaving.kill() if chaos.dice.random() < 0.7 else leaving.stop())
                await cluster.start_scheduler(wait=False)
        await calm_down(cluster, chaos)
        await trio.sleep(600)
        await cluster.settle()
        history.check()
        check_no_device_is_free_beside_waiting_pods(cluster, devices)
        for process in cluster.schedulers:
            if process.running:
                devices.check(process.assembly)
        await check_fresh_scheduler_agrees(cluster)
