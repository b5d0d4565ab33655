"""Claims and volumes from end to end: the real daemon, and a simulated volume controller."""

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from trio_sched.objects.pod import Pod
from trio_sched.simulator import VolumePace
from trio_sched.simulator.storage.object_store import Change
from trio_sched.testing import node
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def storage_class(name: str = "late", *, mode: str = "WaitForFirstConsumer", **more: Any) -> Json:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name, **more.pop("metadata", {})},
        "provisioner": "csi.test",
        "volumeBindingMode": mode,
        **more,
    }


def claim(name: str = "data", *, of: str = "late", mode: str = "ReadWriteOnce", size: str = "1Gi") -> Json:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": of, "accessModes": [mode], "resources": {"requests": {"storage": size}}},
    }


def local_volume(name: str, on: str, *, size: str = "5Gi", of: str = "late") -> Json:
    host = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "storageClassName": of,
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "local": {"path": "/mnt"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [host]}]}},
        },
    }


def pod_with(*volumes: Json | str, name: str = "p", **spec: Any) -> Json:
    """A pod with claims by name, or volumes as they are written."""
    written = [
        {"name": f"v{i}", "persistentVolumeClaim": {"claimName": one}} if isinstance(one, str) else one
        for i, one in enumerate(volumes)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "i"}], "volumes": written, **spec},
    }


def stored(cluster: VirtualCluster, collection: str, key: str) -> Json | None:
    found = cluster.api.store.get(collection, key)
    return None if found is None else found.fields


def claim_of(cluster: VirtualCluster, name: str = "data") -> Json:
    found = stored(cluster, "persistentvolumeclaims", f"default/{name}")
    assert found is not None
    return found


def volume_of(cluster: VirtualCluster, name: str = "data") -> Json:
    found = stored(cluster, "persistentvolumes", claim_of(cluster, name)["spec"]["volumeName"])
    assert found is not None
    return found


def failures(cluster: VirtualCluster, about: str = "p") -> list[str]:
    return [event.message for event in cluster.events("FailedScheduling", about=about)]


async def seen_bound(cluster: VirtualCluster, name: str = "p", *, within: float = 3600) -> Pod:
    bound = trio.Event()

    def see(change: Change) -> None:
        if change.current.key == f"default/{name}" and change.current.fields["spec"].get("nodeName"):
            bound.set()

    stop = cluster.api.store.collection("pods").listen(see)
    if not cluster.pod(name).node_name:
        with trio.fail_after(within):
            await bound.wait()
    stop()
    return cluster.pod(name)


async def test_a_volume_is_provisioned_on_the_node_of_the_pod(autojump_clock: MockClock) -> None:
    nodes = [node("a", labels={ZONE: "east"}), node("b", labels={ZONE: "west"}, unschedulable=True)]
    async with virtual_cluster(nodes=nodes) as cluster:
        for one in (storage_class(), claim(), pod_with("data")):
            await cluster.create(one)
        bound = await seen_bound(cluster)
        assert bound.node_name == "a"
        assert claim_of(cluster)["metadata"]["annotations"][SELECTED_NODE] == "a"
        assert claim_of(cluster)["status"]["phase"] == "Bound"
        (term,) = volume_of(cluster)["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
        assert term["matchExpressions"] == [{"key": ZONE, "operator": "In", "values": ["east"]}]
        assert failures(cluster) == []


async def test_the_next_pod_goes_to_the_node_of_the_volume(autojump_clock: MockClock) -> None:
    nodes = [node("a", labels={ZONE: "east"}), node("b", labels={ZONE: "west"})]
    async with virtual_cluster(nodes=nodes) as cluster:
        for one in (storage_class(), claim(), pod_with("data", nodeSelector={ZONE: "west"})):
            await cluster.create(one)
        await seen_bound(cluster)
        await cluster.create(pod_with("data", name="q", nodeSelector={ZONE: "east"}))
        await cluster.settle()
        assert not cluster.pod("q").node_name
        assert "1 node(s) didn't match PersistentVolume's node affinity" in failures(cluster, "q")[0]


async def test_a_slow_provisioner_delays_only_its_pod(autojump_clock: MockClock) -> None:
    slow = {"annotations": {"trio-sched.dev/provision-seconds": "300"}}
    async with virtual_cluster(nodes=2) as cluster:
        for one in (storage_class(metadata=slow), claim(), pod_with("data")):
            await cluster.create(one)
        await trio.sleep(100)
        assert not cluster.pod("p").node_name
        assert cluster.pod("p").nominated_node_name == claim_of(cluster)["metadata"]["annotations"][SELECTED_NODE]
        await cluster.create(pod_with(name="q"))
        assert (await seen_bound(cluster, "q", within=5)).node_name
        began = trio.current_time()
        await seen_bound(cluster)
        assert trio.current_time() - began < 250
        assert failures(cluster) == []


async def test_a_failing_provisioner_is_retried_until_it_succeeds(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3, volumes=VolumePace(provision_failures=2)) as cluster:
        for one in (storage_class(), claim(), pod_with("data")):
            await cluster.create(one)
        bound = await seen_bound(cluster)
        assert claim_of(cluster)["metadata"]["annotations"][SELECTED_NODE] == bound.node_name
        text = 'running PreBind plugin "VolumeBinding": binding volumes: provisioning failed for PVC "data"'
        assert failures(cluster) == [text, text]
        (event,) = cluster.events("ProvisioningFailed", about="data")
        assert event.count == 2


async def test_without_a_provisioner_the_attempt_ends_at_the_bind_timeout(autojump_clock: MockClock) -> None:
    config = (
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: VolumeBinding, args: {bindTimeoutSeconds: 30}}]}]\n"
    )
    async with virtual_cluster(nodes=2, config=config, volumes=False) as cluster:
        for one in (storage_class(), claim(), pod_with("data")):
            await cluster.create(one)
        await trio.sleep(29)
        assert failures(cluster) == []
        await trio.sleep(3)
        text = 'running PreBind plugin "VolumeBinding": binding volumes: context deadline exceeded'
        assert failures(cluster) == [text]
        # What was written is not taken back: the pod is tied to that node until the provisioner gives up.
        assert claim_of(cluster)["metadata"]["annotations"][SELECTED_NODE]


