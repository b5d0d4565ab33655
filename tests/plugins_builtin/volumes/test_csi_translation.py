from typing import Any

import msgspec
import pytest

from plugins_builtin.volumes.csi_translation import (
    AWS_EBS,
    AZURE_DISK,
    BETA_REGION,
    BETA_ZONE,
    GCE_PD,
    REGION,
    ZONE,
    TranslationError,
    in_tree_plugin,
    inline_handle,
    translated_affinity,
    volume_handle,
)
from trio_sched.objects.storage.persistent_volume import PersistentVolume
from trio_sched.objects.storage.volume import Volume


def volume(source: dict[str, Any], *, labels: Any = None, terms: Any = None) -> PersistentVolume:
    spec = dict(source)
    if terms is not None:
        written = [
            {"matchExpressions": [{"key": k, "operator": "In", "values": v} for k, v in one.items()]} for one in terms
        ]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": written}}
    return msgspec.convert({"metadata": {"name": "pv", "labels": labels or {}}, "spec": spec}, PersistentVolume)


EBS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE = {"gcePersistentDisk": {"pdName": "disk"}}


@pytest.mark.parametrize(
    ("source", "labels", "driver", "handle"),
    [
        (EBS, {}, "ebs.csi.aws.com", "vol-1"),
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/vol-2"}}, {}, "ebs.csi.aws.com", "vol-2"),
        ({"awsElasticBlockStore": {"volumeID": "aws:///vol-3"}}, {}, "ebs.csi.aws.com", "vol-3"),
        (GCE, {}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"),
        (GCE, {ZONE: "us-east1-a"}, "pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/us-east1-a/disks/disk"),
        (
            GCE,
            {BETA_ZONE: "us-east1-a__us-east1-b", ZONE: "other"},
            "pd.csi.storage.gke.io",
            "projects/UNSPECIFIED/regions/us-east1/disks/disk",
        ),
        ({"azureDisk": {"diskURI": "/disks/d"}}, {}, "disk.csi.azure.com", "/disks/d"),
        ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
        ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
    ],
)
def test_volumes_have_the_handles_of_their_drivers(source: Any, labels: Any, driver: str, handle: str) -> None:
    one = volume(source, labels=labels)
    plugin = in_tree_plugin(one.spec)
    assert plugin is not None
    assert (plugin.driver, volume_handle(one)) == (driver, handle)
    if not labels:
        assert inline_handle(msgspec.convert({"name": "v", **source}, Volume)) == handle


def test_other_volumes_are_not_of_such_a_driver() -> None:
    assert in_tree_plugin(volume({"csi": {"driver": "d", "volumeHandle": "h"}}).spec) is None


@pytest.mark.parametrize(
    ("source", "labels", "problem"),
    [
        ({"awsElasticBlockStore": {"volumeID": "aws://zone/disk"}}, {}, "Invalid format for AWS volume"),
        (GCE, {ZONE: "a__b"}, "zone in unexpected format"),
        (GCE, {ZONE: "us-east1-a__us-west1-a"}, "multiple or no regions gotten"),
    ],
)
def test_some_volumes_have_no_handle(source: Any, labels: Any, problem: str) -> None:
    with pytest.raises(TranslationError, match=problem):
        volume_handle(volume(source, labels=labels))


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        ({}, None, None),
        ({}, [{ZONE: ["a"]}], [{"topology.gke.io/zone": ("a",)}]),
        ({}, [{BETA_ZONE: ["a"], BETA_REGION: ["r"]}], [{"topology.gke.io/zone": ("a",), REGION: ("r",)}]),
        ({}, [{BETA_REGION: ["r"]}], [{BETA_REGION: ("r",)}]),  # not without the zone that goes with it
        ({ZONE: "a-b-c"}, None, [{"topology.gke.io/zone": ("a-b-c",)}]),
        ({ZONE: "a-b-c"}, [{"disk": ["x"]}], [{"disk": ("x",), "topology.gke.io/zone": ("a-b-c",)}]),
        ({ZONE: "a-b-c"}, [{ZONE: ["d"]}], [{"topology.gke.io/zone": ("d",)}]),
    ],
)
def test_zones_become_the_topology_label_of_the_driver(labels: Any, terms: Any, expected: Any) -> None:
    affinity = translated_affinity(volume(GCE, labels=labels, terms=terms), GCE_PD)
    found = affinity and [
        {requirement.key: requirement.values for requirement in term.match_expressions or ()}
        for term in affinity.node_selector_terms or ()
    ]
    assert found == expected


def test_drivers_without_a_zone_label_leave_the_affinity_alone() -> None:
    disk = volume({"azureDisk": {"diskURI": "d"}}, terms=[{ZONE: ["a"]}])
    assert translated_affinity(disk, AZURE_DISK) is disk.required_affinity
    assert AWS_EBS.zone_key == "topology.ebs.csi.aws.com/zone"
