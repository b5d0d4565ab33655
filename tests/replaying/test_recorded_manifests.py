"""The cluster of a recording as manifests."""

from pathlib import Path
from typing import Any

import pytest
import trio

from trio_sched.plugin_api import replace_fields
from trio_sched.recording.folder import RecordingFolder
from trio_sched.recording.object_encoder import ObjectEncoder
from trio_sched.recording.records import Began, Existed, FirstList, Templates, encode_records
from trio_sched.recording.redaction import Redaction
from trio_sched.recording.segments import NotARecording
from trio_sched.replaying.recorded_manifests import RecordedManifests
from trio_sched.simulator import jumping_clock
from trio_sched.testing import owner_reference, pod, replica_set, virtual_cluster


def manifests_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    recorded = RecordedManifests()
    recorded.read(folder)
    return {(one["kind"], one["metadata"]["name"]): one for one in recorded.manifests()}


def test_pods_come_when_they_came_and_run_as_long_as_they_ran(tmp_path: Path) -> None:
    async def run() -> None:
        async with virtual_cluster(nodes=2, record=tmp_path) as cluster:
            await cluster.create(pod("first", cpu="1", priority=7))
            await trio.sleep(100)
            await cluster.create(pod("second", cpu="1"))
            await trio.sleep(60)
            await cluster.delete(pod("first"), grace_seconds=0)
            await cluster.settle()
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())
    found = manifests_of(tmp_path)
    first, second = found["Pod", "first"], found["Pod", "second"]
    assert float(first["metadata"]["annotations"]["trio-sched.dev/run-seconds"]) == pytest.approx(160, abs=1)
    assert float(second["metadata"]["annotations"]["trio-sched.dev/arrive-seconds"]) == pytest.approx(100, abs=1)
    assert "arrive-seconds" not in str(first)
    assert "nodeName" not in first["spec"]
    assert found["PriorityClass", first["spec"]["priorityClassName"]]["value"] == 7
    assert ("Node", "node-1") in found


def test_overheads_get_runtime_classes_and_other_pods_none(tmp_path: Path) -> None:
    folder = RecordingFolder(tmp_path, 1 << 20)
    encoder = ObjectEncoder(Redaction())
    pods = [encoder.encode("Pod", pod(f"p{number}", overhead={"cpu": f"{number // 2}"})) for number in range(4)]
    plain = pod("plain")
    of_class = replace_fields(plain, spec=replace_fields(plain.spec, runtime_class_name="kata"))
    pods.append(encoder.encode("Pod", of_class))  # the class is not recorded
    segment = folder.next_segment()
    records = [Began("run", 0.0, 0.0, "1"), Templates(encoder.templates.take_new()), FirstList(0.0, "Pod", pods)]
    segment.write([encode_records((*records, Existed({})))])
    segment.close()
    found = manifests_of(tmp_path)
    names = [found["Pod", f"p{number}"]["spec"]["runtimeClassName"] for number in range(4)]
    assert names == ["recorded-1", "recorded-1", "recorded-2", "recorded-2"]
    assert "runtimeClassName" not in found["Pod", "plain"]["spec"]
    assert found["RuntimeClass", "recorded-2"]["overhead"] == {"podFixed": {"cpu": "1"}}


def test_services_stand_for_workloads_whose_templates_are_not_recorded(tmp_path: Path) -> None:
    async def run() -> None:
        async with virtual_cluster(nodes=2, record=tmp_path) as cluster:
            await cluster.create(replica_set("web", "app=web"))
            await cluster.create(replica_set("any", "app NotIn x"))
            await cluster.create(pod("web-1", labels={"app": "web"}, owner=owner_reference("ReplicaSet", "web")))
            await cluster.settle()
            await cluster.stop_scheduler()

    trio.run(run, clock=jumping_clock())
    recorded = RecordedManifests()
    recorded.read(tmp_path)
    made = list(recorded.manifests())
    stands_in = [one for one in made if one["metadata"]["name"].startswith("recorded-")]
    assert [(one["kind"], one["spec"]) for one in stands_in] == [("Service", {"selector": {"app": "web"}})]
    assert "ReplicaSet" not in [one["kind"] for one in made]
    assert recorded.left_out == {"ReplicaSet": 1}
    assert "ownerReferences" not in next(one for one in made if one["kind"] == "Pod")["metadata"]


def test_what_is_no_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotARecording, match="no segments"):
        manifests_of(tmp_path)
