"""A cluster of twenty nodes, dumped in every form in which it is found: the outcome is that of one list in JSON."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode

Capture = pytest.CaptureFixture[str]
Json = dict
Write = Callable[[Path, list[Json]], None]
TAINT = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
MOMENT = "2026-03-01T00:00:00Z"


def dumped(api_version: str, kind: str, name: str, namespace: str = "", owner: Json | None = None, **fields) -> Json:
    metadata = {"name": name, "uid": f"{kind}-{namespace}-{name}", "resourceVersion": "70", "creationTimestamp": MOMENT}
    if namespace:
        metadata["namespace"] = namespace
    if owner is not None:
        of = {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            **{k: owner["metadata"][k] for k in ("name", "uid")},
        }
        metadata["ownerReferences"] = [{**of, "controller": True, "blockOwnerDeletion": True}]
    metadata |= fields.pop("metadata", {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def nodes() -> list[Json]:
    found = []
    for number in range(20):
        name = f"ip-10-0-0-{number}"
        labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": "abc"[number % 3]}
        amounts = {"cpu": "4", "memory": "16Gi", "pods": "58", "ephemeral-storage": "80Gi", "hugepages-2Mi": "0"}
        states = (("Ready", "True"), ("MemoryPressure", "False"))
        status = {
            "capacity": amounts,
            "allocatable": amounts | {"cpu": "3920m"},
            "conditions": [{"type": kind, "status": state, "lastHeartbeatTime": MOMENT} for kind, state in states],
            "images": [{"names": [f"registry.test/i:{n}"], "sizeBytes": 10_000_000 * n} for n in range(1, 4)],
            "nodeInfo": {"kubeletVersion": "v1.36.2", "architecture": "amd64", "operatingSystem": "linux"},
        }
        spec = {
            "providerID": f"aws:///i-{number}",
            "podCIDR": f"10.1.{number}.0/24",
            "podCIDRs": [f"10.1.{number}.0/24"],
        }
        spec |= {"taints": [TAINT]} if number < 3 else {}
        found.append(dumped("v1", "Node", name, metadata={"labels": labels}, spec=spec, status=status))
    return found


def pod(name: str, namespace: str, owner: Json | None, spec: Json, *, node: str = "", phase: str = "Running") -> Json:
    app = name.partition("-")[0]
    conditions = [
        {"type": "PodScheduled", "status": "True" if node else "False", "reason": "" if node else "Unschedulable"}
    ]
    spec = {**spec, **({"nodeName": node} if node else {})}
    status = {"phase": phase if node else "Pending", "qosClass": "Burstable", "conditions": conditions}
    metadata = {"labels": {"app": app}}
    if owner is not None and owner["kind"] == "Node":
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return dumped("v1", "Pod", name, namespace, owner, metadata=metadata, spec=spec, status=status)


def workload(kind: str, name: str, namespace: str, spec: Json, owner: Json | None = None, **more) -> Json:
    template = {"metadata": {"labels": {"app": name.partition("-")[0]}}, "spec": spec}
    selector = {"matchLabels": {"app": name.partition("-")[0]}}
    return dumped("apps/v1", kind, name, namespace, owner, spec={"selector": selector, "template": template, **more})


def cluster() -> list[Json]:
    """With pods of several kinds of owners; two pods wait, one of them for another scheduler."""
    machines = nodes()
    names = [one["metadata"]["name"] for one in machines]
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}
    spec = {"containers": [container], "schedulerName": "default-scheduler", "restartPolicy": "Always"}
    web = workload("Deployment", "web", "shop", spec, replicas=6)
    of_web = workload("ReplicaSet", "web-7d9f", "shop", spec, web, replicas=6)
    agent = {**spec, "tolerations": [{"operator": "Exists"}]}
    daemon = workload("DaemonSet", "agent", "kube-system", agent)
    once = {"metadata": {"labels": {"app": "report"}}, "spec": {**spec, "restartPolicy": "Never"}}
    selector = {"selector": {"matchLabels": {"app": "report"}}, "manualSelector": True}
    complete = {"succeeded": 1, "completionTime": MOMENT, "conditions": [{"type": "Complete", "status": "True"}]}
    done = {"completions": 1, "parallelism": 1, "backoffLimit": 6, "template": once, **selector}
    job = dumped("batch/v1", "Job", "report", "shop", spec=done, status=complete)
    pods = [pod(f"web-7d9f-{n}", "shop", of_web, spec, node=names[3 + n]) for n in range(5)]
    pods.append(pod("web-7d9f-5", "shop", of_web, spec))
    pods += [pod(f"agent-{n}", "kube-system", daemon, agent, node=name) for n, name in enumerate(names)]
    pods += [
        pod(f"etcd-{one['metadata']['name']}", "kube-system", one, agent, node=one["metadata"]["name"])
        for one in machines[:3]
    ]
    pods += [
        pod("report-x", "shop", job, spec, node=names[4], phase="Succeeded"),
        pod("evicted", "shop", None, spec, node=names[4], phase="Failed"),
        pod("volcano-0", "shop", None, {**spec, "schedulerName": "volcano"}),
    ]
    budget = dumped(
        "policy/v1",
        "PodDisruptionBudget",
        "web",
        "shop",
        spec={"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    )
    gone = dumped(
        "v1",
        "Event",
        "e",
        "shop",
        involvedObject={"kind": "Pod", "namespace": "shop"},
        reason="Pulled",
        message="a: b\n---\n- c",
    )
    return [*machines, dumped("v1", "Namespace", "shop"), of_web, job, budget, gone, *pods]


def listed(objects: list[Json]) -> Json:
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def by_kind(objects: list[Json]) -> dict[tuple[str, str], list[Json]]:
    found: dict[tuple[str, str], list[Json]] = {}
    for one in objects:
        found.setdefault((one["apiVersion"], one["kind"]), []).append(one)
    return found


def typed_list(api_version: str, kind: str, objects: list[Json]) -> Json:
    items = [{name: value for name, value in one.items() if name not in ("apiVersion", "kind")} for one in objects]
    return {"apiVersion": api_version, "kind": f"{kind}List", "items": items}


def as_yaml(value: object) -> str:
    return yaml.dump(value, Dumper=yaml.CSafeDumper, sort_keys=True)


def one_file(suffix: str, encode: Callable[[list[Json]], str | bytes]) -> Write:
    def write(folder: Path, objects: list[Json]) -> None:
        content = encode(objects)
        (folder / f"dump{suffix}").write_bytes(content.encode() if isinstance(content, str) else content)

    return write


def file_per_kind(folder: Path, objects: list[Json]) -> None:
    for (_version, kind), some in by_kind(objects).items():
        (folder / f"{kind}.yaml").write_text(as_yaml(listed(some)))


def cluster_info_dump(folder: Path, objects: list[Json]) -> None:
    for (version, kind), some in by_kind(objects).items():
        for namespace in {one["metadata"].get("namespace", "") for one in some}:
            (folder / namespace).mkdir(exist_ok=True)
            here = [one for one in some if one["metadata"].get("namespace", "") == namespace]
            (folder / namespace / f"{kind.lower()}s.json").write_text(
                json.dumps(typed_list(version, kind, here), indent=4)
            )
    (folder / "shop" / "web-7d9f-0").mkdir()
    (folder / "shop" / "web-7d9f-0" / "logs.txt").write_text("{ [ log: :\n")


def must_gather(folder: Path, objects: list[Json]) -> None:
    root = folder / "quay-io-must-gather-sha256-1"
    for (version, kind), some in by_kind(objects).items():
        group = version.rpartition("/")[0] or "core"
        for namespace in {one["metadata"].get("namespace", "") for one in some}:
            here = [one for one in some if one["metadata"].get("namespace", "") == namespace]
            place = root / "namespaces" / namespace / group if namespace else root / "cluster-scoped-resources" / group
            place.mkdir(parents=True, exist_ok=True)
            if namespace:
                (place / f"{kind.lower()}s.yaml").write_text("---\n" + as_yaml(typed_list(version, kind, here)))
            for one in here:
                if kind == "Pod":
                    place = root / "namespaces" / namespace / "pods" / one["metadata"]["name"]
                    (place / "c" / "c" / "logs").mkdir(parents=True)
                    (place / "c" / "c" / "logs" / "current.log").write_text("{ [ log: :\n")
                    later = {**one, "metadata": {**one["metadata"], "resourceVersion": "80"}}
                    (place / f"{one['metadata']['name']}.yaml").write_text("---\n" + as_yaml(later))
                elif not namespace:
                    (place / f"{kind}-{one['metadata']['name']}.yaml").write_text("---\n" + as_yaml(one))
    custom = dumped("config.openshift.io/v1", "ClusterVersion", "version", spec={})
    (root / "cluster-scoped-resources" / "version.yaml").write_text("---\n" + as_yaml(custom))
    (root / "etcd_info").mkdir()
    (root / "etcd_info" / "health.json").write_text('[{"health": true}]')
    (root / "etcd_info" / "alarms.json").write_text('{"header": {"cluster_id": 1}}')
    for name in ("version", "timestamp", "event-filter.html", "audit.log.gz"):
        (folder / name).write_text("<html>{{ }}")


def old_versions(folder: Path, objects: list[Json]) -> None:
    old = {"ReplicaSet": "apps/v1beta2"}
    old |= {"PodDisruptionBudget": "policy/v1beta1"}
    gone = [dumped("policy/v1beta1", "PodSecurityPolicy", "p"), dumped("extensions/v1beta1", "Ingress", "i", "shop")]
    moved = [{**one, "apiVersion": old.get(one["kind"], one["apiVersion"])} for one in objects]
    (folder / "dump.json").write_text(json.dumps(listed([*moved, *gone])))


def twice(folder: Path, objects: list[Json]) -> None:
    (folder / "a.json").write_text(json.dumps(listed(objects)))
    stale = [one for one in objects if one["kind"] in ("Node", "Pod")]
    stale = [{**one, "metadata": {**one["metadata"], "resourceVersion": "9"}} for one in stale]
    (folder / "b.json").write_text(
        json.dumps(
            listed([{**one, "spec": {**one["spec"], "taints": []}} if one["kind"] == "Node" else one for one in stale])
        )
    )


FORMS: dict[str, Write] = {
    "yaml": one_file(".yaml", lambda objects: as_yaml(listed(objects))),
    "windows": one_file(".yaml", lambda objects: "\ufeff" + as_yaml(listed(objects)).replace("\n", "\r\n")),
    "utf-16": one_file(".json", lambda objects: json.dumps(listed(objects)).encode("utf-16")),
    "lists in a list": one_file(
        ".json", lambda objects: json.dumps(listed([typed_list(*key, some) for key, some in by_kind(objects).items()]))
    ),
    "json lines": one_file(".jsonl", lambda objects: "\n".join(map(json.dumps, objects))),
    "jq": one_file(".json", lambda objects: "\n".join(json.dumps(one, indent=2) for one in objects)),
    "documents": one_file(".yml", lambda objects: "---\n".join(map(as_yaml, objects))),
    "compressed": one_file(".json.gz", lambda objects: gzip.compress(json.dumps(listed(objects)).encode())),
    "a file per kind": file_per_kind,
    "cluster-info dump": cluster_info_dump,
    "must-gather": must_gather,
    "old versions": old_versions,
    "twice": twice,
}


def outcome(path: Path, capsys: Capture, *options: str) -> tuple[list[tuple[str, ...]], list[Json], str]:
    assert main(["simulate", "-f", str(path), "-o", "json", *options]) == ExitCode.OK
    printed = capsys.readouterr()
    data = json.loads(printed.out)
    placed = sorted((one["namespace"], one["pod"], one["node"], one["phase"]) for one in data["placements"])
    return placed, data["pending"], printed.err


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_a_dump_has_the_same_outcome(form: str, tmp_path: Path, capsys: Capture) -> None:
    objects = cluster()
    (tmp_path / "plain.json").write_text(json.dumps(listed(objects)))
    folder = tmp_path / "dump"
    folder.mkdir()
    FORMS[form](folder, objects)
    placed, pending, _said = outcome(tmp_path / "plain.json", capsys)
    assert len(placed) == 31
    before = {
        (one["metadata"]["name"], one["spec"]["nodeName"]) for one in objects if "nodeName" in one.get("spec", {})
    }
    assert before < {(name, node) for _namespace, name, node, _phase in placed}
    assert [(group["reason"], group["pods"]) for group in pending] == [("OtherScheduler", ["shop/volcano-0"])]
    found = outcome(folder, capsys)
    assert found[:2] == (placed, pending)
    assert "Warning" not in found[2]


def test_reading_a_dump_again_places_what_may_move(tmp_path: Path, capsys: Capture) -> None:
    must_gather(tmp_path, cluster())
    placed, _pending, said = outcome(tmp_path, capsys, "--reschedule", "all", "--as-scheduler", "all")
    assert len(placed) == 32
    assert "Placed again: 5 pods; on their nodes stay: 2 finished, 3 mirror pods, 20 of DaemonSets" in said
    assert "Left out: 1 object of kinds that nothing here knows: 1 of config.openshift.io/v1 ClusterVersion" in said
    assert "Left out: 2 files without manifests: " in said


def test_a_dump_without_nodes_says_what_to_add(tmp_path: Path, capsys: Capture) -> None:
    objects = cluster()
    path = tmp_path / "all.json"
    path.write_text(json.dumps(listed([one for one in objects if one["kind"] != "Node"])))
    assert main(["simulate", "-f", str(path)]) == ExitCode.FAILURE
    assert "20 nodes; add what `kubectl get -A -o json nodes` prints" in capsys.readouterr().err
    path.write_text(json.dumps(listed(objects[1:])))
    assert "Warning: running pods refer to what is in none of the files: 1 nodes; " in outcome(path, capsys)[2]
    for one in objects:
        if one["kind"] == "Pod":
            one["spec"]["runtimeClassName"] = "vm"
    path.write_text(json.dumps(listed(objects)))
    assert "1 runtimeclasses; add what `kubectl get -A -o json runtimeclasses` prints" in outcome(path, capsys)[2]


@pytest.fixture
def waiting_for_storage() -> list[Json]:
    """A cluster whose one pending pod of its own waits for volumes, devices and its group; it has all that it names."""
    objects = cluster()
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "priorityClassName": "high",
        "priority": 7,
        "schedulingGroup": {"podGroupName": "train"},
        "volumes": [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("new", "bound")],
        "resourceClaims": [
            {"name": "made", "resourceClaimTemplateName": "gpu"},
            {"name": "own", "resourceClaimName": "gpu-0"},
        ],
    }
    devices = {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu.test"}}]}
    amount = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "ssd",
    }
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "ssd"}
    claimed = {"kind": "PersistentVolumeClaim", "namespace": "shop", "name": "bound", "uid": "u-bound"}
    volume |= {"csi": {"driver": "disk.test", "volumeHandle": "v"}, "claimRef": claimed}
    done = {"uid": "u-bound", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    groups = "scheduling.k8s.io/v1alpha2"
    return [
        *objects,
        pod("db-0", "shop", None, spec),
        dumped("v1", "PersistentVolumeClaim", "new", "shop", spec=amount, status={"phase": "Pending"}),
        dumped(
            *("v1", "PersistentVolumeClaim", "bound", "shop"),
            metadata=done,
            spec={**amount, "volumeName": "pv-1"},
            status={"phase": "Bound"},
        ),
        dumped("v1", "PersistentVolume", "pv-1", spec=volume, status={"phase": "Bound"}),
        dumped("storage.k8s.io/v1", "StorageClass", "ssd", provisioner="disk.test"),
        dumped("storage.k8s.io/v1", "CSIDriver", "disk.test", spec={}),
        dumped("scheduling.k8s.io/v1", "PriorityClass", "high", value=7),
        dumped("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu", "shop", spec={"spec": {"devices": devices}}),
        dumped("resource.k8s.io/v1", "ResourceClaim", "gpu-0", "shop", spec={"devices": devices}),
        dumped("resource.k8s.io/v1", "DeviceClass", "gpu.test", spec={}),
        dumped(groups, "PodGroup", "train", "shop", spec={"schedulingPolicy": {"basic": {}}}),
    ]


NAMED_BY_PENDING_PODS = {
    "PersistentVolumeClaim": "2 persistentvolumeclaims",
    "PersistentVolume": "1 persistentvolumes",
    "StorageClass": "1 storageclasses",
    "PriorityClass": "1 priorityclasses",
    "ResourceClaimTemplate": "1 resourceclaimtemplates",
    "ResourceClaim": "1 resourceclaims",
    "DeviceClass": "1 deviceclasses",
    "PodGroup": "1 podgroups",
}


@pytest.mark.parametrize("kind", ["", *NAMED_BY_PENDING_PODS])
def test_a_dump_that_lacks_what_pending_pods_name_says_what_to_add(
    kind: str, waiting_for_storage: list[Json], tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed([one for one in waiting_for_storage if one["kind"] != kind])))
    said = outcome(path, capsys)[2]
    if not kind:
        assert "in none of the files" not in said
        return
    missing = NAMED_BY_PENDING_PODS[kind]
    begin = (
        f"Warning: pending pods refer to what is in none of the files: {missing}; they may be pending for that alone"
    )
    assert begin in said
    assert f"add what `kubectl get -A -o json {missing.split()[1]}` prints" in said


def test_the_labels_of_namespaces_are_missed_by_pods_that_select_by_them(tmp_path: Path, capsys: Capture) -> None:
    objects = [one for one in cluster() if one["kind"] != "Namespace"]
    (waiting,) = (one for one in objects if one["metadata"]["name"] == "web-7d9f-5")
    term = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {},
        "namespaceSelector": {"matchLabels": {"a": "b"}},
    }
    waiting["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed(objects)))
    assert "Warning: running pods refer to what is in none of the files: 2 namespaces; add" in outcome(path, capsys)[2]


def test_objects_that_nobody_dumped_are_not_missed(tmp_path: Path, capsys: Capture) -> None:
    container = {"name": "c", "image": "i"}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "later"}}
    written = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "mine", "namespace": "shop"},
        "spec": {"containers": [container], "volumes": [volume]},
    }
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(listed([*cluster(), written])))
    assert "in none of the files" not in outcome(path, capsys)[2]
