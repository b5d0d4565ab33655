"""Replays recorded attempts to schedule pod groups."""

import pytest
from group_replay import GroupReplay
from scoreboard import GoldenRun


@pytest.mark.parametrize("chunk", range(2))
def test_pod_groups_are_scheduled_as_kube_scheduler_scheduled_them(golden: GoldenRun, chunk: int) -> None:
    for case in golden.cases("podgroup", chunk=chunk, chunks=2, sample=20):
        for compared in GroupReplay(case).rows():
            compared.count(golden, "podgroup")
    golden.check()
