import pytest
from msgspec.structs import replace
from stage import MakeStage, Stage, picky_plugin
from trio.testing import MockClock

from trio_sched.objects.changes import Change, Changes
from trio_sched.objects.node import Node
from trio_sched.plugin_api import Action, Resource
from trio_sched.testing import node, pod
from trio_sched.testing.builders import taint

PICKY = pod("waiting", labels={"picky": "yes"})


def annotated(one: Node, **annotations: str) -> Node:
    return replace(one, metadata=replace(one.metadata, annotations=annotations))


async def test_a_new_node_requeues_pods_that_wait_for_resources(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("small", cpu=1))
    (waiting,) = stage.refuse(pod("waiting", cpu=2))
    stage.add(node("still-too-small", cpu=1))
    assert stage.where(waiting) == "unschedulable"
    stage.add(node("large", cpu=4))
    assert stage.where(waiting) == "backoff"
    assert set(stage.cache.table.row_of) == {"small", "still-too-small", "large"}


async def test_more_allocatable_resources_requeue_pods_that_wait_for_resources(
    stage: Stage, autojump_clock: MockClock
) -> None:
    (small,) = stage.add(node("n", cpu=1))
    (waiting,) = stage.refuse(pod("waiting", cpu=2))
    stage.update(small, node("n", cpu=4))
    assert stage.where(waiting) == "backoff"
    stage.queue.flush_backoff(now=100.0)
    stage.attempt()
    assert stage.cpu("n") == 2000


async def test_a_node_without_its_taint_requeues_pods_that_did_not_tolerate_it(
    stage: Stage, autojump_clock: MockClock
) -> None:
    (tainted,) = stage.add(node("n", taints=["broken:NoSchedule"]))
    (waiting,) = stage.refuse(pod("waiting"))
    stage.update(tainted, node("n"))
    assert stage.where(waiting) == "backoff"


async def test_each_changed_property_of_a_node_is_an_event(staged: MakeStage, autojump_clock: MockClock) -> None:
    stage = staged(picky_plugin((Resource.NODE, Action.UPDATE_NODE_ANNOTATION)))
    (old,) = stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    old = stage.update(old, replace(old, spec=replace(old.spec, taints=(taint("a=b:NoExecute"),))))
    assert stage.where(waiting) == "unschedulable"
    stage.update(old, annotated(replace(old, spec=replace(old.spec, taints=None)), a="b"))
    assert stage.where(waiting) == "backoff"


async def test_a_heartbeat_of_a_node_moves_no_pods(staged: MakeStage, autojump_clock: MockClock) -> None:
    stage = staged(picky_plugin((Resource.NODE, Action.ALL)))
    (old,) = stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    stage.update(old, old)
    assert stage.where(waiting) == "unschedulable"


@pytest.mark.parametrize(("is_enabled", "expected"), [(True, "backoff"), (False, "unschedulable")])
async def test_declared_features_are_an_event_only_with_their_gate(
    staged: MakeStage, is_enabled: bool, expected: str, autojump_clock: MockClock
) -> None:
    listening = picky_plugin((Resource.NODE, Action.UPDATE_NODE_DECLARED_FEATURE))
    stage = staged(listening, gates={"NodeDeclaredFeatures": is_enabled})
    (old,) = stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    stage.update(old, node("n", declared_features=["Resize"]))
    assert stage.where(waiting) == expected


async def test_a_deleted_node_requeues_pods_that_wait_for_it_and_is_not_chosen(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin((Resource.NODE, Action.DELETE)))
    first, second = stage.add(node("first"), node("second"))
    (waiting,) = stage.refuse(PICKY)
    stage.delete(first)
    stage.delivery.nodes_changed(Changes([Change("DELETED", None, second)], "1"))
    assert stage.where(waiting) == "backoff"
    assert len(stage.cache.table.row_of) == 0


async def test_pods_of_a_node_deleted_and_added_again_count_again(stage: Stage, autojump_clock: MockClock) -> None:
    (here,) = stage.add(node("n"))
    stage.add(pod("p", cpu=1, node_name="n"))
    stage.delete(here)
    stage.add(node("n"))
    assert stage.cpu("n") == 1000


async def test_a_node_recreated_under_the_same_name_is_cached_as_it_is_now(
    stage: Stage, autojump_clock: MockClock
) -> None:
    (old,) = stage.add(node("n", cpu=1))
    stage.add(pod("runs", cpu="500m", node_name="n"))
    (waiting,) = stage.refuse(pod("waiting", cpu=2))
    new = stage.stamp(node("n", cpu=8))
    stage.delivery.nodes_changed(
        Changes([Change("DELETED", old, None), Change("ADDED", None, new)], "9", relisted=True)
    )
    assert stage.where(waiting) == "backoff"
    stage.queue.flush_backoff(now=100.0)
    stage.attempt()
    assert stage.cpu("n") == 2500


async def test_the_deletion_of_an_unknown_node_is_logged(
    stage: Stage, caplog: pytest.LogCaptureFixture, autojump_clock: MockClock
) -> None:
    stage.delete(node("n"))
    assert "Scheduler cache: node n is not found" in caplog.text
