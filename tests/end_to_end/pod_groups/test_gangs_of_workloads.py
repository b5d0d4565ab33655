"""Gangs on API servers of 1.35, where workloads contain them, and what becomes of them after an upgrade."""

from typing import Any

import pytest
import trio
from gangs import GANG_GATES, member
from trio.testing import MockClock
from workloads_of_1_35 import member_of_workload, workload

from trio_sched.testing import node, pod, pod_group
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster
from trio_sched.testing.cluster_objects import Refused

OF_1_35: dict[str, Any] = {"gates": GANG_GATES, "kubernetes_version": "1.35"}
WAITING = "waiting for minCount pods from a gang to appear in scheduling queue"


async def create_members(cluster: VirtualCluster, *names: str, key: str = "") -> None:
    for name in names:
        await cluster.create(member_of_workload(name, "training", "workers", key))
    await cluster.settle()


def bound(cluster: VirtualCluster) -> set[str]:
    return {name.partition("/")[2] for name, node in cluster.placements().items() if node}


async def test_a_gang_of_a_workload_waits_until_it_is_complete(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a")
        await cluster.create(pod("plain"))
        await cluster.settle()
        assert bound(cluster) == {"plain"}
        await create_members(cluster, "b")
        assert bound(cluster) == {"plain", "a", "b"}


async def test_a_gang_that_does_not_fit_is_not_placed_in_part(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("small", cpu="1")], **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a", "b")
        assert not bound(cluster)
        (event,) = {
            (one.involved_object.kind, one.involved_object.name, one.involved_object.api_version)
            for one in cluster.events("FailedScheduling", about="training")
        }
        assert event == ("Workload", "training", "scheduling.k8s.io/v1alpha1")
        await cluster.create(node("other", cpu="1"))
        await cluster.settle()
        assert bound(cluster) == {"a", "b"}


async def test_each_replica_key_makes_a_gang_of_its_own(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a0", key="0")
        await create_members(cluster, "a1", key="1")
        await create_members(cluster, "a")
        assert not bound(cluster), "three gangs with a pod each"
        await create_members(cluster, "b1", key="1")
        assert bound(cluster) == {"a1", "b1"}


async def test_pods_wait_for_a_workload_that_comes_later(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await create_members(cluster, "a", "b")
        assert not bound(cluster)
        await cluster.create(workload("training", others=2))
        await cluster.create(workload("other", workers=2))
        await cluster.settle()
        assert not bound(cluster), "neither has the group"
        await cluster.delete(workload("training", others=2))
        await cluster.create(workload("training", workers=2))
        await cluster.settle()
        assert bound(cluster) == {"a", "b"}


async def test_pods_wait_once_their_workload_is_deleted_and_nothing_is_kept(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a")
        await cluster.delete(workload("training", workers=2))
        await create_members(cluster, "b")
        assert not bound(cluster)
        for name in ("a", "b"):
            await cluster.delete(cluster.pod(name), grace_seconds=0)
        await cluster.create(workload("training", workers=2))
        await cluster.settle()
        assembly = cluster.schedulers[0].assembly
        assert assembly is not None
        assert not list(assembly.scheduler.object_cache.objects("PodGroup")), "no pod is in the group"
        assert not len(assembly.scheduler.cache.groups)


async def test_the_pods_of_a_basic_group_are_scheduled_one_by_one(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("small", cpu="1")], **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=0))
        await create_members(cluster, "a", "b")
        assert len(bound(cluster)) == 1


async def test_without_the_gates_no_workload_is_watched_and_pods_are_scheduled_one_by_one(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=2, kubernetes_version="1.35") as cluster:
        await create_members(cluster, "a")
        assert bound(cluster) == {"a"}
        assembly = cluster.schedulers[0].assembly
        assert assembly is not None
        assert "podgroups" not in {one.kind.plural for one in assembly.watches.reflectors}


async def test_a_gang_preempts_by_the_priority_of_its_pods(autojump_clock: MockClock) -> None:
    gates = GANG_GATES | {"WorkloadAwarePreemption": True}
    async with virtual_cluster(nodes=[node("only", cpu="2")], gates=gates, kubernetes_version="1.35") as cluster:
        await cluster.create(pod("less", cpu="1", priority=5))
        await cluster.settle()
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a", "b", key="0")
        assert bound(cluster) == {"less"}
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "more"}}
        await cluster.create({**priority, "value": 6})
        for name in ("c", "d"):
            one = member_of_workload(name, "training", "workers")
            one["spec"]["priorityClassName"] = "more"
            await cluster.create(one)
        await trio.sleep(60)
        assert bound(cluster) == {"c", "d"}


