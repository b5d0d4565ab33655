"""Which shard a node belongs to."""

from collections import Counter

import pytest

from trio_sched.engine.sharding.ownership import fair_share, shard_of

NODES = [f"node-{number}" for number in range(4000)]


def test_shards_get_about_equally_many_nodes() -> None:
    counts = Counter(shard_of(name, 8) for name in NODES)
    assert sorted(counts) == list(range(8))
    assert max(counts.values()) < 1.2 * len(NODES) / 8


def test_one_shard_more_takes_nodes_from_all_others_and_moves_no_other() -> None:
    moved = {name: (shard_of(name, 8), shard_of(name, 9)) for name in NODES}
    assert {now for before, now in moved.values() if before != now} == {8}
    assert {before for before, now in moved.values() if before != now} == set(range(8))


def test_a_node_keeps_its_shard() -> None:
    assert [shard_of(f"node-{number}", 4) for number in range(12)] == [2, 2, 2, 3, 2, 1, 1, 0, 2, 2, 1, 0]


@pytest.mark.parametrize(
    ("shards", "replicas", "share"), [(8, 1, 8), (8, 3, 3), (8, 8, 1), (3, 8, 1), (0, 2, 1), (4, 0, 4)]
)
def test_replicas_share_evenly(shards: int, replicas: int, share: int) -> None:
    assert fair_share(shards, replicas) == share
