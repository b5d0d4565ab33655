"""What has changed of a pod."""

import msgspec
import pytest
from msgspec import structs

from trio_sched.objects.pod import Pod, PodStatus
from trio_sched.recording.pod_patch import PodPatch, patch_of, patched
from trio_sched.testing import pod

OLD = pod("p", cpu="1", labels={"app": "web"})


def with_version(one: Pod, **spec: object) -> Pod:
    metadata = structs.replace(one.metadata, resource_version="77")
    return Pod(metadata, structs.replace(one.spec, **spec) if spec else one.spec, one.status)


def labelled(labels: dict[str, str] | None, deleted: str | None = None) -> Pod:
    changed = {"labels": labels, "deletion_timestamp": deleted, "resource_version": "8"}
    return structs.replace(OLD, metadata=structs.replace(OLD.metadata, **changed))


CHANGES = {
    "nothing else": with_version(OLD),
    "status": structs.replace(with_version(OLD), status=PodStatus(phase="Running")),
    "bound": with_version(OLD, node_name="node-1"),
    "spec": with_version(OLD, scheduling_gates=None, priority=7),
    "another label": labelled({"app": "x"}),
    "one label more": labelled({"app": "web", "zone": "a"}),
    "no labels": labelled(None),
    "one label for another": labelled({"zone": "a"}),
    "metadata": labelled({"app": "web"}, deleted="2026-01-01T00:00:00Z"),
    "labels and more": labelled({"app": "x"}, deleted="2026-01-01T00:00:00Z"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_patch_makes_the_new_pod_of_the_old_one(name: str) -> None:
    patch = msgspec.json.decode(msgspec.json.encode(patch_of(OLD, CHANGES[name])), type=PodPatch)
    assert patched(OLD, patch) == CHANGES[name]


def test_a_pod_that_was_bound_is_written_with_little_more_than_its_node() -> None:
    assert len(msgspec.json.encode(patch_of(OLD, CHANGES["bound"]))) < 100


def test_of_labels_only_those_that_differ_are_written() -> None:
    assert patch_of(OLD, CHANGES["one label more"]) == PodPatch("p", "default", "8", {"zone": "a"})
