"""Objects and changes as records have them: also what is patched or like another one has no secrets."""

from typing import TypeVar

import msgspec
import pytest
from msgspec import structs

from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.recording.object_encoder import ObjectEncoder
from trio_sched.recording.pod_patch import patched
from trio_sched.recording.records import PATCHED
from trio_sched.recording.redaction import Redaction
from trio_sched.testing import node, pod

SECRET = "hunter2"


def test_annotations_of_pods_are_not_written_whatever_becomes_of_them() -> None:
    encoder = ObjectEncoder(Redaction())
    old = pod("p", annotations={"note": SECRET})
    new = structs.replace(old, metadata=structs.replace(old.metadata, labels={"app": "x"}, resource_version="2"))
    other = pod("q", labels={"app": "y"}, annotations={"note": SECRET})
    made = [
        *encoder.encode_changes(
            "Pod", [Change("ADDED", None, old), Change("MODIFIED", old, new), Change("DELETED", new, None)]
        ),
        encoder.encode("Pod", other),
        encoder.templates.take_new(),
    ]
    written = msgspec.json.encode(made).decode()
    assert SECRET not in written
    assert '"app":"x"' in written
    assert [change[0] for change in made[:3]] == ["ADDED", PATCHED, "DELETED"]


def test_other_objects_are_written_as_they_are() -> None:
    small, large = node("n", cpu="8"), node("n", cpu="16")
    ((kind, raw),) = ObjectEncoder(Redaction()).encode_changes("Node", [Change("MODIFIED", small, large)])
    assert kind == "MODIFIED"
    assert msgspec.json.decode(raw, type=type(large)) == large


T = TypeVar("T", Pod, Node)


def with_version(one: T, version: str) -> T:
    return structs.replace(one, metadata=structs.replace(one.metadata, resource_version=version))


def with_conditions(one: Pod, *statuses: tuple[str, str]) -> Pod:
    conditions = tuple(PodCondition(type_, status) for type_, status in statuses)
    return structs.replace(one, status=structs.replace(one.status, conditions=conditions))


def test_another_version_alone_is_written_only_of_pods_that_wait() -> None:
    encoder = ObjectEncoder(Redaction())
    kinds = "Pod", "Pod", "Node"
    objects = pod("waits"), pod("runs", node_name="n"), node("n")
    written = [
        encoder.encode_changes(kind, [Change("MODIFIED", one, with_version(one, "7"))])
        for kind, one in zip(kinds, objects, strict=True)
    ]
    assert [len(changes) for changes in written] == [1, 0, 0]


@pytest.mark.parametrize(
    ("type_", "is_written"),
    [("Ready", False), ("DisruptionTarget", True), ("PodResizePending", True), ("PodScheduled", True)],
)
def test_conditions_that_only_other_packages_can_read_are_written_for_these(type_: str, is_written: bool) -> None:
    was = with_conditions(pod("runs", node_name="n"), ("Initialized", "True"), (type_, "False"))
    now = with_conditions(was, ("Initialized", "True"), (type_, "True"))
    changes = [Change("MODIFIED", was, now)]
    redaction = Redaction()
    assert bool(ObjectEncoder(redaction).encode_changes("Pod", changes)) == is_written
    redaction.reads_all_conditions = True
    ((_, patch),) = ObjectEncoder(redaction).encode_changes("Pod", changes)
    assert patched(was, patch) == now


def test_a_change_of_what_is_read_is_written_with_the_version() -> None:
    was = pod("runs", node_name="n")
    now = with_version(structs.replace(was, status=structs.replace(was.status, phase="Failed")), "7")
    ((kind, patch),) = ObjectEncoder(Redaction()).encode_changes("Pod", [Change("MODIFIED", was, now)])
    assert kind == PATCHED
    assert patched(was, patch) == now
