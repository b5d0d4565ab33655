"""Changes that no decision can depend on, and some that look like such and are not."""

from typing import TypeVar

import pytest
from msgspec import structs

from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.recording.unread_changes import UnreadChanges
from trio_sched.testing import node, pod

T = TypeVar("T", Pod, Node)
RUNS = pod("runs", node_name="n")


def with_version(one: T, version: str) -> T:
    return structs.replace(one, metadata=structs.replace(one.metadata, resource_version=version))


def with_conditions(one: Pod, *statuses: tuple[str, str]) -> Pod:
    conditions = tuple(PodCondition(type_, status) for type_, status in statuses)
    return structs.replace(one, status=structs.replace(one.status, conditions=conditions))


def is_read(old: Pod | Node, new: Pod | Node, *, reads_all_conditions: bool = False) -> bool:
    return UnreadChanges(reads_all_conditions).is_read(Change("MODIFIED", old, new))


def test_another_version_alone_is_read_only_of_pods_that_wait() -> None:
    objects = pod("waits"), RUNS, node("n")
    assert [is_read(one, with_version(one, "7")) for one in objects] == [True, False, False]


@pytest.mark.parametrize(
    ("type_", "expected"),
    [("Ready", False), ("DisruptionTarget", True), ("PodResizePending", True), ("PodScheduled", True)],
)
def test_conditions_that_only_other_packages_can_read_are_read_by_these(type_: str, expected: bool) -> None:
    was = with_conditions(RUNS, ("Initialized", "True"), (type_, "False"))
    now = with_conditions(was, ("Initialized", "True"), (type_, "True"))
    assert is_read(was, now) == expected
    assert is_read(was, now, reads_all_conditions=True)


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ((("Ready", "True"), ("PodScheduled", "True")), False),
        ((("PodScheduled", "True"),), False),
        ((("Ready", "True"),), True),
        ((("Ready", "True"), ("DisruptionTarget", "True"), ("PodScheduled", "True")), True),
        ((("Ready", "True"), ("Initialized", "True"), ("PodScheduled", "True")), False),
        ((("Ready", "False"), ("DisruptionTarget", "True")), True),
        ((), True),
    ],
)
def test_conditions_that_come_and_go_are_read_by_their_types(now: tuple[tuple[str, str], ...], expected: bool) -> None:
    was = with_conditions(RUNS, ("Ready", "False"), ("PodScheduled", "True"))
    assert is_read(was, with_conditions(was, *now)) == expected


def test_what_else_is_different_is_read() -> None:
    others = {
        "status": structs.replace(RUNS, status=structs.replace(RUNS.status, phase="Failed")),
        "labels": structs.replace(RUNS, metadata=structs.replace(RUNS.metadata, labels={"app": "x"})),
        "spec": structs.replace(RUNS, spec=structs.replace(RUNS.spec, priority=7)),
    }
    assert {name: is_read(RUNS, other) for name, other in others.items()} == dict.fromkeys(others, True)
    same_spec = structs.replace(RUNS, spec=structs.replace(RUNS.spec))
    assert not is_read(RUNS, same_spec)
    assert is_read(node("n", cpu="8"), node("n", cpu="16"))
    assert UnreadChanges().is_read(Change("ADDED", None, RUNS))
    assert UnreadChanges().is_read(Change("DELETED", RUNS, RUNS))
