"""Options of bind mounts, which API servers know from 1.37 on, from the manifest of a pod to its node."""

from typing import Any

import pytest
from trio.testing import MockClock

from trio_sched.testing import node
from trio_sched.testing.cluster import virtual_cluster

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "safe"},
    "spec": {
        "volumes": [{"name": "v", "emptyDir": {}}],
        "containers": [
            {
                "name": "c",
                "image": "x",
                "volumeMounts": [{"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec", "nodev"]}],
            }
        ],
    },
}


async def test_a_pod_with_mount_options_goes_to_the_node_that_declares_the_feature(autojump_clock: MockClock) -> None:
    nodes = [node("old", cpu=64), node("new", cpu=4, declared_features=["VolumeBindMountOptions"])]
    async with virtual_cluster(nodes=nodes, emulated_version="1.37", kubernetes_version="1.37") as cluster:
        await cluster.create(POD)
        await cluster.settle()
        assert cluster.placements() == {"default/safe": "new"}


@pytest.mark.parametrize(("version", "is_placed"), [("1.36", True), ("1.37", False)])
async def test_an_older_api_server_drops_the_options(version: str, is_placed: bool, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1, emulated_version="1.37", kubernetes_version=version) as cluster:
        await cluster.create(POD)
        await cluster.settle()
        assert bool(cluster.placements()["default/safe"]) is is_placed
        if not is_placed:
            (event,) = cluster.events("FailedScheduling", about="safe")[-1:]
            assert "1 node(s) didn't match Pod's required features" in event.message
