"""Objects and changes as records have them: also what is patched or like another one has no secrets."""

import msgspec
from msgspec import structs

from trio_sched.objects.changes import Change
from trio_sched.recording.object_encoder import ObjectEncoder
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
        encoder.encode_change("Pod", Change("ADDED", None, old)),
        encoder.encode_change("Pod", Change("MODIFIED", old, new)),
        encoder.encode_change("Pod", Change("DELETED", new, None)),
        encoder.encode("Pod", other),
        encoder.templates.take_new(),
    ]
    written = msgspec.json.encode(made).decode()
    assert SECRET not in written
    assert '"app":"x"' in written
    assert [change[0] for change in made[:3]] == ["ADDED", PATCHED, "DELETED"]


def test_other_objects_are_written_as_they_are() -> None:
    one = node("n", cpu="8")
    kind, raw = ObjectEncoder(Redaction()).encode_change("Node", Change("MODIFIED", one, one))
    assert kind == "MODIFIED"
    assert msgspec.json.decode(raw, type=type(one)) == one
