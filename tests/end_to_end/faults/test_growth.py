"""What is kept about devices and pod groups is what exists now, whatever has come and gone."""

import re
from contextlib import suppress
from typing import Any

import trio
from container_sizes import container_sizes, grown
from trio.testing import MockClock

from trio_sched.testing import (
    device,
    device_class,
    device_request,
    node,
    pod,
    pod_group,
    resource_claim,
    resource_slice,
)
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused

GATES = {
    "GenericWorkload": True,
    "GangScheduling": True,
    "TopologyAwareWorkloadScheduling": True,
    "WorkloadAwarePreemption": True,
}
ROUNDS, SLACK = 40, 25
BOUNDED = re.compile(
    r"""\.counts | \.by_hook        # metrics: by label, not by object
    | \.selectors\._expressions   # by characters and answers
    | \._shapes | \._filter_made\.devices\._kept | \._models\. | \._evaluations\._entries
    | log\._rows                  # logs of changes""",
    re.VERBOSE,
)
"""What may outlive objects, because its own limit is tested where it is."""
DRIVER = "gpu.example.com"


async def come_and_go(cluster: VirtualCluster, number: int) -> None:
    """A node with devices, claims, pods and a gang; all of them go again, at different points of their lives."""
    name = f"gpu-{number}"
    here = node(name, cpu=8, labels={"zone": f"z{number}"})
    slices = [
        resource_slice(
            name,
            *(device(f"d{d}", attributes={"model": f"m{number}", "index": d}) for d in range(4)),
            name=f"slice-{number}-{generation}",
            pool=name,
            generation=generation,
        )
        for generation in (1, 2)
    ]
    selector = f'device.attributes["{DRIVER}"].?model.orValue("") == "m{number}"'
    claims = [resource_claim(f"c{number}-{n}", device_request(selectors=[selector])) for n in range(6)]
    group = pod_group(f"g{number}", min_count=2 + 9 * (number % 2), topology_key="zone")
    pods = [pod(f"p{number}-{n}", cpu=1, claims=[one.name]) for n, one in enumerate(claims)]
    pods += [pod(f"m{number}-{n}", cpu=1, group=group.name) for n in range(2 + 9 * (number % 4 == 1))]
    made: list[Any] = [here, *slices, *claims, group, *pods]
    for one in made:
        await cluster.create(one)
        if one is slices[1]:
            await cluster.delete(slices[0])
            made.remove(slices[0])
    if number % 3 == 0:
        cluster.api.faults.drop_next(1, verb="patch", resource="resourceclaims")
    await trio.sleep((0.0, 0.01, 3.0, 70.0)[number % 4])
    made.sort(key=lambda one: (number % 2 == 0) == (type(one).__name__ in ("Pod", "PodGroup")))
    for one in made:
        with suppress(Refused):  # gone with its node or its pod
            await cluster.delete(one, grace_seconds=0)


async def test_nothing_is_kept_of_devices_and_groups_that_are_gone(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, gates=GATES) as cluster:
        await cluster.create(device_class(DRIVER))
        await come_and_go(cluster, 0)
        await trio.sleep(1000)
        before = container_sizes(cluster.scheduler.assembly)
        for number in range(1, ROUNDS):
            await come_and_go(cluster, number)
        await trio.sleep(1000)
        assert not cluster.pods()
        after = container_sizes(cluster.scheduler.assembly)
        assert len(after) > 100
        assert {path for path in grown(before, after, by=SLACK) if not BOUNDED.search(path)} == set()
