from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
import yaml
from trio_sched_node_maintenance import MAINTENANCE, NodeMaintenance
from trio_sched_node_maintenance.durations import read_duration

from trio_sched.plugin_api import CustomObject, ObjectMeta
from trio_sched.testing import conformance_test, node, owner_reference, pod, virtual_cluster

MINUTE, HOUR = 60.0, 3600.0
BEGIN = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
"""When virtual clusters begin."""
RUN = "maintenance.trio-sched.dev/expected-duration"


def at(hours: float) -> str:
    return datetime.fromtimestamp(BEGIN + hours * HOUR, UTC).isoformat().replace("+00:00", "Z")


def maintenance(name: str = "m", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": MAINTENANCE.api_version,
        "kind": MAINTENANCE.kind,
        "metadata": {"name": name},
        "spec": {"start": at(1), "duration": "2h", **spec},
    }


def stored(name: str = "m", **spec: Any) -> CustomObject:
    fields = maintenance(name, **spec)
    return CustomObject(fields, ObjectMeta(name=name, uid=f"uid-of-{name}"))


test_conformance = conformance_test(NodeMaintenance)
test_conformance_with_objects = conformance_test(
    NodeMaintenance,
    nodes=[node("a", labels={"rack": "1"}), node("b", labels={"rack": "2"}), node("c")],
    pods=[pod("p"), pod("short", annotations={RUN: "10m"}), pod("d", owner=owner_reference("DaemonSet", "d"))],
    objects={
        MAINTENANCE: [
            stored("one", nodes=["a"], start="1969-12-31T23:00:00Z", duration="20h"),
            stored("two", nodeSelector={"matchLabels": {"rack": "2"}}, policy="OnlyPodsThatEnd", start=at(-490896 + 9)),
        ]
    },
)


def cluster_of(nodes: Any = 2, **more: Any) -> Any:
    return virtual_cluster(nodes=nodes, plugins=[NodeMaintenance], custom_resources=[MAINTENANCE], **more)


def status(cluster: Any, name: str = "m") -> dict[str, Any]:
    return dict(cluster.object(MAINTENANCE, name).status)


async def test_new_pods_go_elsewhere_while_it_lasts_and_its_status_tells() -> None:
    async with cluster_of() as cluster:
        await cluster.create(pod("before", node_name="node-1"))
        await cluster.create(maintenance(nodes=["node-1"]))
        await trio.sleep(40)
        assert status(cluster) == {"phase": "Scheduled", "nodes": 1, "podsRemaining": 1, "message": ""}
        await trio.sleep(HOUR)
        for number in range(4):
            await cluster.create(pod(f"p{number}"))
        await cluster.create(pod("only", node_selector={"kubernetes.io/hostname": "node-1"}))
        await cluster.create(
            pod("d", owner=owner_reference("DaemonSet", "d"), node_selector={"kubernetes.io/hostname": "node-1"})
        )
        await trio.sleep(60)
        assert {cluster.pod(f"p{number}").node_name for number in range(4)} == {"node-2"}
        cluster.assert_scheduled("d", on="node-1")
        cluster.assert_pending("only", reason="1 node(s) had a planned maintenance (m)", plugin="NodeMaintenance")
        assert status(cluster)["phase"] == "Active"
        cluster.assert_event("MaintenanceBegins", about="node-1", message="m begins")
        await trio.sleep(2 * HOUR)
        cluster.assert_scheduled("only", on="node-1")
        assert status(cluster)["phase"] == "Over"
        assert len(cluster.events("MaintenanceEnds")) == 1
        condition = next(one for one in cluster.pod("only").status.conditions or () if one.type == "PodScheduled")
        assert condition.last_transition_time in (at(3), at(3 + 1 / HOUR))


async def test_a_node_to_avoid_takes_pods_that_fit_nowhere_else() -> None:
    nodes = [node("a", cpu="1"), node("b", cpu="1")]
    async with cluster_of(nodes) as cluster:
        await cluster.create(maintenance(nodes=["a"], policy="Avoid", start=at(0)))
        await trio.sleep(5)
        for number in range(2):
            await cluster.create(pod(f"p{number}", cpu="1"))
            await trio.sleep(5)
        assert cluster.placements() == {"default/p0": "b", "default/p1": "a"}


async def test_pods_that_end_in_time_still_run_there() -> None:
    async with cluster_of(1) as cluster:
        await cluster.create(maintenance(nodes=["node-1"], policy="OnlyPodsThatEnd", start=at(3)))
        await trio.sleep(1)
        await cluster.create(pod("short", annotations={RUN: "90m"}))
        limited = {"spec": {"activeDeadlineSeconds": 3600}}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "limited", "namespace": "default"}}
        container = {"name": "c", "image": "registry.test/app:1"}
        await cluster.create({**manifest, "spec": {"containers": [container], **limited["spec"]}})
        await cluster.create(pod("long", annotations={RUN: "4h"}))
        await cluster.create(pod("unknown"))
        await cluster.create(pod("bad", annotations={RUN: "soon"}))
        await trio.sleep(30)
        assert {key for key, place in cluster.placements().items() if place} == {"default/short", "default/limited"}
        await trio.sleep(2 * HOUR)  # one hour is left
        await cluster.create(pod("late", annotations={RUN: "90m"}))
        await trio.sleep(30)
        cluster.assert_pending("late", plugin="NodeMaintenance")
        await trio.sleep(3 * HOUR)
        assert all(cluster.placements().values())


