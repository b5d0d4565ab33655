"""``python -m contrib.soak``: a hundred thousand pods and ten thousand nodes come and go."""

from __future__ import annotations

import argparse
import sys

from contrib.soak.run import Report, soak
from contrib.soak.workload import Size
from trio_sched.objects import sharing

MAX_SHARED_VALUES = 100


def main() -> int:
    """Run it and print what was measured; 1 if something has grown."""
    parser = argparse.ArgumentParser(prog="python -m contrib.soak", description=__doc__)
    parser.add_argument("--waves", type=int, default=500, metavar="N", help="waves of nodes and pods (default: 500)")
    parser.add_argument("--nodes", type=int, default=20, metavar="N", help="nodes of each wave (default: 20)")
    parser.add_argument("--pods", type=int, default=200, metavar="N", help="pods of each wave (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of everything random (default: 0)")
    given = parser.parse_args()
    # These tables take in few values per wave: with their own limit some are full only after the soak.
    sharing._MAX_VALUES = MAX_SHARED_VALUES
    report = soak(Size(given.waves, given.nodes, given.pods), seed=given.seed)
    _print(report)
    return 1 if report.grown() else 0


def _print(report: Report) -> None:
    print(f"{report.pods:,} pods ({report.bound:,} bound) and {report.nodes:,} nodes in {report.seconds:,.0f} s\n")
    print(f"{'wave':>6} {'entries':>9} {'decision':>12} {'memory blocks':>14}")
    for sample in report.samples:
        entries = sum(sample.sizes.values())
        print(f"{sample.wave:6} {entries:9,} {sample.decision_seconds * 1e6:9,.0f} µs {sample.blocks:14,}")
    for path, (before, after) in sorted(report.grown().items()):
        print(f"grown: {path} from {before:,} to {after:,} entries", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