async def test_local_volumes_are_bound_to_pods_that_fit_on_their_nodes(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a"), node("b"), node("c")]) as cluster:
        await cluster.create(storage_class(provisioner="kubernetes.io/no-provisioner"))
        for name, on in (("on-a", "a"), ("on-b", "b")):
            await cluster.create(local_volume(name, on))
        for i in range(3):
            await cluster.create(claim(f"data-{i}"))
            await cluster.create(pod_with(f"data-{i}", name=f"p{i}"))
        await cluster.settle()
        placed = {pod.name: pod.node_name for pod in cluster.pods()}
        assert sorted(placed.values()) == ["", "a", "b"]
        waiting = next(name for name, where in placed.items() if not where)
        assert "3 node(s) didn't find available persistent volumes to bind" in failures(cluster, waiting)[0]
        for name, where in placed.items():
            if where:
                assert volume_of(cluster, f"data-{name[1:]}")["metadata"]["name"] == f"on-{where}"
        await cluster.create(local_volume("on-c", "c"))
        assert (await seen_bound(cluster, waiting, within=20)).node_name == "c"


async def test_a_claim_created_later_requeues_its_pod(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(storage_class("now", mode="Immediate"))
        await cluster.create(pod_with("data"))
        await trio.sleep(60)
        (failure,) = failures(cluster)
        assert failure.startswith('0/1 nodes are available: persistentvolumeclaim "data" not found.')
        await cluster.create(claim(of="now"))
        await seen_bound(cluster, within=30)


async def test_a_pod_waits_for_its_immediate_claim(autojump_clock: MockClock) -> None:
    slow = {"annotations": {"trio-sched.dev/provision-seconds": "20"}}
    async with virtual_cluster(nodes=1) as cluster:
        for one in (storage_class("now", mode="Immediate", metadata=slow), claim(of="now"), pod_with("data")):
            await cluster.create(one)
        await trio.sleep(10)
        assert failures(cluster)[0].startswith(
            "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        )
        await seen_bound(cluster, within=30)


async def test_an_ephemeral_volume_lives_as_long_as_its_pod(autojump_clock: MockClock) -> None:
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim()["spec"]}}}
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(storage_class())
        created = await cluster.create(pod_with(volume))
        await seen_bound(cluster)
        owner = claim_of(cluster, "p-scratch")["metadata"]["ownerReferences"][0]
        assert owner["uid"] == created["metadata"]["uid"]
        name = claim_of(cluster, "p-scratch")["spec"]["volumeName"]
        await cluster.delete(created, grace_seconds=0)
        await cluster.settle()
        assert stored(cluster, "persistentvolumeclaims", "default/p-scratch") is None
        assert stored(cluster, "persistentvolumes", name) is None


