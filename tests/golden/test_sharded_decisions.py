"""Recorded scenes, scheduled by replicas that share the work: they find what kube-scheduler has found alone."""

from typing import Final

import pytest
from scoreboard import GoldenRun
from sharded_replay import REPLICAS, ShardedReplay, waits_with_nomination
from trio.testing import MockClock

AREAS: Final = (
    "noderesources",
    "nodeaffinity",
    "tainttoleration",
    "nodebasics",
    "gates",
    "podtopologyspread",
    "interpodaffinity",
    "volumes",
    "preemption",
    "dynamicresources",
    "config",
    "combo",
    "mixed",
)


@pytest.mark.parametrize("shards", REPLICAS)
@pytest.mark.parametrize("area", AREAS)
async def test_replicas_place_and_refuse_pods_as_one_scheduler_does(
    golden: GoldenRun, area: str, shards: int, autojump_clock: MockClock
) -> None:
    for case in golden.cases(area, sample=1):
        if not waits_with_nomination(case):
            for compared in await ShardedReplay(case, shards).rows():
                compared.count(golden, f"{area} with {shards} shards")
    golden.check()
