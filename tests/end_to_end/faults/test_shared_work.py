"""Replicas that share the work are killed, stopped and cut off under load; requests arrive after their senders died.

More runs, on a machine with time::

    SHARDING_SEEDS=0-1000 pytest tests/end_to_end/faults/test_shared_work.py
"""

import os

import pytest
from random_faults import RandomFaults
from trio.testing import MockClock

SEEDS = (20, 60, 122, 130, 187, 902, 1044, 2113, 2125)
"""Runs of some seconds: with evictions, pods that are refused, given up and fenced; with devices and volumes; with
gangs, with and without rules and claims; with a pod that is evicted while its device is being allocated; with two that
lose their places just before others are evicted for them; with an extender and extended resources. In all of them
requests are held back."""


SEEDS_BY_LABEL = (17, 79)
"""In these a node was over its allocatable while replicas did not wait for each other when a label had changed."""


def seeds(standard: tuple[int, ...]) -> list[int]:
    first, _dash, end = os.environ.get("SHARDING_SEEDS", "").partition("-")
    return list(range(int(first), int(end))) if first else list(standard)


@pytest.mark.parametrize("seed", seeds(SEEDS))
async def test_whatever_fails_no_node_is_overcommitted_and_no_pod_forgotten(
    seed: int, autojump_clock: MockClock
) -> None:
    run = RandomFaults(seed)
    await run.run()
    assert run.placed
    assert run.placed_later == {} or not run.places_all


@pytest.mark.parametrize("seed", seeds(SEEDS_BY_LABEL))
async def test_so_it_is_while_a_label_brings_nodes_into_other_shards(seed: int, autojump_clock: MockClock) -> None:
    run = RandomFaults(seed, by_label=True)
    await run.run()
    assert run.placed
    assert run.placed_later == {} or not run.places_all
