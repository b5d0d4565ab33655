"""What kube-scheduler 1.36 and 1.37 do differently without any setting, on whole clusters."""

import pytest
import trio
from scraped import scrape_of
from trio.testing import MockClock

from trio_sched.testing import device, device_class, node, pod, resource_slice
from trio_sched.testing.cluster import virtual_cluster

VERSIONS = pytest.mark.parametrize("version", ["1.36", "1.37"])


@VERSIONS
async def test_the_event_of_a_pod_that_preempts_says_so_since_1_37(autojump_clock: MockClock, version: str) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)], emulated_version=version) as cluster:
        await cluster.create(pod("low", cpu=1))
        await cluster.settle()
        await cluster.create(pod("high", cpu=1, priority=10))
        await trio.sleep(0.5)
        first, *_ = cluster.events("FailedScheduling", about="high")
        (condition,) = cluster.pod("high").status.conditions or ()
    told = "preemption: found a potential placement for pod on node n, preempting 1 victims"
    for message in (first.message, condition.message):
        assert message.startswith("0/1 nodes are available: 1 Insufficient cpu.")
        assert message.endswith(told) is (version == "1.37")
        assert ("preempting" in message) is (version == "1.37")


@VERSIONS
async def test_a_bind_that_the_api_server_could_not_handle_is_sent_again_since_1_37(
    autojump_clock: MockClock, version: str
) -> None:
    async with virtual_cluster(nodes=1, emulated_version=version) as cluster:
        cluster.api.faults.fail_next(1, verb="bind", code=503, reason="ServiceUnavailable")
        await cluster.create(pod("p"))
        await trio.sleep(0.3)
        assert bool(cluster.pod("p").node_name) is (version == "1.37")
        await cluster.settle()
        assert cluster.pod("p").node_name
        assert len(cluster.events("FailedScheduling", about="p")) == (1 if version == "1.36" else 0)


@VERSIONS
async def test_claims_for_extended_resources_are_counted_under_another_name_since_1_37(
    autojump_clock: MockClock, version: str
) -> None:
    async with virtual_cluster(nodes=1, gates={"DRAExtendedResource": True}, emulated_version=version) as cluster:
        await cluster.create(device_class(extended_resource_name="example.com/gpu"))
        await cluster.create(resource_slice("node-1", device("gpu-0")))
        await cluster.create(pod("p", requests={"example.com/gpu": 1}))
        await cluster.settle()
        seen = await scrape_of(cluster)
        assert cluster.pod("p").node_name
    counted = {
        "1.36": seen("scheduler_resourceclaim_creates_total", status="success"),
        "1.37": seen("dynamic_resource_allocation_resourceclaim_creates_total", status="success", owner_api_kind="Pod"),
    }
    assert counted == {one: 1 if one == version else None for one in counted}


@VERSIONS
@pytest.mark.parametrize("served", ["1.32", "1.36"])
async def test_pods_are_scheduled_where_device_taint_rules_are_not_served_in_the_newest_version(
    autojump_clock: MockClock, version: str, served: str
) -> None:
    async with virtual_cluster(nodes=1, kubernetes_version=served, emulated_version=version) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name
