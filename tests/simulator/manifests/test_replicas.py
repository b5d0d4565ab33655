from typing import Any

import pytest

from trio_sched.simulator.manifests.manifests import Manifest, ManifestError
from trio_sched.simulator.manifests.replicas import COUNT, MOST_COPIES, multiply


def manifest(kind: str, name: str, *, api_version: str = "v1", **fields: Any) -> Manifest:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def pod(name: str = "p", *, node: str = "", phase: str = "Running", scheduler: str = "", **metadata: Any) -> Manifest:
    spec = {"containers": [], **({"nodeName": node} if node else {})}
    if scheduler:
        spec["schedulerName"] = scheduler
    metadata = {"namespace": "shop", "uid": f"uid-{name}", **metadata}
    return manifest("Pod", name, metadata=metadata, spec=spec, status={"phase": phase, "qosClass": "Burstable"})


def owned_by(kind: str) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": "owner", "uid": "u", "controller": True}]


def test_a_count_makes_numbered_objects_that_share_nothing() -> None:
    template = manifest("Node", "big", metadata={"annotations": {COUNT: "10"}}, spec={"taints": []})
    made = multiply([manifest("Node", "other", spec={}), template])
    assert [one.fields["metadata"]["name"] for one in made] == ["other", *(f"big-{n}" for n in range(1, 11))]
    assert made[1].fields["spec"]["taints"] is not made[2].fields["spec"]["taints"]
    assert made[1].fields["metadata"]["annotations"] == {}


def test_copies_of_a_dumped_node_are_nodes_of_their_own() -> None:
    labels = {"kubernetes.io/hostname": "n7", "topology.kubernetes.io/zone": "a"}
    metadata = {"uid": "u", "resourceVersion": "5", "labels": labels, "annotations": {COUNT: "2"}}
    status = {"addresses": [{"address": "10.0.0.1"}], "capacity": {"cpu": "4"}}
    node = manifest("Node", "n7", metadata=metadata, spec={"providerID": "aws://i-1"}, status=status)
    _first, second = multiply([node])
    assert second.fields["metadata"] == {
        "name": "n7-2",
        "labels": {"kubernetes.io/hostname": "n7-2", "topology.kubernetes.io/zone": "a"},
        "annotations": {},
    }
    assert second.fields["spec"] == {}
    assert second.fields["status"] == {"capacity": {"cpu": "4"}}


def test_of_labels_only_the_host_name_and_where_volumes_can_be_follow_the_name_of_a_copy() -> None:
    labels = {"kubernetes.io/hostname": "gpu.example", "accelerator": "gpu", "topology.lvm/node": "gpu"}
    node = manifest("Node", "gpu", metadata={"labels": labels, "annotations": {COUNT: "1"}})
    drivers = [{"name": "lvm", "nodeID": "x", "topologyKeys": ["topology.lvm/node"]}]
    csi = manifest("CSINode", "gpu", api_version="storage.k8s.io/v1", spec={"drivers": drivers})
    (copy,) = (one.fields for one in multiply([node, csi]) if one.fields["kind"] == "Node")
    expected = {"kubernetes.io/hostname": "gpu-1", "accelerator": "gpu", "topology.lvm/node": "gpu-1"}
    assert copy["metadata"]["labels"] == expected


def test_copies_of_a_dumped_pod_are_pending() -> None:
    (copy,) = multiply([pod(node="n", annotations={COUNT: "1"}, ownerReferences=owned_by("ReplicaSet"))])
    assert copy.fields["metadata"]["name"] == "p-1"
    assert "nodeName" not in copy.fields["spec"]
    assert "status" not in copy.fields
    assert copy.fields["metadata"].keys() == {"name", "namespace", "annotations", "ownerReferences"}


@pytest.mark.parametrize(("from_dump", "wanted"), [(True, 6), (False, 7)])
def test_the_workloads_of_copied_pods_grow(from_dump: bool, wanted: int) -> None:
    shared = {"replicas": 3}
    deployment = manifest("Deployment", "d", api_version="apps/v1", metadata={"uid": "d"}, spec=shared)
    owners = [{"kind": "Deployment", "name": "d", "uid": "d", "controller": True}]
    replicas = manifest(
        "ReplicaSet", "owner", api_version="apps/v1", metadata={"uid": "u", "ownerReferences": owners}, spec=shared
    )
    template = pod("p", annotations={COUNT: "4"}, ownerReferences=owned_by("ReplicaSet"))
    others = [] if from_dump else [pod("p", ownerReferences=owned_by("ReplicaSet"))]
    if not from_dump:
        template.fields["metadata"]["name"] = "more"
    made = multiply([deployment, replicas, template, *others])
    assert len(made) == 6 + len(others)
    assert (deployment.fields["spec"], replicas.fields["spec"]) == ({"replicas": wanted}, {"replicas": wanted})
    assert shared == {"replicas": 3}