async def test_what_is_deleted_or_changed_wakes_the_pods_that_it_kept_away_and_only_these() -> None:
    nodes = [node(name, labels={"name": name}) for name in ("a", "b")]
    async with cluster_of(nodes) as cluster:
        one = await cluster.create(maintenance("one", nodes=["a"], start=at(0)))
        two = await cluster.create(maintenance("two", nodeSelector={"matchLabels": {"name": "b"}}, start=at(0)))
        await trio.sleep(1)
        for name in ("a", "b"):
            await cluster.create(pod(f"on-{name}", node_selector={"name": name}))
        await cluster.create(pod("large", cpu="1000"))
        await trio.sleep(30)
        handle = cluster.plugin("NodeMaintenance")._handle
        before = handle.pending_pod("default", "large").attempts
        await cluster.delete(one)
        await trio.sleep(15)
        cluster.assert_scheduled("on-a")
        cluster.assert_pending("on-b")
        await cluster.patch(two, {"spec": {"policy": "Avoid"}})
        await trio.sleep(15)
        cluster.assert_scheduled("on-b")
        assert before == 1  # it fits nowhere for its size


BAD: dict[str, dict[str, Any]] = {
    "spec.start": {"nodes": ["a"], "start": "tomorrow"},
    "either spec.end or spec.duration": {"nodes": ["a"], "end": at(5)},
    "spec.end must be after": {"nodes": ["a"], "end": at(0), "duration": None},
    "longer than a year": {"nodes": ["a"], "duration": "9999d"},
    "is no duration": {"nodes": ["a"], "duration": "2 hours"},
    "select nothing": {},
    "is empty, which would select all nodes": {"nodeSelector": {}},
    "is no label selector": {"nodeSelector": {"matchExpressions": [5]}},
    "spec.nodeSelector: ": {"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}},
    "list of names": {"nodes": [{"x": 1}]},
    "is none of Avoid": {"nodes": ["a"], "policy": {"x": []}},
}


async def test_bad_objects_cost_themselves_and_say_why() -> None:
    async with cluster_of() as cluster:
        for number, spec in enumerate(BAD.values()):
            await cluster.create(maintenance(f"bad-{number}", **spec))
        await cluster.create({key: value for key, value in maintenance("no-spec").items() if key != "spec"})
        await cluster.create(maintenance("good", nodes=["node-1"], start=at(0)))
        await trio.sleep(60)
        await cluster.create(pod("p"))
        await cluster.wait_scheduled("p", on="node-2")
        for number, said in enumerate(BAD):
            found = status(cluster, f"bad-{number}")
            assert found["phase"] == "Invalid"
            assert said in found["message"]
            cluster.assert_event("Invalid", about=f"bad-{number}", message=said)
        assert status(cluster, "no-spec")["phase"] == "Invalid"
        assert status(cluster, "good")["phase"] == "Active"


async def test_a_killed_scheduler_tells_the_begin_once() -> None:
    async with cluster_of() as cluster:
        await cluster.create(maintenance(nodes=["node-1"]))
        await trio.sleep(HOUR + 40)
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await trio.sleep(100)
        (event,) = cluster.events("MaintenanceBegins")
        assert event.series is None
        assert status(cluster)["phase"] == "Active"


async def test_random_maintenances_are_kept_and_nobody_waits_for_ever() -> None:
    chance = Random(4)
    nodes = [node(f"n{number}", labels={"rack": str(number % 2)}) for number in range(4)]
    async with cluster_of(nodes, kubelets=False) as cluster:
        spans: list[tuple[float, float, set[str]]] = []
        for number in range(30):
            if chance.random() < 0.4:
                start, hours = trio.current_time() / HOUR + chance.random(), chance.uniform(0.1, 1.0)
                by_rack = chance.random() < 0.3
                covered = {"n0", "n2"} if by_rack else {f"n{chance.randrange(4)}"}
                where = {"nodeSelector": {"matchLabels": {"rack": "0"}}} if by_rack else {"nodes": [*covered]}
                start = round(start * HOUR) / HOUR
                await cluster.create(
                    maintenance(f"m{number}", start=at(start), duration=f"{round(hours * 60)}m", **where)
                )
                spans.append((start * HOUR, start * HOUR + round(hours * 60) * MINUTE, covered))
            await trio.sleep(chance.uniform(5, 600))
            name, now = f"p{number}", trio.current_time()
            await cluster.create(pod(name, cpu="10m"))
            await trio.sleep(2)
            closed = set().union(*(nodes for start, end, nodes in spans if start <= now < end - 5))
            assert cluster.pod(name).node_name not in closed or not closed
        await trio.sleep(3 * HOUR)
        assert all(cluster.placements().values())


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("2h30m", 9000),
        ("1d", 86400),
        ("0.5h", 1800),
        ("", None),
        ("5", None),
        ("-5m", None),
        ("9" * 50 + "s", None),
        ("1h" * 99, None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert read_duration(text) == seconds


def test_the_definition_is_of_the_resource_that_is_declared() -> None:
    definition = yaml.safe_load((Path(__file__).parents[1] / "deploy" / "crd.yaml").read_text())
    assert definition["metadata"]["name"] == f"{MAINTENANCE.plural}.{MAINTENANCE.group}"
    assert definition["spec"]["names"]["kind"] == MAINTENANCE.kind
    assert [one["name"] for one in definition["spec"]["versions"]] == [MAINTENANCE.version]
    assert definition["spec"]["scope"] == "Cluster"
