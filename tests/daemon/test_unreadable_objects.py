"""What no API server would store must not stop what it does store."""

import pytest
from msgspec.structs import replace
from stage import Stage
from trio.testing import MockClock

from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.node import Node
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import node, pod


def nonsense(one: Node) -> Node:
    return replace(one, status=replace(one.status, allocatable={"cpu": "lots", "pods": "10"}))


async def test_a_node_with_unreadable_resources_is_left_out_and_logged(
    stage: Stage, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    stage.delivery.pods_changed(Listed([pod("early", cpu=1, node_name="bad")], "1"))
    stage.delivery.nodes_changed(Listed([nonsense(node("bad")), node("good")], "1"))

    assert stage.cache.table.names == ["good"]
    assert "node bad is left out: quantities must match" in caplog.text

    mended = node("bad")
    stage.delivery.nodes_changed(Changes([Change("MODIFIED", nonsense(node("bad")), mended)], "2"))

    assert sorted(stage.cache.table.names) == ["bad", "good"]
    assert stage.cpu("bad") == 1000  # its pod was cached before the node


async def test_an_update_that_cannot_be_read_changes_nothing(
    stage: Stage, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    good = node("n", cpu=4)
    stage.delivery.nodes_changed(Listed([good], "1"))
    stage.delivery.nodes_changed(Changes([Change("MODIFIED", good, nonsense(good))], "2"))

    assert NodeColumns(stage.cache.table).node(0).allocatable("cpu") == 4000
    assert "node n is left out" in caplog.text


async def test_a_running_pod_with_unreadable_requests_is_left_out_and_the_others_are_not(
    stage: Stage, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    stage.delivery.nodes_changed(Listed([node("n")], "1"))
    bad, good = pod("bad", node_name="n"), pod("good", cpu=1, node_name="n")
    spec = replace(bad.spec, overhead={"cpu": "much"})
    stage.delivery.pods_changed(Listed([replace(bad, spec=spec), good], "1"))

    assert stage.cpu("n") == 1000
    assert "pod default/bad is left out" in caplog.text
