"""What is never written into a recording."""

from typing import Any

import msgspec
import pytest

from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.config_map import ConfigMap
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomObject, CustomResource, Watched
from trio_sched.recording.redaction import Redaction, identity_of

SECRET = "hunter2"

POD = {
    "metadata": {"name": "web", "annotations": {"note": SECRET, "pv.kubernetes.io/bind-completed": "yes"}},
    "spec": {
        "containers": [{"name": "c", "image": "web:1", "command": [SECRET], "env": [{"name": "P", "value": SECRET}]}],
        "imagePullSecrets": [{"name": SECRET}],
    },
}


def custom(kind: CustomResource[Any], fields: dict[str, Any]) -> Any:
    return kind.decode(msgspec.json.encode(fields))


CRON = CustomResource("batch", "v1", "CronJob")
CASES: list[tuple[Watched, Any]] = [
    ("Pod", msgspec.convert(POD, Pod)),
    ("ConfigMap", ConfigMap(ObjectMeta(name="c"), {"password": SECRET})),
    ("things.v1.example.com", AnyObject(ObjectMeta(name="t"), spec={"template": {"deep": [POD]}})),
    (CRON, custom(CRON, {"metadata": {"name": "j"}, "spec": {"template": POD}})),
    (CustomResource("", "v1", "Secret"), CustomObject({"data": SECRET, "x": SECRET}, ObjectMeta(name="s"))),
]


@pytest.mark.parametrize(("kind", "one"), CASES, ids=lambda value: str(value)[:20])
def test_secrets_are_not_written(kind: Watched, one: Any) -> None:
    written = Redaction().encode(kind, one)
    assert SECRET not in written.decode()
    assert msgspec.json.decode(written)["metadata"]["name"] == one.metadata.name


def test_annotations_that_are_named_are_written() -> None:
    pod = Pod(metadata=ObjectMeta(name="p", annotations={"racks.example.com/row": "3", "note": SECRET}))
    written = msgspec.json.decode(Redaction(["racks.example.com/*"]).encode("Pod", pod), type=Pod)
    assert written.annotations == {"racks.example.com/row": "3"}


def test_annotations_that_built_in_plugins_read_are_written() -> None:
    written = msgspec.json.decode(Redaction().encode("Pod", msgspec.convert(POD, Pod)), type=Pod)
    assert written.annotations == {"pv.kubernetes.io/bind-completed": "yes"}


def test_an_object_that_cannot_be_encoded_is_written_with_its_metadata_alone() -> None:
    kind = CustomResource("example.com", "v1", "Thing")
    one = CustomObject({"spec": object()}, ObjectMeta(name="t"))
    assert msgspec.json.decode(Redaction().encode(kind, one)) == {"metadata": {"name": "t"}}


def test_an_object_that_is_nested_too_deep_is_written_with_its_metadata_alone() -> None:
    nested: dict[str, Any] = {}
    for _ in range(100_000):
        nested = {"a": nested}
    one = CustomObject(nested, ObjectMeta(name="t"))
    written = Redaction().encode(CustomResource("example.com", "v1", "Thing"), one)
    assert msgspec.json.decode(written) == {"metadata": {"name": "t"}}


def test_what_is_written_of_a_deleted_object_is_its_identity() -> None:
    pod = Pod(metadata=ObjectMeta(name="p", namespace="ns", uid="u", labels={"app": "web"}))
    assert identity_of(pod).metadata == ObjectMeta("p", "ns", "u")
