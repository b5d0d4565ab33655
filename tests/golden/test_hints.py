"""Replays recorded queueing hints, registrations of events, and the splitting of updates into events."""

from typing import Final

import pytest
from hint_replay import hint_rows
from scoreboard import GoldenRun

CHUNKS: Final = 4


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_events_free_the_pods_that_kube_scheduler_thinks_they_free(golden: GoldenRun, chunk: int) -> None:
    for case in golden.cases("hints", chunk=chunk, chunks=CHUNKS, sample=500):
        for compared in hint_rows(case):
            compared.count(golden, "hints")
    golden.check()
