from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, Controllers, populate, run_kubelets, trio_clock


async def make(cluster: Cluster, pods: Json | None = None, **spec: Any) -> None:
    await cluster.make("daemonsets", "agent", selector=SELECTOR, template=pods or template(), **spec)
    await trio.sleep(5)


def nodes_of(cluster: Cluster) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.stored("pods"))


async def test_every_node_has_a_pod(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    assert nodes_of(cluster) == ["n1", "n2", "n3"]
    pod = cluster.stored("pods")[0]
    rule = {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
    required = {"nodeSelectorTerms": [{"matchFields": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    assert pod["spec"]["affinity"] == affinity
    tolerated = {one["key"].removeprefix("node.kubernetes.io/"): one["effect"] for one in pod["spec"]["tolerations"]}
    assert tolerated == {
        "not-ready": "NoExecute",
        "unreachable": "NoExecute",
        "disk-pressure": "NoSchedule",
        "memory-pressure": "NoSchedule",
        "pid-pressure": "NoSchedule",
        "unschedulable": "NoSchedule",
    }
    assert all("tolerationSeconds" not in one for one in pod["spec"]["tolerations"])
    assert await cluster.status("daemonsets", "agent") == {
        "currentNumberScheduled": 3,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 3,
        "numberReady": 3,
        "updatedNumberScheduled": 3,
        "numberAvailable": 3,
        "observedGeneration": 1,
    }


async def test_new_nodes_get_a_pod_and_lost_pods_come_back(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    await cluster.create_node("n4")
    await cluster.remove("pods", cluster.names()[0])
    await trio.sleep(5)
    assert nodes_of(cluster) == ["n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    ("taint", "spec", "started", "kept"),
    [
        ("NoSchedule", {}, ["n1", "n2"], ["n1", "n2", "n3"]),
        ("NoSchedule", {"tolerations": [{"operator": "Exists"}]}, ["n1", "n2", "n3"], ["n1", "n2", "n3"]),
        ("NoExecute", {}, ["n1", "n2"], ["n1", "n2"]),
        ("PreferNoSchedule", {}, ["n1", "n2", "n3"], ["n1", "n2", "n3"]),
    ],
)
async def test_taints_keep_pods_away(
    cluster: Cluster, autojump_clock: MockClock, taint: str, spec: Json, started: list[str], kept: list[str]
) -> None:
    change = {"spec": {"taints": [{"key": "k", "value": "v", "effect": taint}]}}
    await make(cluster, template(**spec))
    await cluster.patch("nodes", "n3", change)
    await trio.sleep(5)
    assert nodes_of(cluster) == kept
    await cluster.remove("pods", "", propagationPolicy="Background")
    await trio.sleep(5)
    assert nodes_of(cluster) == started
    assert (await cluster.status("daemonsets", "agent"))["desiredNumberScheduled"] == len(started)


async def test_a_node_selector_that_no_longer_fits_takes_the_pod_away(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    for name in ("n1", "n2"):
        await cluster.patch("nodes", name, {"metadata": {"labels": {"disk": "ssd"}}})
    rule = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [rule]}}}
    await make(cluster, template(affinity=affinity))
    assert nodes_of(cluster) == ["n1", "n2"]
    await cluster.patch("nodes", "n1", {"metadata": {"labels": {"disk": "hdd"}}})
    await trio.sleep(5)
    assert nodes_of(cluster) == ["n2"]


@pytest.mark.parametrize(
    ("rules", "least", "most"),
    [({}, 2, 3), ({"maxUnavailable": 2}, 1, 3), ({"maxSurge": 1, "maxUnavailable": 0}, 3, 4)],
)
async def test_a_rolling_update_keeps_its_limits(
    cluster: Cluster, autojump_clock: MockClock, rules: Json, least: int, most: int
) -> None:
    await make(cluster, updateStrategy={"type": "RollingUpdate", "rollingUpdate": rules})
    await cluster.patch("daemonsets", "agent", {"spec": {"template": template("app:2")}})
    for _moment in range(300):
        await trio.sleep(0.1)
        phases = cluster.phases()
        assert phases["Running"] >= least
        assert phases["Running"] + phases["Pending"] <= most
    assert cluster.images() == {"app:2": 3}
    assert nodes_of(cluster) == ["n1", "n2", "n3"]
    status = await cluster.status("daemonsets", "agent")
    assert (status["observedGeneration"], status["updatedNumberScheduled"], status["numberAvailable"]) == (2, 3, 3)


async def test_failed_pods_are_replaced_more_and_more_slowly(cluster: Cluster, autojump_clock: MockClock) -> None:
    fails = template(annotations={"trio-sched.dev/run-seconds": "0.1", "trio-sched.dev/exit-code": "1"})
    await make(cluster, fails)
    seen: set[str] = set()
    counts = []
    for _minute in range(3):
        for _moment in range(600):
            await trio.sleep(0.1)
            seen |= set(cluster.names())
        counts.append(len(seen) / 3)
    assert 4 < counts[0] < 9
    assert counts[2] - counts[1] < 3


async def test_a_dump_without_revisions_is_as_it_was(
    cluster: Cluster, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    await make(cluster)
    kinds: Json = {"nodes": ("v1", "Node"), "daemonsets.apps": ("apps/v1", "DaemonSet"), "pods": ("v1", "Pod")}
    dump = [
        {"apiVersion": version, "kind": kind, **fields}
        for plural, (version, kind) in kinds.items()
        for fields in cluster.stored(plural)
    ]
    for one in dump:
        if one["kind"] == "Pod":
            one["metadata"]["labels"]["controller-revision-hash"] = "7c9f"
    other = Cluster(ApiServer(now=trio_clock()))
    populate(other.server, dump)
    await nursery.start(run_kubelets, other.server)
    await nursery.start(Controllers(other.server).run)
    await trio.sleep(60)
    uids = [[pod["metadata"]["uid"] for pod in one.stored("pods")] for one in (cluster, other)]
    assert uids[0] == uids[1]
    assert (await other.status("daemonsets", "agent"))["updatedNumberScheduled"] == 3


async def test_a_taint_that_pods_may_stay_with_is_counted_later(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    await cluster.patch("nodes", "n1", {"spec": {"taints": taints}})
    await trio.sleep(5)
    assert (await cluster.status("daemonsets", "agent"))["numberMisscheduled"] == 0
    (gone,) = [pod for pod in cluster.stored("pods") if pod["spec"]["nodeName"] == "n2"]
    await cluster.remove("pods", gone["metadata"]["name"])
    await trio.sleep(5)
    assert (await cluster.status("daemonsets", "agent"))["numberMisscheduled"] == 1
    await cluster.patch("nodes", "n1", {"spec": {"taints": None}})
    await trio.sleep(5)
    status = await cluster.status("daemonsets", "agent")
    assert (status["numberMisscheduled"], status["desiredNumberScheduled"]) == (0, 3)


async def test_a_deleted_node_counts_no_more_at_once(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    await cluster.remove("nodes", "n1")
    await trio.sleep(5)
    assert (await cluster.status("daemonsets", "agent"))["desiredNumberScheduled"] == 2
    assert cluster.phases() == {"Running": 3}
    await cluster.create_node("n1")
    await trio.sleep(5)
    assert (await cluster.status("daemonsets", "agent"))["desiredNumberScheduled"] == 3
