"""Replicas that share the work on a real control plane, with a few faults, by ``contrib/sharding/real``."""

import sys
from pathlib import Path

import pytest
import trio
from real_servers import ASSETS

from contrib.control_plane.servers import Assets
from contrib.sharding.real.run import Options, Report, run


@pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
@pytest.mark.parametrize("by_label", [False, True])
def test_kills_stops_and_partitions_break_no_rule_and_leave_nothing_to_place(tmp_path: Path, by_label: bool) -> None:
    assets, reports = Assets(Path(ASSETS).resolve()), list[Report]()

    async def share() -> None:
        reports.append(await run(assets, tmp_path, Options(faults=5, seed=3, quiet_seconds=17.0, by_label=by_label)))

    trio.run(share)
    (report,) = reports
    print(*report.lines(), sep="\n", file=sys.stderr)
    assert report.problems == []
    assert report.faults.total() == 5
    assert report.bound > 100
    assert report.nominated > 10
