"""Recordings with hashed names are replayed as others are."""

from pathlib import Path
from typing import Any

from gangs import GANG_GATES, member
from recorded_clusters import record

from trio_sched.recording.folder import RecordingReader
from trio_sched.recording.recording_settings import RecordingSettings
from trio_sched.recording.records import encode_records
from trio_sched.testing import (
    VirtualCluster,
    node,
    pod,
    pod_anti_affinity,
    pod_group,
    pod_term,
    replayed_cluster,
    storage_class,
)

ZONE = "topology.kubernetes.io/zone"
NAMES = ("alpha", "beta", "gamma", "delta", "gang", "team", "scratch", "nginx", "front")


def volume(name: str, size: str) -> dict[str, Any]:
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": "disk"}
    return {"name": name, "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}


async def mixed(cluster: VirtualCluster) -> None:
    await cluster.create(storage_class("disk", provisioner="disk.example.com"))
    for number in range(6):
        apart = pod_anti_affinity(pod_term("team=gamma", ZONE))
        labels = {"app": "front", "team": "alpha" if number % 2 else "beta"}
        one = pod(f"front-{number}", cpu="500m", labels=labels, image="nginx:1.25", affinity=apart)
        await cluster.create(one)
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "delta", "namespace": "default"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": [volume("scratch", "1Gi")]},
    }
    await cluster.create(manifest)
    await cluster.create(pod_group("gang", min_count=3))
    for number in range(3):
        await cluster.create(member(f"gang-{number}", "gang", cpu="1"))
    await cluster.create(pod("huge-gamma", cpu="3", priority=10))
    await cluster.settle()


def test_every_decision_is_the_same_and_no_name_is_in_it(tmp_path: Path) -> None:
    nodes = [node(f"alpha-{number}", cpu="4", labels={ZONE: f"beta-{number % 2}"}) for number in range(3)]
    settings = RecordingSettings(folder=tmp_path, hash_names=True)
    record(settings, mixed, nodes=nodes, gates=GANG_GATES)
    result = replayed_cluster(tmp_path)
    assert result.differences == []
    assert dict(result.not_compared) == {}
    assert result.is_complete
    assert result.decisions >= 11
    records = [one for _follows, found in RecordingReader(tmp_path).segments() for one in found]
    text = encode_records(records).decode()
    assert [name for name in NAMES if f'"{name}' in text and f'"{name}":' not in text] == []
