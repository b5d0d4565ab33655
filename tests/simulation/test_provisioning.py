"""Claims that waited in a dump for a provisioner get a volume in the simulation, which says that this is assumed."""

import json
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]
Json = dict
MOMENT = "2026-03-01T00:00:00Z"
STORAGE = "storage.k8s.io/v1"


def dumped(api_version: str, kind: str, name: str, namespace: str = "", metadata: Json | None = None, **fields) -> Json:
    found = {"name": name, "uid": f"{kind}-{name}".lower(), "creationTimestamp": MOMENT, **(metadata or {})}
    if namespace:
        found["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": found, **fields}


def node(name: str) -> Json:
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{name}"}
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}}
    return dumped("v1", "Node", name, metadata={"labels": labels}, status=status)


def storage_class(binding: str = "WaitForFirstConsumer", **metadata) -> Json:
    return dumped(STORAGE, "StorageClass", "ssd", provisioner="disk.test", volumeBindingMode=binding, metadata=metadata)


def claim(name: str = "data-db-0", selected: str = "", **metadata) -> Json:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "ssd"}
    annotations = {"volume.kubernetes.io/selected-node": selected} if selected else {}
    metadata = {"annotations": annotations, **metadata}
    return dumped("v1", "PersistentVolumeClaim", name, "shop", metadata, spec=spec, status={"phase": "Pending"})


def pod(name: str = "db-0", claim_name: str = "data-db-0", **metadata) -> Json:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": [volume]}
    return dumped("v1", "Pod", name, "shop", metadata, spec=spec, status={"phase": "Pending"})


def volume_of_the_driver() -> Json:
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "other"}
    spec |= {"csi": {"driver": "disk.test", "volumeHandle": "v"}}
    return dumped("v1", "PersistentVolume", "pv-1", spec=spec, status={"phase": "Available"})


DRIVER = dumped(STORAGE, "CSIDriver", "disk.test", spec={})
ON_NODE = dumped(STORAGE, "CSINode", "n1", spec={"drivers": [{"name": "disk.test", "nodeID": "n1"}]})
UNKNOWN = "class ssd gets volumes, although nothing shows that disk.test runs: no CSIDriver, CSINode or volume names it"
WAITED = "class ssd gets volumes, although the claims waited for those of disk.test when the cluster was listed"


def simulated(tmp_path: Path, capsys: Capture, *objects: Json, output: str = "json") -> tuple[str, str]:
    path = tmp_path / "dump.json"
    items = [node("n1"), *objects]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    assert main(["simulate", "-f", str(path), "-o", output]) == ExitCode.OK
    printed = capsys.readouterr()
    return printed.out, printed.err


@pytest.mark.parametrize(
    ("objects", "assumed"),
    [
        ([storage_class(), claim()], UNKNOWN),
        ([storage_class("Immediate"), claim()], UNKNOWN),
        ([storage_class(), claim(selected="n1")], UNKNOWN),
        ([storage_class("Immediate"), claim(), DRIVER], WAITED),
        ([storage_class(), claim(selected="n1"), ON_NODE], WAITED),
    ],
    ids=["late, unknown", "immediate, unknown", "selected, unknown", "immediate", "selected"],
)
def test_a_volume_that_may_never_come_is_assumed_and_said(
    objects: list[Json], assumed: str, tmp_path: Path, capsys: Capture
) -> None:
    printed, said = simulated(tmp_path, capsys, pod(), *objects)
    outcome = json.loads(printed)
    assert [one["node"] for one in outcome["placements"]] == ["n1"], outcome["pending"]
    assert outcome["assumptions"] == [{"message": assumed, "claims": ["shop/data-db-0"]}]
    assert said == f"Warning: assumed: {assumed} (shop/data-db-0)\n"
    table, _said = simulated(tmp_path, capsys, pod(), *objects, output="table")
    flat = "".join(table.split())
    assert "".join(assumed.split()) in flat
    assert "Assumed" in table
    page, _said = simulated(tmp_path, capsys, pod(), *objects, output="html")
    assert "<h2>Assumed</h2>" in page
    assert assumed in page


@pytest.mark.parametrize(
    "objects",
    [
        [storage_class(), claim(), DRIVER],
        [storage_class(), claim(), ON_NODE],
        [storage_class(), claim(), volume_of_the_driver()],
        [storage_class(uid=""), claim(uid="")],
    ],
    ids=["driver", "on a node", "a volume", "not dumped"],
)
def test_nothing_is_assumed_of_a_provisioner_that_is_there(
    objects: list[Json], tmp_path: Path, capsys: Capture
) -> None:
    printed, said = simulated(tmp_path, capsys, pod(), *objects)
    outcome = json.loads(printed)
    assert [one["node"] for one in outcome["placements"]] == ["n1"], outcome["pending"]
    assert (outcome["assumptions"], said) == ([], "")


def test_a_claim_that_no_pod_used_was_not_provisioned_and_so_nothing_was_assumed(
    tmp_path: Path, capsys: Capture
) -> None:
    printed, said = simulated(tmp_path, capsys, storage_class(), claim())
    assert (json.loads(printed)["assumptions"], said) == ([], "")


def test_claims_that_workloads_make_in_the_simulation_are_among_them(tmp_path: Path, capsys: Capture) -> None:
    made = {key: claim()[key] for key in ("spec",)} | {"metadata": {"name": "data"}}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"app": "db"}}, "template": template, "volumeClaimTemplates": [made]}
    database = dumped("apps/v1", "StatefulSet", "db", "shop", spec={**spec, "serviceName": "db", "replicas": 2})
    printed, _said = simulated(tmp_path, capsys, storage_class(), database)
    (assumption,) = json.loads(printed)["assumptions"]
    assert assumption == {"message": UNKNOWN, "claims": ["shop/data-db-0", "shop/data-db-1"]}


@pytest.mark.parametrize(
    "kind", ["StorageClass", "PersistentVolumeClaim", "PersistentVolume", "CSIDriver", "Pod", "Node"]
)
def test_custom_resources_of_the_same_kind_are_something_else(kind: str, tmp_path: Path, capsys: Capture) -> None:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    spec = {"group": "example.com", "names": names, "scope": "Namespaced", "versions": [version]}
    crd = "CustomResourceDefinition"
    definition = dumped("apiextensions.k8s.io/v1", crd, f"{plural}.example.com", spec=spec)
    custom = dumped("example.com/v1", kind, "disk.test", "shop")
    printed, _said = simulated(tmp_path, capsys, definition, custom, storage_class(), claim(), pod())
    assert json.loads(printed)["assumptions"] == [{"message": UNKNOWN, "claims": ["shop/data-db-0"]}]
