"""Objects of devices and groups with anything in them: no other pod notices, and once they are mended all pods run."""

import logging
from random import Random
from typing import Any

import pytest
import trio
from hostile_objects import good_objects, mutated
from trio.testing import MockClock

from trio_sched.simulator import Controllers
from trio_sched.testing import device, device_class, node, pod, pod_group, resource_claim, resource_slice
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

Json = dict[str, Any]

GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
    "DRAExtendedResource": True,
    "DRAConsumableCapacity": True,
    "DRADeviceTaints": True,
    "DRADeviceTaintRules": True,
    "DRADeviceBindingConditions": True,
    "DRAAdminAccess": True,
    "DRAListTypeAttributes": True,
}
DRIVER = "gpu.example.com"
NODES = [node("bad", labels={"zone": "b"}), node("good", labels={"zone": "g"})]


async def _no_controllers(_self: Controllers, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Those of the simulator rely on what an API server checks."""
    task_status.started()


class RawStore:
    """Writes into the storage of the API server, past its checks."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.store = cluster.api.store
        self.keys: list[tuple[str, str]] = []

    def put(self, where: str, fields: Json) -> None:
        collection = where.partition("#")[0]
        metadata = {"uid": f"uid-of-{where}", **fields["metadata"]}
        key = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        self.store.create(collection, key, {**fields, "metadata": metadata})
        self.keys.append((collection, key))

    def remove_all(self) -> None:
        for collection, key in self.keys:
            stored = self.store.get(collection, key)
            assert stored is not None
            self.store.delete(collection, stored)


async def mend(cluster: VirtualCluster) -> None:
    """Everything that the pods need, as it should be."""
    made = dict(good_objects()["resourceclaims.resource.k8s.io"])
    made.pop("status", None)
    await cluster.create({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", **made})
    await cluster.create(resource_claim("allocated"))
    await cluster.create(pod_group("bad", min_count=2))
    await cluster.create(device_class("bad.example.com", "true", extended_resource_name="example.com/gpu"))
    more = (device(f"h{n}", attributes={"model": "a"}, capacity={"memory": "80Gi"}) for n in range(16))
    await cluster.create(resource_slice("good", *more, name="more", pool="more"))


@pytest.mark.parametrize("seed", range(12))
async def test_hostile_objects_cost_themselves(
    seed: int, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Controllers, "run", _no_controllers)
    dice = Random(seed)
    async with virtual_cluster(nodes=NODES, gates=GATES, scheduler=False, kubelets=False) as cluster:
        await cluster.create(device_class(DRIVER))
        raw = RawStore(cluster)
        if is_there_first := dice.random() < 0.5:
            await cluster.start_scheduler()
        for where, fields in good_objects().items():
            raw.put(where, mutated(fields, dice, times=dice.randint(0, 3)))
        if not is_there_first:
            await cluster.start_scheduler()
        for name in ("bad", "allocated"):
            await cluster.create(pod(name, claims=[name]))
        await cluster.create(pod("extended", requests={"example.com/gpu": 1}))
        for name in ("member-1", "member-2"):
            await cluster.create(pod(name, group="bad"))
        await cluster.create(pod("plain"))
        await trio.sleep(120)
        assert cluster.pod("plain").node_name

        raw.remove_all()
        await mend(cluster)
        await trio.sleep(700)
        assert [one.name for one in cluster.pods() if not one.node_name] == []
    failures = [one.getMessage() for one in caplog.records if one.exc_info and one.levelno >= logging.ERROR]
    assert not [text for text in failures if "plugin" not in text]
