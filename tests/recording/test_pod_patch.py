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


CHANGES = {
    "nothing else": with_version(OLD),
    "status": structs.replace(with_version(OLD), status=PodStatus(phase="Running")),
    "bound": with_version(OLD, node_name="node-1"),
    "spec": with_version(OLD, scheduling_gates=None, priority=7),
    "metadata": structs.replace(OLD, metadata=structs.replace(OLD.metadata, labels={"app": "x"}, resource_version="8")),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_patch_makes_the_new_pod_of_the_old_one(name: str) -> None:
    patch = msgspec.json.decode(msgspec.json.encode(patch_of(OLD, CHANGES[name])), type=PodPatch)
    assert patched(OLD, patch) == CHANGES[name]


def test_a_pod_that_was_bound_is_written_with_little_more_than_its_node() -> None:
    assert len(msgspec.json.encode(patch_of(OLD, CHANGES["bound"]))) < 100
