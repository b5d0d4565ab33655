"""Replays recorded decisions of every area: each plugin on its own, whole cycles, PostFilter.

Cases that hang on a plugin of a later issue are counted as not agreed and don't fail; everything else must agree, in
every area. The areas ``cli`` and ``http`` are about the process and its port and have replays of their own.
"""

from typing import Final

import pytest
from decision_replay import CaseReplay
from scoreboard import GoldenRun

CHUNKS: Final = 2
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


@pytest.mark.parametrize("chunk", range(CHUNKS))
@pytest.mark.parametrize("area", AREAS)
def test_pods_are_decided_as_kube_scheduler_decided_them(golden: GoldenRun, area: str, chunk: int) -> None:
    for case in golden.cases(area, chunk=chunk, chunks=CHUNKS, sample=40):
        for compared in CaseReplay(case).rows():
            compared.count(golden, area)
    golden.check()


def test_recordings_of_every_area_are_at_hand(golden: GoldenRun) -> None:
    if not golden.everything:
        assert [area for area in (*AREAS, "podgroup", "queue", "hints") if not golden.has(area)] == []