async def test_a_pod_deleted_during_provisioning_frees_its_resources(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a", cpu=1)], volumes=VolumePace(provision_seconds=100)) as cluster:
        requests = {"requests": {"cpu": "1"}}
        for one in (storage_class(), claim(), pod_with("data")):
            if one["kind"] == "Pod":
                one["spec"]["containers"][0]["resources"] = requests
            await cluster.create(one)
        await trio.sleep(10)
        await cluster.delete(pod_with("data"))
        other = pod_with(name="q")
        other["spec"]["containers"][0]["resources"] = requests
        await cluster.create(other)
        assert (await seen_bound(cluster, "q", within=15)).node_name == "a"
        await cluster.settle()
        cluster.scheduler.raise_failure()


async def test_a_pod_waits_for_a_read_write_once_pod_claim(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        for one in (storage_class(), claim(mode="ReadWriteOncePod"), pod_with("data")):
            await cluster.create(one)
        first = await seen_bound(cluster)
        await cluster.create(pod_with("data", name="q"))
        await trio.sleep(30)
        assert "ReadWriteOncePod access mode already in-use by another pod" in failures(cluster, "q")[0]
        await cluster.delete(pod_with("data"), grace_seconds=0)
        assert (await seen_bound(cluster, "q", within=30)).node_name
        assert first.node_name


@pytest.mark.parametrize("reason", ["conflict", "refused"])
async def test_a_write_that_fails_is_repeated_by_another_attempt(autojump_clock: MockClock, reason: str) -> None:
    async with virtual_cluster(nodes=2) as cluster:
        for one in (storage_class(), claim()):
            await cluster.create(one)
        code = {"conflict": 409, "refused": 403}[reason]
        cluster.api.faults.fail_next(
            verb="patch", resource="persistentvolumeclaims", code=code, reason="Conflict", message="not now"
        )
        await cluster.create(pod_with("data"))
        await seen_bound(cluster, within=60)
        assert failures(cluster) == ['running PreBind plugin "VolumeBinding": not now']


async def test_two_pods_never_get_the_same_volume(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("a")], volumes=VolumePace(bind_seconds=5)) as cluster:
        await cluster.create(storage_class(provisioner="kubernetes.io/no-provisioner"))
        for i in range(5):
            await cluster.create(local_volume(f"disk-{i}", "a", size=f"{5 - i}Gi"))
        for i in range(5):
            await cluster.create(claim(f"data-{i}"))
            await cluster.create(pod_with(f"data-{i}", name=f"p{i}"))
        await cluster.settle()
        assert {pod.node_name for pod in cluster.pods()} == {"a"}
        taken = [claim_of(cluster, f"data-{i}")["spec"]["volumeName"] for i in range(5)]
        assert sorted(taken) == [f"disk-{i}" for i in range(5)]


@pytest.mark.parametrize("is_local", [False, True])
async def test_pods_that_share_a_claim_run_on_the_node_of_its_volume(autojump_clock: MockClock, is_local: bool) -> None:
    async with virtual_cluster(nodes=[node("a"), node("b")]) as cluster:
        if is_local:
            await cluster.create(local_volume("disk", "b"))
        provisioner = "kubernetes.io/no-provisioner" if is_local else "csi.test"
        await cluster.create(storage_class(provisioner=provisioner))
        await cluster.create(claim())
        for i in range(4):
            await cluster.create(pod_with("data", name=f"p{i}"))
        await cluster.settle()
        places = {pod.node_name for pod in cluster.pods()}
        assert "" not in places
        assert places == {"b"} or not is_local
        assert claim_of(cluster)["status"]["phase"] == "Bound"


async def test_a_restarted_scheduler_continues_from_the_stored_claims(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=3, volumes=VolumePace(provision_seconds=60)) as cluster:
        for one in (storage_class(), claim(), pod_with("data")):
            await cluster.create(one)
        await trio.sleep(10)
        selected = claim_of(cluster)["metadata"]["annotations"][SELECTED_NODE]
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        assert (await seen_bound(cluster)).node_name == selected


async def test_a_pod_may_mount_a_claim_twice(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        for one in (storage_class(), claim(), pod_with("data", "data")):
            await cluster.create(one)
        await seen_bound(cluster, within=60)
        assert failures(cluster) == []


@pytest.mark.parametrize("seed", range(2))
async def test_faults_of_all_kinds_delay_volumes_but_lose_none(autojump_clock: MockClock, seed: int) -> None:
    pace = VolumePace(bind_seconds=0.5, provision_seconds=3, provision_failures=1)
    async with virtual_cluster(nodes=5, volumes=pace, seed=seed) as cluster:
        await cluster.create(storage_class())
        await cluster.create(storage_class("local", provisioner="kubernetes.io/no-provisioner"))
        for i in range(10):
            await cluster.create(local_volume(f"disk-{i}", f"node-{i % 5 + 1}", of="local"))
        faults = cluster.api.faults
        faults.fail_next(5, verb="patch", resource="persistentvolumes", code=500)
        faults.drop_next(5, verb="patch", resource="persistentvolumeclaims")
        faults.fail_next(5, verb="patch", resource="persistentvolumeclaims", code=409, reason="Conflict")
        for i in range(30):
            await cluster.create(claim(f"data-{i}", of="local" if i < 10 else "late"))
            await cluster.create(pod_with(f"data-{i}", name=f"p{i}"))
            if i % 10 == 5:
                cluster.api.restart(lose_history=i == 15)
            await trio.sleep(0.3)
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await cluster.settle()
        assert all(pod.node_name for pod in cluster.pods())
        taken = [claim_of(cluster, f"data-{i}")["spec"]["volumeName"] for i in range(30)]
        assert len(set(taken)) == 30
        for i in range(30):
            where = cluster.pod(f"p{i}").node_name
            if i < 10:
                host = volume_of(cluster, f"data-{i}")["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"][0]
                assert host["matchExpressions"][0]["values"] == [where]
            else:
                assert claim_of(cluster, f"data-{i}")["metadata"]["annotations"][SELECTED_NODE] == where
