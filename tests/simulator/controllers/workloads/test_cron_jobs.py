from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from simulated_workloads import Cluster
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.workloads.cron_times import next_time, time_zone
from trio_sched.simulator.validation.batch.cron import parse_schedule


def job(seconds: int = 10, code: int = 0) -> Json:
    annotations = {"trio-sched.dev/run-seconds": str(seconds), "trio-sched.dev/exit-code": str(code)}
    spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "app:1"}]}
    return {"spec": {"backoffLimit": 0, "template": {"metadata": {"annotations": annotations}, "spec": spec}}}


async def make(cluster: Cluster, template: Json | None = None, **spec: Any) -> None:
    spec = {"schedule": "*/5 * * * *", "jobTemplate": template or job()} | spec
    await cluster.make("cronjobs", "tick", **spec)


async def test_jobs_are_made_in_time(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster)
    await trio.sleep(299)
    assert cluster.names("jobs.batch") == []
    await trio.sleep(5)
    (made,) = cluster.stored("jobs.batch")
    minutes = int(datetime(2026, 1, 1, 0, 5, tzinfo=UTC).timestamp()) // 60
    assert made["metadata"]["name"] == f"tick-{minutes}"
    assert made["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-01T00:05:00Z"
    }
    status = await cluster.status("cronjobs", "tick")
    assert status["lastScheduleTime"] == "2026-01-01T00:05:00Z"
    assert [one["name"] for one in status["active"]] == [made["metadata"]["name"]]
    await trio.sleep(60)
    status = await cluster.status("cronjobs", "tick")
    assert "active" not in status
    assert status["lastSuccessfulTime"] > status["lastScheduleTime"]


@pytest.mark.parametrize(("policy", "active"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
async def test_jobs_that_last_too_long(cluster: Cluster, autojump_clock: MockClock, policy: str, active: int) -> None:
    await make(cluster, job(100_000), concurrencyPolicy=policy)
    await trio.sleep(905)
    assert len((await cluster.status("cronjobs", "tick"))["active"]) == active
    names = cluster.names("jobs.batch")
    assert len(names) == active
    minutes = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) // 60
    assert names[-1] == f"tick-{minutes + (5 if policy == 'Forbid' else 15)}"


async def test_the_history_is_limited(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, successfulJobsHistoryLimit=2)
    await make_failing(cluster)
    await trio.sleep(3100)
    names = cluster.names("jobs.batch")
    assert (sum(n.startswith("tick") for n in names), sum(n.startswith("fail") for n in names)) == (2, 1)


async def make_failing(cluster: Cluster) -> None:
    await cluster.make("cronjobs", "fail", schedule="*/5 * * * *", jobTemplate=job(1, code=1))


async def test_a_suspended_one_makes_no_jobs(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, suspend=True, startingDeadlineSeconds=60)
    await trio.sleep(1000)
    assert cluster.names("jobs.batch") == []
    await cluster.patch("cronjobs", "tick", {"spec": {"suspend": False}})
    await trio.sleep(1)
    assert cluster.names("jobs.batch") == []
    await trio.sleep(300)
    assert len(cluster.names("jobs.batch")) == 1


@pytest.mark.parametrize(
    ("text", "zone", "after", "expected"),
    [
        ("30 2 * * *", None, "2026-01-01T02:30:00", "2026-01-02T02:30:00"),
        ("0 9 * * 1-5", "Europe/Berlin", "2026-01-02T09:00:00", "2026-01-05T08:00:00"),
        ("0 0 13 * 5", None, "2026-01-01T12:00:00", "2026-01-02T00:00:00"),
        ("30 2 29 3 *", "Europe/Berlin", "2026-03-01T00:00:00", "2027-03-29T00:30:00"),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00", "2026-10-25T01:30:00"),
        ("0 0 30 2 *", None, "2026-01-01T00:00:00", None),
        ("@every 90s", None, "2026-01-01T00:00:00", "2026-01-01T00:01:30"),
    ],
)
def test_when_a_schedule_is_due(text: str, zone: str | None, after: str, expected: str | None) -> None:
    found = next_time(parse_schedule(text), datetime.fromisoformat(after).replace(tzinfo=UTC), time_zone(zone))
    assert (found and found.astimezone(UTC).replace(tzinfo=None).isoformat()) == expected


async def test_a_job_that_is_being_deleted_still_counts(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, job(5000), concurrencyPolicy="Forbid")
    await trio.sleep(310)
    (first,) = cluster.names("jobs.batch")
    kept = {"metadata": {"finalizers": ["example.com/wait"]}}
    await cluster.patch("jobs", first, kept)
    await cluster.remove("jobs", first)
    await trio.sleep(300)
    assert cluster.names("jobs.batch") == [first]
    assert [one["name"] for one in (await cluster.status("cronjobs", "tick"))["active"]] == [first]
    reasons = {event["reason"]: event["message"] for event in cluster.stored("events")}
    assert reasons["SuccessfulCreate"] == f"Created job {first}"
    assert reasons["JobAlreadyActive"].startswith("Not starting job because prior execution is running")
    await cluster.patch("jobs", first, {"metadata": {"finalizers": None}})
    await trio.sleep(1)
    reasons = {event["reason"]: event["message"] for event in cluster.stored("events")}
    assert reasons["MissingJob"] == f"Active job went missing: {first}"
