"""Replays recorded traces of the scheduling queue, state by state after every step.

Traces named ``real-*`` are driven by the whole default profile; they wait for the plugins that it still lacks.
"""

from typing import Final

import pytest
from queue_replay import TraceReplay
from scoreboard import GoldenRun

CHUNKS: Final = 2


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_queue_goes_through_recorded_states(golden: GoldenRun, chunk: int) -> None:
    for case in golden.cases("queue", chunk=chunk, chunks=CHUNKS, sample=200):
        if case["name"].startswith("real-"):
            golden.record(
                "queue", "trace", False, f"{case['name']}: needs plugins of the default profile", awaited=True
            )
            continue
        differences = [f"{case['name']} {line}" for line in TraceReplay(case).disagreements()]
        golden.record("queue", "trace", not differences, "; ".join(differences[:3]))
    golden.verify()
