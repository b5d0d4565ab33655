import pytest
from trio.testing import MockClock

from trio_sched.daemon.logs import queue_log
from trio_sched.testing import pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.verbosity import V4, V5


async def moves(caplog: pytest.LogCaptureFixture, level: int) -> list[tuple[str, str, str]]:
    """The pod, the event and the queue of every line about a pod that fits nowhere, and about one that fits."""
    caplog.set_level(level, queue_log.log.name)
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("huge", cpu=999))
        await cluster.create(pod("small"))
        await cluster.settle()
    records = [vars(record) for record in caplog.records if record.name == queue_log.log.name]
    return [(record["pod"], record["event"], record["queue"]) for record in records]


async def test_the_moves_of_pods_are_logged_at_level_5(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    seen = await moves(caplog, V5)
    assert seen[:2] == [(f"default/{name}", "UnschedulablePodAdd", "Active") for name in ("huge", "small")]
    assert ("default/huge", "ScheduleAttemptFailure", "Unschedulable") in seen


async def test_below_that_they_are_not(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    assert await moves(caplog, V4) == []
