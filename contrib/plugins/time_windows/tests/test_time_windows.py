import json
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import trio
from trio_sched_time_windows import TimeWindows

from trio_sched.testing import FakeHandle, conformance_test, node, pod, schedule, virtual_cluster

WINDOWS = "time-windows.trio-sched.dev/windows"
START_BY = "time-windows.trio-sched.dev/start-by"
BATCH = {"tier": "batch"}
ARGS: dict[str, Any] = {
    "windows": ["22:00-06:00"],
    "selector": {"matchLabels": BATCH},
    "timeZone": "Europe/Berlin",
}
HOUR = 3600.0


def cluster_of(nodes: int = 2, hour: int = 0, **more: Any) -> Any:
    """It begins on 2026-01-01, a Thursday, at *hour* UTC, which is an hour later in Berlin."""
    config = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins:
      # The plugins that matter here: a day passes much faster with two watches than with seventeen.
      multiPoint:
        disabled: [{{name: "*"}}]
        enabled: [{{name: PrioritySort}}, {{name: NodeResourcesFit}}, {{name: DefaultBinder}}, {{name: TimeWindows}}]
    pluginConfig: [{{name: TimeWindows, args: {json.dumps({**ARGS, **more})}}}]
"""
    begins = datetime(2026, 1, 1, hour, tzinfo=UTC)
    return virtual_cluster(nodes=nodes, config=config, plugins=[TimeWindows], kubelets=False, begins=begins)


test_conformance = conformance_test(
    TimeWindows,
    args=ARGS,
    pods=[pod("batch", labels=BATCH), pod("free"), pod("own", annotations={WINDOWS: "Mon 10:00-11:00"})],
)


def hours_of(cluster: Any, name: str) -> float:
    """When the pod was bound, in hours from midnight UTC."""
    (condition,) = [one for one in cluster.pod(name).status.conditions if one.type == "PodScheduled"]
    bound = datetime.fromisoformat(condition.last_transition_time)
    return (bound - datetime.fromisoformat("2026-01-01T00:00:00+00:00")).total_seconds() / HOUR


def test_the_reason_names_the_moment() -> None:
    handle = FakeHandle(clock=12 * HOUR)  # 13:00 in Berlin
    outcome = schedule(
        pod("p", labels=BATCH), on=[node("n")], plugins=[TimeWindows], args={"TimeWindows": ARGS}, handle=handle
    )
    assert outcome.message == "outside of its time windows until 22:00 Europe/Berlin"
    assert handle.retries[0][1] == 9 * HOUR
    assert handle.metric_value("delays_total") == 1


async def test_pods_start_when_the_window_opens_and_others_at_once() -> None:
    async with cluster_of(hour=19) as cluster:
        await cluster.create(pod("waits", labels=BATCH))
        await cluster.create(pod("free"))
        await trio.sleep(60)
        cluster.assert_pending("waits", plugin="TimeWindows")
        cluster.assert_event("WaitingForWindow", about="waits", message="until 22:00 Europe/Berlin")
        cluster.assert_scheduled("free")
        await trio.sleep(3 * HOUR)
        assert 21.0 <= hours_of(cluster, "waits") < 21.01  # 22:00 in Berlin


async def test_a_deadline_and_a_pods_own_windows_count_before_the_arguments() -> None:
    async with cluster_of(hour=10) as cluster:
        await cluster.create(pod("soon", labels=BATCH, annotations={START_BY: "2026-01-01T12:00:00Z"}))
        await cluster.create(pod("own", annotations={WINDOWS: "Thu 17:00-18:00 America/New_York"}))
        await cluster.create(pod("past", labels=BATCH, annotations={START_BY: "2025-01-01T12:00:00Z"}))
        await trio.sleep(13 * HOUR)
        assert 12.0 <= hours_of(cluster, "soon") < 12.01
        assert 22.0 <= hours_of(cluster, "own") < 22.01
        assert hours_of(cluster, "past") < 10.01


async def test_the_longest_delay_holds_without_annotation() -> None:
    async with cluster_of(hour=10, maxDelay="3h") as cluster:
        await cluster.create(pod("p", labels=BATCH))
        await trio.sleep(4 * HOUR)
        assert 13.0 <= hours_of(cluster, "p") < 13.01


async def test_bad_annotations_are_named_and_ignored() -> None:
    async with cluster_of(hour=19) as cluster:
        await cluster.create(pod("free", annotations={WINDOWS: "22-6"}))
        await cluster.create(pod("batch", labels=BATCH, annotations={WINDOWS: "x" * 5000, START_BY: "tomorrow"}))
        await trio.sleep(60)
        cluster.assert_scheduled("free")
        cluster.assert_pending("batch")
        cluster.assert_event("BadAnnotation", about="free", message="write it like 'Mon-Fri 22:00-06:00 Europe/Berlin'")
        cluster.assert_event("BadAnnotation", about="batch", message="write it like 2026-03-01T06:00:00Z")
        await trio.sleep(3 * HOUR)
        assert 21.0 <= hours_of(cluster, "batch") < 21.01


async def test_an_annotation_that_is_mended_counts_at_once() -> None:
    async with cluster_of(hour=10) as cluster:
        made = await cluster.create(pod("p", labels=BATCH))
        await trio.sleep(60)
        await cluster.patch(made, {"metadata": {"annotations": {WINDOWS: "daily 00:00-24:00"}}})
        assert await cluster.wait_scheduled("p", within_seconds=60)


async def test_a_pod_that_found_no_room_waits_for_the_next_window() -> None:
    async with cluster_of(nodes=0, hour=4) as cluster:
        await cluster.create(pod("p", labels=BATCH))
        await trio.sleep(4 * HOUR)
        await cluster.create(node("late"))  # at 09:00 in Berlin
        await trio.sleep(HOUR)
        cluster.assert_pending("p")
        await trio.sleep(13 * HOUR)
        assert 21.0 <= hours_of(cluster, "p") < 21.01


async def test_a_restart_in_between_loses_nothing() -> None:
    async with cluster_of(hour=18) as cluster:
        await cluster.create(pod("p", labels=BATCH))
        await trio.sleep(HOUR)
        await cluster.stop_scheduler(drain_seconds=0)
        await cluster.start_scheduler()
        await trio.sleep(3 * HOUR)
        assert 21.0 <= hours_of(cluster, "p") < 21.01


async def test_random_pods_start_in_a_window_or_at_their_deadline_and_none_waits_for_ever() -> None:
    chance = Random(7)
    async with cluster_of(maxDelay="20h", nodes=3) as cluster:
        for number in range(40):
            annotations = {}
            if chance.random() < 0.5:
                annotations[WINDOWS] = (
                    f"{chance.choice(['daily', 'Thu-Fri', 'Sat'])} {chance.randint(0, 23):02}:00-05:30"
                )
            made = await cluster.create(pod(f"p{number}", cpu="10m", labels=BATCH, annotations=annotations))
            if chance.random() < 0.1:
                await cluster.delete(made)
            await trio.sleep(chance.uniform(0, 1800))
        await trio.sleep(21 * HOUR)
        assert len(cluster.pods()) > 30
        plugin = cluster.plugin("TimeWindows")
        for one in cluster.pods():
            assert one.node_name, one.name
            created = datetime.fromisoformat(one.metadata.creation_timestamp or "").timestamp()
            bound = hours_of(cluster, one.name) * HOUR + datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()
            schedule_of, _problem = plugin._schedule((one.metadata.annotations or {}).get(WINDOWS), one)
            assert schedule_of.opens_at(bound) is None or bound - created >= 20 * HOUR - 1


@pytest.mark.parametrize(
    ("wrong", "said"), [({"windows": ("22-6",)}, "windows: '22-6' is no window"), ({"time_zone": "X"}, "no time zone")]
)
def test_arguments_are_checked_with_their_place(wrong: dict[str, Any], said: str) -> None:
    assert TimeWindows.Args(windows=("22:00-06:00",)).time_zone == "UTC"
    with pytest.raises(ValueError, match=said):
        TimeWindows.Args(**wrong)
