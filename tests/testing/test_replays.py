"""Recordings as regression tests of plugins."""

from pathlib import Path
from typing import Any

import trio

from trio_sched.simulator import jumping_clock
from trio_sched.testing import pod, replayed_cluster, virtual_cluster


def test_the_fixture_is_the_function(request: Any) -> None:
    assert request.getfixturevalue("replayed_cluster") is replayed_cluster


def test_what_a_test_has_recorded_is_replayed(tmp_path: Path) -> None:
    async def run() -> None:
        async with virtual_cluster(nodes=3, record=tmp_path) as cluster:
            await cluster.create(pod("web"))
            await cluster.settle()
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())
    result = replayed_cluster(tmp_path)
    assert (result.decisions, result.differences) == (1, [])
