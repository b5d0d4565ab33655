"""Objects and changes as records have them: also what is patched or like another one has no secrets."""

import msgspec
from msgspec import structs

from trio_sched.objects.changes import Change
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


def test_a_change_of_what_is_read_is_written_with_the_version() -> None:
    was = pod("runs", node_name="n")
    metadata = structs.replace(was.metadata, resource_version="7")
    now = structs.replace(was, metadata=metadata, status=structs.replace(was.status, phase="Failed"))
    ((kind, patch),) = ObjectEncoder(Redaction()).encode_changes("Pod", [Change("MODIFIED", was, now)])
    assert kind == PATCHED
    assert patched(was, patch) == now
