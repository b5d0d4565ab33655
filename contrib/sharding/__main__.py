"""``python -m contrib.sharding``: random clusters with faults, and whether what must hold holds."""

from __future__ import annotations

import argparse
import statistics
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from contrib.sharding.cost import table
from contrib.sharding.run import Result, run


def main() -> int:
    """Run them; 1 if something is wrong in one."""
    parser = argparse.ArgumentParser(prog="python -m contrib.sharding", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first one (default: 0)")
    parser.add_argument("--cost", action="store_true", help="print what a pod costs each of 1 to 8 processes instead")
    given = parser.parse_args()
    if given.cost:
        print(*table(runs=4), sep="\n")
        return 0
    seeds = range(given.seed, given.seed + given.runs)
    with ProcessPoolExecutor() as pool:
        results = dict(zip(seeds, pool.map(run, seeds, chunksize=10), strict=True))
    for seed, result in results.items():
        for problem in result.problems:
            print(f"seed {seed}: {problem}")
        if result.unplaced:
            print(f"seed {seed}: {len(result.unplaced)} pods that have a place wait: {', '.join(result.unplaced[:5])}")
    bad = sum(not result.is_good for result in results.values())
    print(f"{len(results)} runs, {bad} of them bad; {sum(one.bound for one in results.values())} pods were bound")
    wasted: Counter[str] = Counter()
    for result in results.values():
        wasted.update(dict(result.wasted))
    print(
        f"{sum(one.evicted for one in results.values())} pods were evicted; on nodes that the other pod did not get"
        f" because it was {', '.join(f'{why}: {count}' for why, count in sorted(wasted.items())) or '…: none'}"
    )
    print(
        f"{sum(one.allocated for one in results.values())} claims have a device,"
        f" {sum(one.groups for one in results.values())} groups run"
    )
    print(f"from creation to bind: bound by who decided {_seconds(results.values(), 'local_seconds')}")
    print(f"  by way of a nomination {_seconds(results.values(), 'other_seconds')}")
    return 1 if bad else 0


def _seconds(results: Iterable[Result], name: str) -> str:
    found = sorted(seconds for result in results for seconds in getattr(result, name))
    if len(found) < 2:
        return "none"
    return (
        f"p50 {statistics.median(found):.3f} s, p99 {found[int(0.99 * (len(found) - 1))]:.1f} s, of {len(found)} pods"
    )


if __name__ == "__main__":
    sys.exit(main())