@pytest.mark.parametrize("after", ["1.36", "1.37"])
async def test_gangs_and_pods_that_waited_for_one_go_on_after_an_upgrade(after: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=4, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        await create_members(cluster, "a", "b")
        await create_members(cluster, "waiting", key="1")
        assert bound(cluster) == {"a", "b"}
        cluster.api.change_version(after)
        assert "workloadRef" not in cluster.api.store.collection("pods").objects["default/waiting"].fields["spec"]
        await cluster.settle()
        assert bound(cluster) == {"a", "b", "waiting"}, "it is in no gang any more"
        await create_members(cluster, "later")
        await cluster.create(pod_group("gang", min_count=2))
        await cluster.create(member("first", "gang"))
        await cluster.settle()
        assert bound(cluster) == {"a", "b", "waiting", "later"}
        await cluster.create(member("second", "gang"))
        await cluster.settle()
        assert bound(cluster) == {"a", "b", "waiting", "later", "first", "second"}
        for one in cluster.pods():
            await cluster.delete(one, grace_seconds=0)
        await cluster.settle()
        assembly = cluster.schedulers[0].assembly
        assert assembly is not None
        assert [one.name for one in assembly.scheduler.object_cache.objects("PodGroup")] == ["gang"]
        assert not len(assembly.scheduler.cache.groups)


async def test_pods_are_scheduled_one_by_one_where_an_upgraded_server_has_no_pod_groups(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await create_members(cluster, "waiting")
        assert not bound(cluster)
        cluster.api.change_version("1.34")
        await cluster.settle()
        assert bound(cluster) == {"waiting"}


async def test_pods_wait_while_workloads_may_not_be_listed(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=2, scheduler=False, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        for name in ("a", "b"):
            await cluster.create(member_of_workload(name, "training", "workers", name))
        fail = cluster.api.faults.fail_next
        for verb in ("list", "watch"):
            fail(5, verb=verb, resource="workloads", code=403, reason="Forbidden", message="roles are not there yet")
        await cluster.start_scheduler()
        await cluster.settle()
        assert not bound(cluster)
        await create_members(cluster, "later", key="a")
        await trio.sleep(300)
        assert bound(cluster) == {"a", "later"}


async def test_pods_are_scheduled_one_by_one_by_a_server_of_1_35_that_serves_no_workloads(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=2, scheduler=False, **OF_1_35) as cluster:
        await cluster.create(member_of_workload("a", "training", "workers"))
        pods = cluster.api.store.collection("pods").objects
        spec = pods["default/a"].fields["spec"]
        cluster.api.change_version("1.34")
        pods["default/a"].show({**pods["default/a"].fields, "spec": spec})
        await cluster.start_scheduler()
        await cluster.settle()
        assert bound(cluster) == {"a"}


async def test_a_scheduler_that_starts_again_finds_workloads_and_their_pods(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(nodes=2, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=3))
        await create_members(cluster, "a", "b")
        await cluster.schedulers[0].stop()
        await cluster.start_scheduler()
        await cluster.settle()
        assert not bound(cluster)
        await create_members(cluster, "c")
        assert bound(cluster) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([], "spec.podGroups: Required value: must have at least one item"),
        ([{"name": "A", "policy": {"basic": {}}}], 'spec.podGroups[0].name: Invalid value: "A"'),
        ([{"name": "a", "policy": {}}], "spec.podGroups[0].policy: Required value"),
        ([{"name": "a", "policy": {"basic": {}, "gang": {"minCount": 1}}}], "multiple fields are set"),
        ([{"name": "a", "policy": {"gang": {"minCount": 0}}}], "minCount: Invalid value: 0: must be greater than zero"),
        ([{"name": "a", "policy": {"basic": {}}}] * 2, 'spec.podGroups[1].name: Duplicate value: "a"'),
        ([{"name": f"g{n}", "policy": {"basic": {}}} for n in range(9)], "must have at most 8 items"),
    ],
)
async def test_workloads_that_are_wrong_are_refused(groups: list[Any], problem: str, autojump_clock: MockClock) -> None:
    async with virtual_cluster(scheduler=False, **OF_1_35) as cluster:
        with pytest.raises(Refused) as refused:
            await cluster.create({**workload("training"), "spec": {"podGroups": groups}})
        assert problem in str(refused.value)


async def test_the_groups_of_a_workload_and_the_reference_of_a_pod_cannot_be_changed(
    autojump_clock: MockClock,
) -> None:
    async with virtual_cluster(scheduler=False, **OF_1_35) as cluster:
        await cluster.create(workload("training", workers=2))
        with pytest.raises(Refused, match="field is immutable"):
            await cluster.patch(workload("training"), {"spec": workload("training", workers=3)["spec"]})
        one = member_of_workload("a", "training", "workers")
        await cluster.create(one)
        with pytest.raises(Refused, match="may not change fields"):
            await cluster.patch(one, {"spec": {"workloadRef": {"podGroup": "others"}}})
        for field in ("name", "podGroup", "podGroupReplicaKey"):
            wrong = member_of_workload("b", "training", "workers")
            wrong["spec"]["workloadRef"][field] = "A_B"
            with pytest.raises(Refused, match=f"spec.workloadRef.{field}: Invalid value"):
                await cluster.create(wrong)