def test_a_job_wants_as_many_completions_more() -> None:
    spec = {"parallelism": 2, "completions": 2}
    job = manifest("Job", "owner", api_version="batch/v1", metadata={"uid": "u"}, spec=spec)
    multiply(
        [
            job,
            pod("a", ownerReferences=owned_by("Job")),
            pod("b", annotations={COUNT: "3"}, uid="", ownerReferences=owned_by("Job")),
        ]
    )
    assert job.fields["spec"] == {"parallelism": 5, "completions": 5}


def test_pods_of_daemon_sets_have_no_count() -> None:
    with pytest.raises(
        ManifestError, match=r"Pod shop/p: .*a DaemonSet makes one pod for each node; give the count to"
    ):
        multiply([pod(annotations={COUNT: "2"}, ownerReferences=owned_by("DaemonSet"))])


@pytest.mark.parametrize("link", ["name", "uid", "host name"])
def test_copies_of_a_node_have_what_belongs_to_it(link: str) -> None:
    drivers = [{"name": "ebs", "nodeID": "i-1", "topologyKeys": ["zone"]}]
    csi = manifest("CSINode", "n7", api_version="storage.k8s.io/v1", metadata={"uid": "c"}, spec={"drivers": drivers})
    spec = {"driver": "gpu", "nodeName": "n7", "pool": {"name": "n7", "generation": 3}, "devices": [{"name": "g"}]}
    slices = manifest("ResourceSlice", "n7-gpu-x", api_version="resource.k8s.io/v1", metadata={"uid": "s"}, spec=spec)
    other = manifest("ResourceSlice", "all", api_version="resource.k8s.io/v1", spec={"allNodes": True, "pool": {}})
    node = manifest("Node", "n7", metadata={"uid": "u", "labels": {"kubernetes.io/hostname": "n7"}})
    metadata = {"annotations": {COUNT: "2"}, **({"uid": "u"} if link == "uid" else {})}
    labels = {"kubernetes.io/hostname": "n7"} if link == "host name" else {}
    template = manifest("Node", "n7" if link == "name" else "more", metadata={**metadata, "labels": labels})
    given = [csi, slices, other, template, *([] if link == "name" else [node])]
    made = {(one.fields["kind"], one.fields["metadata"]["name"]): one.fields for one in multiply(given)}
    name = "n7-2" if link == "name" else "more-2"
    assert made["CSINode", name]["spec"] == {"drivers": [{"name": "ebs", "nodeID": name, "topologyKeys": ["zone"]}]}
    copied = next(one for key, one in made.items() if key[0] == "ResourceSlice" and key[1].startswith(name))
    assert copied["spec"] == {**spec, "nodeName": name, "pool": {"name": name, "generation": 3}}
    assert copied["metadata"].keys() == {"name"}
    if link == "host name":
        assert made["Node", name]["metadata"]["labels"] == {"kubernetes.io/hostname": name}
    assert len([key for key in made if key[0] == "ResourceSlice"]) == 4
    assert slices.fields["spec"] == spec


def test_a_template_without_a_name_leaves_naming_to_the_server() -> None:
    template = manifest("Pod", "", metadata={"generateName": "web-", "annotations": {COUNT: "3"}}, spec={})
    assert [one.fields["metadata"]["generateName"] for one in multiply([template])] == ["web-"] * 3


@pytest.mark.parametrize("text", ["ten", "0", "-1", "1.5", "1e3", "", "²", "9" * 5000, str(MOST_COPIES + 1)])
def test_a_count_that_is_none_is_named_with_its_place(text: str) -> None:
    with pytest.raises(ManifestError, match=r"Node n: metadata.annotations\[.*count\]: must be a whole number from 1 "):
        multiply([manifest("Node", "n", metadata={"annotations": {COUNT: text}})])


def test_only_nodes_and_pods_are_counted() -> None:
    with pytest.raises(ManifestError, match=r"Service s: .*: only nodes and pods can have a count"):
        multiply([manifest("Service", "s", metadata={"annotations": {COUNT: "2"}})])


def test_copies_take_no_names_of_others() -> None:
    template = manifest("Node", "n", metadata={"annotations": {COUNT: "3"}})
    with pytest.raises(ManifestError, match=r"Node n: .*: makes n-2, which exists already"):
        multiply([template, manifest("Node", "n-2")])


def test_names_stay_valid() -> None:
    with pytest.raises(ManifestError, match=r"metadata.name: is too long for 10 objects"):
        multiply([manifest("Node", "n" * 252, metadata={"annotations": {COUNT: "10"}})])


def test_all_templates_together_are_bounded() -> None:
    templates = [manifest("Node", f"n{i}", metadata={"annotations": {COUNT: str(MOST_COPIES)}}) for i in range(6)]
    with pytest.raises(ManifestError, match=r"Node n5: .*all templates together make more than"):
        multiply(templates)
