"""What the builders make is what the API server accepts."""

import trio
from trio.testing import MockClock

from trio_sched.objects.resource.resource_slice import DeviceAttribute
from trio_sched.testing import (
    device,
    device_class,
    device_request,
    pod,
    pod_group,
    resource_claim,
    resource_slice,
    sub_request,
)
from trio_sched.testing.cluster import virtual_cluster


def test_devices_take_plain_values() -> None:
    made = device(
        "gpu-1",
        attributes={"model": "a100", "index": 1, "nvlink": True, "firmware": DeviceAttribute(version="1.2.3")},
        capacity={"memory": "40Gi"},
        taints=["broken=yes:NoExecute"],
    )
    assert made.attributes is not None
    assert made.attributes["model"].string == "a100"
    assert (made.attributes["index"].int_, made.attributes["index"].bool_) == (1, None)
    assert (made.attributes["nvlink"].bool_, made.attributes["nvlink"].int_) == (True, None)
    assert made.capacity is not None
    assert made.capacity["memory"].value == "40Gi"
    (taint,) = made.taints or ()
    assert (taint.key, taint.value, taint.effect) == ("broken", "yes", "NoExecute")


def test_a_slice_is_for_a_node_or_for_all() -> None:
    assert resource_slice("n1", device()).spec.node_name == "n1"
    assert resource_slice("n1", device()).spec.pool.name == "n1"
    assert resource_slice(None, device(), pool="net").spec.all_nodes
    assert resource_slice(None, device(), per_device_node_selection=True).spec.all_nodes is None


async def test_the_server_accepts_them(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, scheduler=False) as cluster:
        await cluster.create(device_class())
        await cluster.create(resource_slice("node-1", device("gpu-0"), device("gpu-1")))
        one = device_request(selectors=["true"], tolerations=["broken"], capacity={"memory": "1Gi"})
        either = device_request("any", first_available=[sub_request("large", count=2), sub_request("small")])
        claim = await cluster.create(resource_claim("training", one, either, device_request("all", count=None)))
        assert claim.metadata.uid
        assert claim.spec.devices.requests is not None
        assert claim.spec.devices.requests[0].exactly is not None
        assert claim.spec.devices.requests[0].exactly.count == 1
        await cluster.create(pod_group("gang", min_count=2, topology_key="zone"))
        made = await cluster.create(pod("train-0", claims=["training"], group="gang"))
        assert made.spec.scheduling_group is not None
        assert made.spec.scheduling_group.pod_group_name == "gang"
        await trio.sleep(1)
