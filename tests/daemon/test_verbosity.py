"""What the daemon logs at which verbosity."""

import logging

import pytest
from trio.testing import MockClock

from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.verbosity import V0, level_of, verbosity_of

EXPECTED = {
    "Caches populated": 2,
    "Handlers synced": 3,
    "Add event for node": 3,
    "Add event for unscheduled pod": 3,
    "Update event for scheduled pod": 3,
    "Delete event for scheduled pod": 3,
    "Attempting to schedule pod": 3,
    "Attempting to bind pod to node": 3,
    "Successfully bound pod to node": 2,
    "Unable to schedule pod; no fit; waiting": 2,
    "Updating pod condition": 3,
    "Pod moved to an internal scheduling queue": 5,
    "the target node for the preemption is determined": 2,
    "Start the preemption asynchronously": 2,
    "Preemptor Pod preempted victim Pod": 2,
    "Async Preemption finished completely": 2,
    "Response": 9,
}


async def history(caplog: pytest.LogCaptureFixture, verbosity: int) -> dict[str, int]:
    """The lines about pods that are bound, wait, and preempt: each text with its verbosity."""
    caplog.set_level(level_of(verbosity), "trio_sched")
    async with virtual_cluster(nodes=[node("n", cpu=2)]) as cluster:
        await cluster.create(pod("victim", cpu=2))
        await cluster.settle()
        await cluster.create(pod("waits", cpu=2))
        await cluster.create(pod("first", cpu=2, priority=10))
        await cluster.settle()
        assert cluster.placements()["default/first"] == "n"
    ours = [record for record in caplog.records if record.name.startswith("trio_sched.") and record.levelno <= V0]
    return {record.getMessage(): verbosity_of(record.levelno) for record in ours}


async def test_each_line_has_kube_schedulers_verbosity(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    logged = await history(caplog, 10)
    assert {text: logged.get(text) for text in EXPECTED} == EXPECTED


@pytest.mark.parametrize("verbosity", [0, 2, 3, 5])
async def test_lines_of_higher_levels_are_not_logged(
    verbosity: int, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    logged = await history(caplog, verbosity)
    assert max(logged.values(), default=0) <= verbosity
    assert {text for text, level in EXPECTED.items() if level <= verbosity} <= logged.keys()


async def test_the_line_about_an_attempt_says_all_of_it(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    caplog.set_level(level_of(2), "trio_sched")
    async with virtual_cluster(nodes=1) as cluster:
        await cluster.create(pod("p", cpu=999))
        await cluster.settle()
        await cluster.create(node("large", cpu=1000))
        await cluster.settle()
    bound = next(vars(one) for one in caplog.records if one.getMessage() == "Successfully bound pod to node")
    waits = next(vars(one) for one in caplog.records if one.getMessage().startswith("Unable to schedule pod"))
    assert (waits["pod"], waits["attempts"]) == ("default/p", 1)
    assert "Insufficient cpu" in waits["err"]
    assert (bound["pod"], bound["node"], bound["attempts"]) == ("default/p", "large", 2)
    assert (bound["evaluatedNodes"], bound["feasibleNodes"]) == (2, 1)
    assert bound["secondsSinceFirstAttempt"] > 0
    assert logging.getLevelName(level_of(2)) == bound["levelname"]
