import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import trio
from attrs import define, field
from trio_sched_load_aware import LoadAware

from trio_sched.plugin_api import HttpRequest, HttpResponse
from trio_sched.testing import conformance_test, node, owner_reference, pod, virtual_cluster

ADDRESS = "http://prometheus:9090"
CPU, MEMORY = "cpu load", "memory load"


def config(**more: Any) -> str:
    signals = [
        {"name": "cpu", "query": CPU, "of": "cpu", "thresholdPercent": 80},
        {"name": "memory", "query": MEMORY, "of": "memory"},
    ]
    args = {"address": ADDRESS, "signals": signals, "peakHalfLife": "0s", **more}
    return f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      multiPoint: {{enabled: [{{name: LoadAware}}]}}
      score:
        disabled: [{{name: "*"}}]
        enabled: [{{name: LoadAware}}]
    pluginConfig:
      - {{name: LoadAware, args: {json.dumps(args)}}}
"""


test_conformance = conformance_test(LoadAware)
test_conformance_with_arguments = conformance_test(
    LoadAware,
    args={"address": ADDRESS, "signals": [{"name": "net", "query": "x", "thresholdPercent": 50}]},
    pods=[pod("p", cpu="1"), pod("d", owner=owner_reference("DaemonSet", "d"))],
)


@define
class Prometheus:
    """Responds with the load that a test has set, and can be made to misbehave."""

    cpu: dict[str, float] = field(factory=dict)
    memory: dict[str, float] = field(factory=dict)
    misbehaves: Callable[[], Any] | None = None
    requests: list[HttpRequest] = field(factory=list)

    async def __call__(self, request: HttpRequest) -> Any:
        self.requests.append(request)
        if self.misbehaves is not None:
            found = self.misbehaves()
            return await found if hasattr(found, "__await__") else found
        values = {CPU: self.cpu, MEMORY: self.memory}[request.params["query"]]
        return vector(values)


def vector(values: Mapping[str, float]) -> dict[str, Any]:
    series = [{"metric": {"instance": f"{name}:9100"}, "value": [0, str(value)]} for name, value in values.items()]
    return {"status": "success", "data": {"resultType": "vector", "result": series}}


def cluster_of(prometheus: Prometheus, nodes: int = 3, **more: Any) -> Any:
    made = [node(f"n{number}", cpu="10", memory="10Gi") for number in range(nodes)]
    return virtual_cluster(nodes=made, config=config(**more), plugins=[LoadAware], endpoints={ADDRESS: prometheus})


async def test_pods_go_where_there_is_least_load() -> None:
    prometheus = Prometheus({"n0": 0.7, "n1": 0.1, "n2": 0.5}, {"n0": 0.1, "n1": 0.1, "n2": 0.1})
    async with cluster_of(prometheus) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("p", cpu="100m", memory="1Mi"))
        assert await cluster.wait_scheduled("p", on="n1") == "n1"
        prometheus.cpu = {"n0": 0.2, "n1": 0.9, "n2": 0.5}
        await trio.sleep(16)
        await cluster.create(pod("q", cpu="100m", memory="1Mi"))
        assert await cluster.wait_scheduled("q", on="n0") == "n0"


async def test_the_idlest_node_is_not_flooded_between_two_samples() -> None:
    prometheus = Prometheus({"n0": 0.5, "n1": 0.1, "n2": 0.5}, {"n0": 0.1, "n1": 0.1, "n2": 0.1})
    async with cluster_of(prometheus) as cluster:
        await trio.sleep(1)
        for number in range(16):
            await cluster.create(pod(f"p{number}", cpu="1", memory="1Mi"))
        await trio.sleep(5)
        counts = Counter(cluster.placements().values())
        assert counts == {"n1": 7, "n0": 3, "n2": 3, "": 3}  # each up to the threshold


async def test_an_overloaded_node_is_rejected_until_its_load_sinks() -> None:
    prometheus = Prometheus({"n0": 0.85})
    async with cluster_of(prometheus, nodes=1) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("p", cpu="100m"))
        await cluster.create(pod("d", owner=owner_reference("DaemonSet", "d")))
        await trio.sleep(40)
        cluster.assert_pending("p", reason="1 node(s) had a cpu load of 80 % or more", plugin="LoadAware")
        cluster.assert_scheduled("d")
        prometheus.cpu = {"n0": 0.4}
        await cluster.wait_scheduled("p", within_seconds=16)


async def test_many_pods_that_share_a_cached_rejection_are_tried_with_the_new_data() -> None:
    prometheus = Prometheus({"n0": 0.9, "n1": 0.9, "n2": 0.9})
    async with cluster_of(prometheus) as cluster:
        await trio.sleep(1)
        for number in range(10):
            await cluster.create(pod(f"p{number}", cpu="100m"))
        await trio.sleep(40)
        assert not any(cluster.placements().values())
        prometheus.cpu = {"n0": 0.9, "n1": 0.3, "n2": 0.9}
        await trio.sleep(30)
        assert set(cluster.placements().values()) == {"n1"}


async def test_requests_of_new_pods_count_towards_the_threshold() -> None:
    prometheus = Prometheus({"n0": 0.5}, {"n0": 0.1})
    async with cluster_of(prometheus, nodes=1, warmUp="60s") as cluster:
        await trio.sleep(1)
        for number in range(4):
            await cluster.create(pod(f"p{number}", cpu="1"))
        await trio.sleep(5)
        assert sum(map(bool, cluster.placements().values())) == 3
        await trio.sleep(75)  # the data shows that they need nothing of it
        assert sum(map(bool, cluster.placements().values())) == 4


async def test_old_data_is_neutral_and_said_once(caplog: pytest.LogCaptureFixture) -> None:
    prometheus = Prometheus({"n0": 0.95, "n1": 0.95, "n2": 0.95}, {"n0": 0.1})
    with caplog.at_level(logging.INFO):
        async with cluster_of(prometheus, maxAge="60s") as cluster:
            await trio.sleep(1)
            await cluster.create(pod("p", cpu="100m"))
            await trio.sleep(10)
            cluster.assert_pending("p")
            prometheus.misbehaves = lambda: HttpResponse(status=500, body=b"oh")
            await cluster.wait_scheduled("p", within_seconds=90)
            await trio.sleep(600)
            prometheus.misbehaves = None
            await trio.sleep(20)
    told = [record.getMessage() for record in caplog.records if "load" in record.getMessage()]
    assert sum("no cpu load is known" in text for text in told) == 1
    assert sum("the cpu load of 3 nodes is known" in text for text in told) == 1
    assert 1 <= sum("could not be fetched: " in text for text in told) <= 3


async def too_slow() -> Any:
    await trio.sleep(1000)


HOSTILE: dict[str, Callable[[], Any]] = {
    "500": lambda: HttpResponse(status=500),
    "no json": lambda: b"\xff{{{",
    "wrong json": lambda: {"status": "success", "data": {"resultType": "vector", "result": [None, 5, {"metric": 1}]}},
    "deep": lambda: "[" * 1_000_000,
    "10 MB": lambda: b" " * 10_000_000,
    "17 MiB": lambda: b" " * (17 * 2**20),
    "NaN": lambda: vector({"n0": float("nan"), "n1": float("inf")}),
    "unknown nodes": lambda: vector({f"x{number}": 0.5 for number in range(5000)}),
    "per cents": lambda: vector({"n0": 55.0, "n1": 10.0}),
    "slow": too_slow,
    "nothing": lambda: None,
}


@pytest.mark.parametrize("how", HOSTILE)
async def test_pods_are_scheduled_whatever_the_endpoint_does(how: str) -> None:
    prometheus = Prometheus(misbehaves=HOSTILE[how])
    async with cluster_of(prometheus) as cluster:
        await trio.sleep(30)
        for number in range(6):
            await cluster.create(pod(f"p{number}", cpu="100m"))
        await cluster.settle()
        assert all(cluster.placements().values())
        plugin = cluster.plugin("LoadAware")
        assert not any(plugin._known.loads), how
        assert len(prometheus.requests) > 4
        prometheus.misbehaves, prometheus.cpu = None, {"n0": 0.9, "n1": 0.1, "n2": 0.9}
        await trio.sleep(20)
        await cluster.create(pod("after", cpu="100m"))
        await cluster.wait_scheduled("after", on="n1")


async def test_a_flapping_endpoint_costs_neither_log_nor_placement(caplog: pytest.LogCaptureFixture) -> None:
    good = Prometheus({"n0": 0.9, "n1": 0.2, "n2": 0.9}, {"n0": 0.1, "n1": 0.1, "n2": 0.1})
    chance = Random(5)
    async with cluster_of(good) as cluster:
        await trio.sleep(1)
        with caplog.at_level(logging.INFO):
            for number in range(40):
                good.misbehaves = (lambda: HttpResponse(status=503)) if chance.random() < 0.5 else None
                await trio.sleep(15)
                if number % 10 == 0:
                    await cluster.create(pod(f"p{number}", cpu="100m"))
                    await cluster.wait_scheduled(f"p{number}", on="n1")
        assert sum("could not be fetched" in record.getMessage() for record in caplog.records) <= 2
        assert not any("is known" in record.getMessage() for record in caplog.records)


async def test_the_token_is_sent_and_may_change(tmp_path: Path) -> None:
    prometheus, file = Prometheus({"n0": 0.1}, {"n0": 0.1}), tmp_path / "token"
    file.write_text("one\n")
    async with cluster_of(prometheus, tokenFile=str(file)):
        await trio.sleep(1)
        file.write_text("two\n")
        await trio.sleep(15)
    sent = [request.headers["authorization"] for request in prometheus.requests]
    assert sent == ["Bearer one"] * 2 + ["Bearer two"] * 2


async def test_placed_pods_count_after_a_restart_too() -> None:
    prometheus = Prometheus({"n0": 0.1, "n1": 0.3, "n2": 0.9}, {})
    async with cluster_of(prometheus) as cluster:
        await trio.sleep(1)
        for number in range(3):
            await cluster.create(pod(f"p{number}", cpu="1"))
        await trio.sleep(5)
        assert Counter(cluster.placements().values())["n0"] >= 2
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await trio.sleep(1)
        await cluster.create(pod("after", cpu="1"))
        await cluster.wait_scheduled("after", on=["n1", "n0"])
        shares = {"n0": 0.1, "n1": 0.3}
        for one in cluster.pods():
            shares[one.node_name] += 0.1
        assert abs(shares["n0"] - shares["n1"]) <= 0.11


async def test_random_loads_never_overload_by_our_choice() -> None:
    """No pod is placed on a node whose load, with the requests that it does not show yet, is at the threshold."""
    chance = Random(11)
    prometheus = Prometheus({}, {})
    async with cluster_of(prometheus, nodes=8, warmUp="30s") as cluster:
        for number in range(60):
            prometheus.cpu = {f"n{i}": chance.random() for i in range(8) if chance.random() < 0.9}
            await trio.sleep(15.5)
            overloaded = {name for name, load in prometheus.cpu.items() if round(load, 2) >= 0.8}
            name = f"p{number}"
            await cluster.create(pod(name, cpu=f"{chance.choice([100, 500, 1500])}m", memory="1Mi"))
            await trio.sleep(2)
            found = cluster.pod(name)
            assert found.node_name not in overloaded
            if found.node_name:
                await cluster.delete(found, grace_seconds=0)
        prometheus.cpu = {f"n{i}": 0.1 for i in range(8)}
        await cluster.settle()
        assert all(cluster.placements().values())
