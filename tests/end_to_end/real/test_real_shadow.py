"""A shadow beside kube-scheduler, and beside ``trio-sched``, on a real control plane, by ``contrib/shadow``."""

import json
import sys
from pathlib import Path

import pytest
import trio
from real_servers import ASSETS

from contrib.benchmarks.scheduler_process import TRIO_SCHED
from contrib.control_plane.servers import Assets
from contrib.shadow.run import Options, Outcome, run


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
@pytest.mark.parametrize("beside", ["kube-scheduler", "trio-sched"])
def test_pods_of_many_kinds_are_decided_alike(beside: str, tmp_path: Path) -> None:
    assets, outcomes = Assets(Path(ASSETS).resolve()), list[Outcome]()

    async def compare() -> None:
        command = TRIO_SCHED if beside == "trio-sched" else (str(assets.kube_scheduler),)
        options = Options(
            command=command, nodes=12, pods=300, alive=170, rate=30.0, seconds=20.0, qps=5000.0, percentage=0, seed=0
        )
        outcomes.append(await run(assets, tmp_path, options))

    trio.run(compare)
    (outcome,) = outcomes
    report = json.loads(outcome.report)
    print(outcome.table, outcome.summary, sep="\n", file=sys.stderr)
    assert outcome.exit_code == 0, [one for one in report["notTheSame"] if one["class"] == "differs"]
    assert report["classes"]["same"] + report["classes"]["tie"] > 150
    assert all(sum(report["byDecision"][kind].values()) for kind in ("binding", "preemption", "refusal"))
