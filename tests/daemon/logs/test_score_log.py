import pytest
from trio.testing import MockClock

from trio_sched.daemon.logs import score_log
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import virtual_cluster
from trio_sched.verbosity import V9, V10


async def lines(caplog: pytest.LogCaptureFixture, level: int) -> tuple[list[dict[str, object]], dict[str, str]]:
    """What is logged about the scores of two equal pods, and where the pods are."""
    caplog.set_level(level, score_log.log.name)
    async with virtual_cluster(nodes=[node("small", cpu=4), node("large", cpu=64)]) as cluster:
        await cluster.create(pod("a", cpu=1))
        await cluster.create(pod("b", cpu=1))
        await cluster.settle()
        return [vars(one) for one in caplog.records if one.name == score_log.log.name], cluster.placements()


async def test_the_scores_of_every_node_are_logged_for_every_pod(
    caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    records, placements = await lines(caplog, V10)
    assert [(one["pod"], one["node"]) for one in records] == [
        (f"default/{name}", where) for name in "ab" for where in ("large", "small")
    ]
    for one in records:
        plugins = one["plugins"]
        assert isinstance(plugins, dict)
        assert sum(plugins.values()) == one["score"]
        assert "NodeResourcesFit" in plugins
    assert set(placements.values()) == {"large"}


async def test_below_level_10_they_are_not(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    records, placements = await lines(caplog, V9)
    assert records == []
    assert set(placements.values()) == {"large"}


async def test_of_many_nodes_the_best_are_logged(caplog: pytest.LogCaptureFixture, autojump_clock: MockClock) -> None:
    caplog.set_level(V10, score_log.log.name)
    async with virtual_cluster(nodes=score_log.MAX_NODES + 5) as cluster:
        await cluster.create(pod("a"))
        await cluster.settle()
    *nodes, last = (vars(one) for one in caplog.records if one.name == score_log.log.name)
    assert len(nodes) == score_log.MAX_NODES
    assert (last["message"], last["nodes"]) == ("More nodes were scored", 5)
