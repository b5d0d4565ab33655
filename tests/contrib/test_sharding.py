"""Schedulers that share the nodes of a cluster: the rules hold under faults, and each of them is needed."""

import subprocess
import sys

import pytest
from attrs import evolve

from contrib.sharding.protocol import Protocol
from contrib.sharding.run import Size, run

LATE = Size(nodes=6, zones=1, pods=90, owners=30, bursts=3, load_seconds=40, faults=5, stuck=0.4)
NEEDED = [
    (Protocol(guards_writes=False), evolve(LATE, faults=6, stuck=0.02), 224, "3000 of 2000 millicores"),
    (Protocol(binds_with_version=False), LATE, 14, "4250 of 4000 millicores"),
    (Protocol(fences=False), LATE, 31, "4500 of 4000 millicores"),
    (
        Protocol(awaits_terms=False),
        Size(nodes=8, zones=4, replicas=2, pods=30, owners=6, bursts=3, load_seconds=40, faults=0, stuck=0.2),
        357,
        "pod-11 is in zone-2, too",
    ),
]
"""Protocols with a rule less, clusters, seeds, and what goes wrong there."""


def test_whatever_fails_no_node_is_full_no_rule_is_broken_and_nobody_waits_for_nothing() -> None:
    results = {seed: run(seed) for seed in range(8)}
    assert {seed: result for seed, result in results.items() if not result.is_good} == {}
    assert sum(result.bound for result in results.values()) > 300
    assert sum(len(result.other_seconds) for result in results.values()) > 100


@pytest.mark.parametrize(("protocol", "size", "seed", "problem"), NEEDED)
def test_without_one_of_the_rules_something_goes_wrong(protocol: Protocol, size: Size, seed: int, problem: str) -> None:
    assert problem in run(seed, protocol, size).problems[0]
    assert run(seed, None, size).is_good


def test_without_faults_a_pod_for_another_shard_is_bound_nearly_as_fast_as_one_at_home() -> None:
    quiet = [run(seed, None, Size(nodes=40, faults=0, stuck=0.0)) for seed in range(6)]
    at_home, others = (
        sorted(seconds for one in quiet for seconds in getattr(one, name))
        for name in ("local_seconds", "other_seconds")
    )
    assert len(at_home) > 500
    assert len(others) > 50
    assert others[len(others) // 2] <= 2.5 * at_home[len(at_home) // 2]


def test_equal_seeds_give_equal_runs_in_every_process() -> None:
    code = "from contrib.sharding.run import run; print(run(3))"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert found == {f"{run(3)}\n"}
