"""Replays recorded traces of the scheduling queue, state by state after every step.

Traces without profiles of their own are driven by the plugins of the default profile.
"""

from typing import Final

import pytest
from queue_replay import TraceReplay
from scoreboard import GoldenRun

CHUNKS: Final = 2


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_queue_goes_through_recorded_states(golden: GoldenRun, chunk: int) -> None:
    for case in golden.cases("queue", chunk=chunk, chunks=CHUNKS, sample=200):
        differences = [f"{case['name']} {line}" for line in TraceReplay(case).disagreements()]
        golden.record("queue", "trace", not differences, "; ".join(differences[:3]))
    golden.check()
