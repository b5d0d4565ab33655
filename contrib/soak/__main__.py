"""``python -m contrib.soak``: a hundred thousand pods and ten thousand nodes come and go.

With ``--real``: pods, claims, groups and namespaces come and go on the API server of ``KUBEBUILDER_ASSETS``.
"""

from __future__ import annotations

import argparse
import sys

import trio

from contrib.control_plane.servers import AssetsMissing, find_assets
from contrib.soak.real import Minute, soak_real
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
    parser.add_argument("--real", action="store_true", help="a process on a real API server, in real time")
    parser.add_argument("--minutes", type=int, default=60, metavar="N", help="with --real: how long (default: 60)")
    parser.add_argument("--rate", type=int, default=20, metavar="N", help="with --real: pods per second (default: 20)")
    given = parser.parse_args()
    if given.real:
        return _real(given.minutes, given.rate, given.seed)
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


def _real(minutes: int, rate: int, seed: int) -> int:
    try:
        assets = find_assets()
    except AssetsMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    print(f"{'minute':>6} {'memory':>11} {'pods':>9} {'bound':>9} {'objects':>9}", flush=True)
    report = trio.run(soak_real, assets, minutes, rate, seed, _print_minute)
    print(f"\nbefore: {report.first_mib:.1f} MiB; {report.last_mib:.1f} MiB after all objects are deleted")
    after = f"after minute {report.settling_minutes}: {report.growth_mib:+.1f} MiB"
    print(f"{after}: {'level' if report.is_level else 'GROWS'}")
    return 0 if report.is_level else 1


def _print_minute(one: Minute) -> None:
    print(f"{one.minute:6} {one.memory_mib:7.1f} MiB {one.created:9,} {one.bound:9,} {one.alive:9,}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
