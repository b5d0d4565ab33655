"""``python -m contrib.sharding.real``: real replicas that share the work, and faults, on ``KUBEBUILDER_ASSETS``."""

from __future__ import annotations

import argparse
import sys
import tempfile
from functools import partial
from pathlib import Path

import trio

from contrib.control_plane.servers import AssetsMissing, find_assets
from contrib.sharding.real.run import Options, run


def main() -> int:
    """Run it; 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="python -m contrib.sharding.real", description=__doc__)
    parser.add_argument("--faults", type=int, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of faults and pods (default: 1)")
    parser.add_argument("--replicas", type=int, default=3, metavar="N", help="processes (default: 3)")
    parser.add_argument("--shards", type=int, default=4, metavar="N", help="(default: 4)")
    parser.add_argument("--by-label", action="store_true", help="a label brings nodes into other shards meanwhile")
    parser.add_argument("--folder", type=Path, help="an empty folder that keeps the logs")
    given = parser.parse_args()
    try:
        assets = find_assets()
    except AssetsMissing as problem:
        parser.error(str(problem))
    options = Options(
        faults=given.faults,
        seed=given.seed,
        replicas=given.replicas,
        shards=given.shards,
        by_label=given.by_label,
    )
    with tempfile.TemporaryDirectory(prefix="trio-sched-sharding-") as name:
        folder = given.folder or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        report = trio.run(run, assets, folder, options, partial(print, file=sys.stderr, flush=True))
    print(*report.lines(), sep="\n")
    return 1 if report.problems else 0


raise SystemExit(main())
