import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import trio
from trio_sched_time_windows import CarbonAware

from trio_sched.plugin_api import HttpRequest, HttpResponse
from trio_sched.testing import conformance_test, node, pod, virtual_cluster

ZONE = "topology.kubernetes.io/zone"
START_BY = "time-windows.trio-sched.dev/start-by"
BATCH = {"tier": "batch"}
HOUR = 3600.0
DIRTY_DAY = [100.0] * 6 + [400.0] * 14 + [150.0] * 4
"""Clean at night, dirty from 06:00 to 20:00."""
ARGS: dict[str, Any] = {
    "table": {"north": DIRTY_DAY, "south": [one + 100.0 for one in DIRTY_DAY]},
    "selector": {"matchLabels": BATCH},
    "threshold": 200,
}
NODES = [node("a", labels={ZONE: "north"}), node("b", labels={ZONE: "south"}), node("c")]

test_conformance = conformance_test(CarbonAware, args=ARGS, nodes=NODES, pods=[pod("batch", labels=BATCH), pod("p")])


def cluster_of(respond: Any = None, **args: Any) -> Any:
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      # The plugins that matter here: a day passes much faster with two watches than with seventeen.
      multiPoint:
        disabled: [{{name: "*"}}]
        enabled: [{{name: PrioritySort}}, {{name: NodeResourcesFit}}, {{name: DefaultBinder}}, {{name: CarbonAware}}]
      score: {{disabled: [{{name: "*"}}], enabled: [{{name: CarbonAware}}]}}
    pluginConfig: [{{name: CarbonAware, args: {json.dumps({**ARGS, **args})}}}]
"""
    endpoints = {"http://carbon": respond} if respond else {}
    return virtual_cluster(nodes=NODES, config=config, plugins=[CarbonAware], endpoints=endpoints, kubelets=False)


def hours_of(cluster: Any, name: str) -> float:
    (condition,) = [one for one in cluster.pod(name).status.conditions if one.type == "PodScheduled"]
    bound = datetime.fromisoformat(condition.last_transition_time)
    return (bound - datetime.fromisoformat("2026-01-01T00:00:00+00:00")).total_seconds() / HOUR


async def test_pods_prefer_the_zone_with_less_carbon() -> None:
    async with cluster_of() as cluster:
        await trio.sleep(1)
        await cluster.create(pod("p"))
        assert await cluster.wait_scheduled("p", on="a") == "a"


async def test_pods_that_may_wait_start_when_electricity_is_clean() -> None:
    async with cluster_of() as cluster:
        await trio.sleep(10 * HOUR)
        await cluster.create(pod("batch", labels=BATCH))
        await cluster.create(pod("service"))
        await cluster.create(pod("soon", labels=BATCH, annotations={START_BY: "2026-01-01T12:00:00Z"}))
        await cluster.create(pod("south", labels=BATCH, node_selector={ZONE: "south"}))
        await trio.sleep(60)
        cluster.assert_scheduled("service")
        cluster.assert_pending("batch", plugin="CarbonAware")
        cluster.assert_event(
            "WaitingForLessCarbon", about="batch", message="400 g/kWh of carbon, waits until 20:00 UTC"
        )
        await trio.sleep(15 * HOUR)
        assert 20.0 <= hours_of(cluster, "batch") < 20.01
        assert hours_of(cluster, "soon") < 12.01
        assert 20.0 <= hours_of(cluster, "south") < 24.01 + 1  # it is 250 there at best in the evening, 200 at night


def forecast(request: HttpRequest, *, now: float, later: float) -> dict[str, Any]:
    times = [datetime.fromisoformat("2026-01-01T00:00:00+00:00") + timedelta(hours=n) for n in range(24)]
    values = [{"at": one.isoformat(), "g": later if one.hour >= 5 else now} for one in times]
    return {"data": [{"now": now}], "forecast": [*values, None, {"at": "x"}, {"at": times[0].isoformat(), "g": "NaN"}]}


ENDPOINT = {
    "url": "http://carbon/{zone}",
    "path": "data.0.now",
    "forecastPath": "forecast",
    "forecastTime": "at",
    "forecastValue": "g",
}


async def test_an_endpoint_with_a_forecast() -> None:
    asked = []

    def respond(request: HttpRequest) -> Any:
        asked.append(request.path)
        return forecast(request, now=500.0, later=90.0)

    async with cluster_of(respond, zones={"north": "NO 1"}, endpoint=ENDPOINT, table={}) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("batch", labels=BATCH))
        await trio.sleep(60)
        cluster.assert_event("WaitingForLessCarbon", about="batch", message="until 05:00 UTC")
        await trio.sleep(6 * HOUR)
        assert 5.0 <= hours_of(cluster, "batch") < 5.01
    assert set(asked) == {"/NO%201"}
    assert len(asked) > 20


async def test_without_forecast_pods_start_when_it_is_better() -> None:
    value = [500.0]
    endpoint = {"url": "http://carbon/{zone}", "path": "0", "interval": "5m"}
    async with cluster_of(lambda _request: value, zones={"north": "x"}, endpoint=endpoint, table={}) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("batch", labels=BATCH))
        await trio.sleep(2 * HOUR)
        cluster.assert_pending("batch")
        value[0] = 100.0
        await cluster.wait_scheduled("batch", within_seconds=301)


@pytest.mark.parametrize(
    "response",
    [
        HttpResponse(status=500),
        b"\xff",
        {"data": "x"},
        {"data": [{"now": "NaN"}]},
        {"data": [{"now": -5}]},
        "[" * 99_999,
        b" " * 2_000_000,
        {"data": [{"now": True}]},
        [],
    ],
    ids=range(9),
)
async def test_without_data_nobody_waits(response: Any) -> None:
    async with cluster_of(lambda _request: response, zones={"north": "x"}, endpoint=ENDPOINT, table={}) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("batch", labels=BATCH))
        assert await cluster.wait_scheduled("batch", within_seconds=60)


async def test_a_server_that_stops_responding_holds_nobody_longer_than_its_data_counts() -> None:
    responses: list[Any] = [[500.0]]
    endpoint = {"url": "http://carbon/{zone}", "path": "0", "maxAge": "1h"}
    async with cluster_of(lambda _request: responses[0], zones={"north": "x"}, endpoint=endpoint, table={}) as cluster:
        await trio.sleep(1)
        await cluster.create(pod("batch", labels=BATCH))
        await trio.sleep(60)
        cluster.assert_pending("batch")
        responses[0] = HttpResponse(status=503)
        await cluster.wait_scheduled("batch", within_seconds=2 * HOUR)
