"""The main job: pods get nodes, or a reason why not."""

from collections import Counter
from itertools import pairwise

from cluster_pods import create_pods
from ledger import Ledger, check_nothing_left
from trio.testing import MockClock

from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster


async def test_every_pod_is_bound_once_and_has_one_scheduled_event(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=100) as cluster:
        history = Ledger(cluster)
        await create_pods(cluster, 500, cpu="500m", memory="1Gi")
        await cluster.settle()
        assert all(cluster.placements().values())
        assert len(history.binds) == 500
        history.check()
        scheduled = cluster.events("Scheduled")
        assert Counter(event.involved_object.uid for event in scheduled) == dict.fromkeys(history.binds, 1)
        event = cluster.events(about="p7")[0]
        assert event.message == f"Successfully assigned default/p7 to {cluster.pod('p7').node_name}"
        assert (event.type, event.action, event.reporting_component) == ("Normal", "Binding", "default-scheduler")
        assert {p.status.phase for p in cluster.pods()} == {"Running"}
        check_nothing_left(cluster)


async def test_pods_are_spread_over_nodes_that_are_equally_good(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=10) as cluster:
        await create_pods(cluster, 50, cpu="100m", memory="64Mi")
        await cluster.settle()
        assert set(Counter(cluster.placements().values()).values()) == {5}


async def test_equal_seeds_give_equal_clusters(autojump_clock: MockClock) -> None:
    async def place(seed: int) -> dict[str, str]:
        async with virtual_cluster(nodes=20, seed=seed) as cluster:
            await create_pods(cluster, 30, cpu="100m")
            await cluster.settle()
            return cluster.placements()

    assert await place(1) == await place(1) != await place(2)


async def test_an_unschedulable_pod_has_a_reason(autojump_clock: MockClock) -> None:
    nodes = [
        node("small", cpu=1),
        node("tainted", cpu=8, taints=["gpu=yes:NoSchedule"]),
        node("cordoned", cpu=8, unschedulable=True),
    ]
    async with virtual_cluster(nodes=nodes) as cluster:
        await cluster.create(pod("p", cpu=2))
        await cluster.settle()
        text = (
            "0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s), "
            "1 node(s) were unschedulable. no new claims to deallocate, "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
        )
        (condition,) = cluster.pod("p").status.conditions or ()
        assert (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
        assert condition.message == text
        (event,) = cluster.events("FailedScheduling")
        assert (event.type, event.action, event.message) == ("Warning", "Scheduling", text)
        check_nothing_left(cluster)


async def test_without_nodes_a_pod_has_a_reason(autojump_clock: MockClock) -> None:
    async with virtual_cluster() as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        (condition,) = cluster.pod("p").status.conditions or ()
        assert condition.message == "no nodes available to schedule pods"


async def test_pods_of_higher_priority_are_scheduled_first(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=10)], scheduler=False) as cluster:
        history = Ledger(cluster)
        for number in range(20):
            await cluster.create(pod(f"p{number:02}", cpu=1, priority=number))
        await cluster.start_scheduler()
        await cluster.settle()
        history.check()
        assert sorted(p.name for p in cluster.pods() if p.node_name) == [f"p{number}" for number in range(10, 20)]


async def test_a_gated_pod_is_not_scheduled_until_its_gates_are_removed(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=1) as cluster:
        gated = await cluster.create(pod("p", gates=["a", "b"]))
        await cluster.settle()
        assert cluster.pod("p").node_name == ""
        assert cluster.events(about="p") == []
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
        await cluster.patch(manifest, {"spec": {"schedulingGates": [{"name": "b"}]}})
        await cluster.settle()
        assert cluster.pod("p").node_name == ""
        await cluster.patch(manifest, {"spec": {"schedulingGates": None}})
        await cluster.settle()
        assert (cluster.pod("p").uid, cluster.pod("p").node_name) == (gated.uid, "node-1")


TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: spreading
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}
  plugins:
    score:
      disabled: [{name: NodeResourcesBalancedAllocation}]
"""


async def test_each_profile_schedules_only_its_own_pods(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=4, config=TWO_PROFILES) as cluster:
        for number in range(4):
            await cluster.create(pod(f"spread-{number}", cpu="500m", memory="1Gi", scheduler_name="spreading"))
        await cluster.settle()
        for number in range(6):
            await cluster.create(pod(f"pack-{number}", cpu="500m", memory="1Gi", scheduler_name="packing"))
        await cluster.create(pod("foreign", scheduler_name="somebody-else"))
        await cluster.create(pod("default"))
        await cluster.settle()
        placements = cluster.placements()
        assert len({placements[f"default/spread-{number}"] for number in range(4)}) == 4
        assert len({placements[f"default/pack-{number}"] for number in range(6)}) == 1
        assert placements["default/foreign"] == placements["default/default"] == ""
        assert cluster.events(about="foreign") == []
        assert {event.reporting_component for event in cluster.events("Scheduled")} == {"spreading", "packing"}


async def test_profiles_see_pods_placed_by_other_profiles(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=4)], config=TWO_PROFILES) as cluster:
        history = Ledger(cluster)
        for number in range(8):
            await cluster.create(pod(f"p{number}", cpu=1, scheduler_name=("spreading", "packing")[number % 2]))
        await cluster.settle()
        history.check()
        assert len(history.binds) == 4


async def test_pods_bound_by_other_clients_count(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=4)]) as cluster:
        history = Ledger(cluster)
        await cluster.create(pod("foreign", cpu=3, scheduler_name="somebody-else", node_name="n"))
        await cluster.create(pod("ours", cpu=2))
        await cluster.settle()
        history.check()
        assert cluster.pod("ours").node_name == ""


async def test_a_finished_pod_frees_its_resources(autojump_clock: MockClock) -> None:
    async with virtual_cluster(nodes=[node("n", cpu=1)]) as cluster:
        history = Ledger(cluster)
        for number in range(5):
            job = pod(f"job-{number}", cpu=1, annotations={"trio-sched.dev/run-seconds": "30"})
            await cluster.create(job)
        await cluster.settle()
        history.check()
        assert {p.status.phase for p in cluster.pods()} == {"Succeeded"}
        pauses = [later - earlier for earlier, later in pairwise(history.bound_at)]
        assert all(31 <= pause < 35 for pause in pauses)
