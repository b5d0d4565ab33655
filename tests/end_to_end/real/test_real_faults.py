"""Some of the faults of ``make faults`` on a real control plane, without kube-scheduler beside it."""

import sys
from pathlib import Path

import pytest
import trio
from real_servers import ASSETS

from contrib.control_plane.servers import Assets
from contrib.faults.__main__ import outcome_of
from contrib.faults.cluster import TRIO_SCHED, cluster
from contrib.faults.faults import FAULTS, Fault
from contrib.faults.table import Outcome

NAMES = (
    "connections reset for 5 s",
    "refused for 5 s, four times",
    "half-open, pods come and go",
    "all silent for 10 s, later only new connections work",
    "history compacted and restarted (410)",
    "certificate replaced, its authority 5 s later",
    "throttled: 429 for 8 s",
    "suspended between a bind and its response",
)


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
def test_a_new_pod_is_bound_soon_after_each_fault_and_nothing_is_left_over(tmp_path: Path) -> None:
    assets, outcomes = Assets(Path(ASSETS).resolve()), dict[Fault, Outcome]()

    async def run() -> None:
        async with cluster(assets, tmp_path, TRIO_SCHED, seed=1) as here:
            for fault in [fault for fault in FAULTS if fault.name in NAMES]:
                outcomes[fault] = await outcome_of(here, fault)

    trio.run(run)
    assert len(outcomes) == len(NAMES)
    print(*(f"{fault.name}: {outcome}" for fault, outcome in outcomes.items()), sep="\n", file=sys.stderr)
    assert {fault.name: outcome.problems for fault, outcome in outcomes.items() if outcome.problems} == {}
    # What else the machine does is not known; that nothing waits for a backoff of half a minute is shown all the same.
    slow = [fault.name for fault, outcome in outcomes.items() if outcome.slowest > 3 * fault.limit_seconds]
    assert slow == []
