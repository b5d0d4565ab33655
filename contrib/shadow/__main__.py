"""``python -m contrib.shadow``: a shadow beside a scheduler on a real control plane, from ``KUBEBUILDER_ASSETS``."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import trio

from contrib.benchmarks.scheduler_process import TRIO_SCHED
from contrib.control_plane.servers import AssetsMissing, find_assets
from contrib.shadow.run import Options, run


def main() -> int:
    """Run it; returns the exit code of the shadow: 1 if a decision differs."""
    parser = argparse.ArgumentParser(prog="python -m contrib.shadow", description=__doc__)
    parser.add_argument("--beside", choices=("kube-scheduler", "trio-sched"), default="kube-scheduler")
    parser.add_argument("--nodes", type=int, default=90, help="from 100 on kube-scheduler may look at some only")
    parser.add_argument("--pods", type=int, default=2000, help="how many are created, one after the other")
    parser.add_argument("--alive", type=int, default=12, help="pods per node above which others are deleted")
    parser.add_argument("--rate", type=float, default=100.0, help="pods per second")
    parser.add_argument("--seconds", type=float, default=600.0, help="after which no more pods are created")
    parser.add_argument("--qps", type=float, default=5000.0, help="of the scheduler's client")
    parser.add_argument("--percentage", type=int, default=0, help="percentageOfNodesToScore of both")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--report", type=Path, help="where to write the shadow's report as JSON")
    parser.add_argument("--log", type=Path, help="where to write the shadow's log")
    given = parser.parse_args()
    try:
        assets = find_assets()
    except AssetsMissing as problem:
        parser.error(str(problem))
    command = TRIO_SCHED if given.beside == "trio-sched" else (str(assets.kube_scheduler),)
    options = Options(
        command=command,
        nodes=given.nodes,
        pods=given.pods,
        alive=given.alive * given.nodes,
        rate=given.rate,
        seconds=given.seconds,
        qps=given.qps,
        percentage=given.percentage,
        seed=given.seed,
    )
    with tempfile.TemporaryDirectory(prefix="trio-sched-shadow-") as name:
        folder = Path(name)
        outcome = trio.run(run, assets, folder, options)
        print(outcome.table)
        print(outcome.summary)
        if given.report is not None:
            given.report.write_bytes(outcome.report)
        if given.log is not None:
            given.log.write_text(outcome.log)
    return outcome.exit_code


raise SystemExit(main())
