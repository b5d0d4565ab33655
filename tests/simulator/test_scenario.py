from io import StringIO
from pathlib import Path

import msgspec
import pytest
from simulator_api import Json

from trio_sched.simulator import ApiServer, ManifestError, load_manifests, populate

MANIFESTS = """\
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop, annotations: {since: 2026-01-01T00:00:00Z}}
spec: {containers: [{name: c, image: i}], priorityClassName: high}
---
# nothing but a comment
---
apiVersion: v1
kind: List
items:
- apiVersion: scheduling.k8s.io/v1
  kind: PriorityClass
  metadata: {name: high}
  value: 7
- {apiVersion: v1, kind: Node, metadata: {name: n1}, status: {capacity: {cpu: "4"}}}
"""
POD: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
NODE: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def test_dependencies_are_created_first() -> None:
    assert [one["kind"] for one in load_manifests([StringIO(MANIFESTS)])] == ["PriorityClass", "Node", "Pod"]


def test_dates_stay_text() -> None:
    pod = load_manifests([StringIO(MANIFESTS)])[-1]
    assert pod["metadata"]["annotations"]["since"] == "2026-01-01T00:00:00Z"


def test_folders_are_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: a}}")
    (tmp_path / "b.json").write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [one["metadata"]["name"] for one in load_manifests([tmp_path])] == ["a", "b"]


def test_items_of_typed_lists_inherit_what_the_list_says() -> None:
    dump = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}
    (node,) = load_manifests([StringIO(msgspec.json.encode(dump).decode())])
    assert (node["kind"], node["apiVersion"]) == ("Node", "v1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\n\nkind: [",
            r"cluster\.yaml, line 5, column 1 \(document 2\): did not find expected node content",
        ),
        ("a: 1", r"cluster\.yaml, line 1 \(document 1\): apiVersion is missing"),
        ("\n\napiVersion: v1\nmetadata: {name: x}", r"cluster\.yaml, line 3 \(document 1\): kind is missing"),
        (
            "{apiVersion: v1, kind: Pod, metadata: {name: a}}\n---\napiVersion: v1\nkind: Pod\n",
            r"cluster\.yaml, line 3 \(document 2\): the Pod has no metadata\.name",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nmetadata: {name: b}\n",
            r'cluster\.yaml, line 1 \(document 1\): line 4: key "metadata" already set in map',
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
            r"cluster\.yaml, line 1 \(document 1\): the Node's metadata\.name is no text; put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: x, labels: {a: 'x', gpu: true}}\n",
            r"cluster\.yaml, .*: the Node's metadata\.labels\[gpu\] is no text; put it in quotes",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: x, annotations: [a]}\n",
            r"cluster\.yaml, .*: the Node's metadata\.annotations are no mapping",
        ),
        ("- 1", r"cluster\.yaml, line 1 \(document 1\): expected an object, found list"),
    ],
)
def test_mistakes_are_reported_with_file_document_and_line(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text)
    with pytest.raises(ManifestError, match=expected):
        load_manifests([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match=r"missing\.yaml: cannot be read"):
        load_manifests([tmp_path / "missing.yaml"])


def test_a_cluster_is_populated_with_all_it_needs(server: ApiServer) -> None:
    assert populate(server, load_manifests([StringIO(MANIFESTS)])) == 3
    pod = server.store.get("pods", "shop/p")
    assert pod is not None
    assert pod.fields["spec"]["priority"] == 7
    assert server.store.get("namespaces", "shop") is not None


def test_a_dumped_cluster_keeps_what_its_server_made_of_it(server: ApiServer) -> None:
    dumped = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "from-afar",
            "resourceVersion": "4711",
            "creationTimestamp": "2025-05-05T05:05:05Z",
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}], "priority": 3},
        "status": {"phase": "Running", "podIP": "10.1.1.1"},
    }
    populate(server, [dumped])
    stored = server.store.get("pods", "default/p")
    assert stored is not None
    assert stored.fields["spec"] == dumped["spec"]
    assert stored.fields["status"] == dumped["status"]
    assert stored.fields["metadata"]["uid"] == "from-afar"
    assert stored.fields["metadata"]["creationTimestamp"] == "2025-05-05T05:05:05Z"
    assert stored.fields["metadata"]["resourceVersion"] == str(stored.version) != "4711"


def test_a_status_written_by_hand_is_kept_on_top_of_the_defaults(server: ApiServer) -> None:
    manifest: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "done"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Succeeded"},
    }
    populate(server, [manifest])
    stored = server.store.get("pods", "default/done")
    assert stored is not None
    assert stored.fields["status"] == {"phase": "Succeeded", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}},
            "Thing t: no resource of kind Thing in example.com/v1 is served",
        ),
        ({**POD, "spec": {"containers": 5}}, r"Pod p: spec\.containers must be a list, not 5"),
        ({**POD, "spec": {"containers": [5]}}, r"Pod p: spec\.containers\[0\] must be a mapping, not 5"),
        ({**POD, "spec": {"containers": [None]}}, r"Pod p: spec\.containers\[0\] must be an item, not None"),
        (
            {**POD, "spec": {"nodeSelector": {"a": 5}}},
            r"spec\.nodeSelector\[a\] must be a text; put it in quotes, not 5",
        ),
        ({**POD, "spec": {"priority": "high"}}, r"spec\.priority must be a whole number of 32 bits, not 'high'"),
        ({**POD, "spec": {"hostNetwork": "yes"}}, r"spec\.hostNetwork must be true or false, not 'yes'"),
        (
            {**POD, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": 5}]}},
            r"Pod p: spec\.volumes\[0\]\.persistentVolumeClaim must be a mapping, not 5",
        ),
        ({**POD, "spec": {"volumes": "v" * 9999}}, r"must be a list, not 'v+… \(10001 characters\)"),
        (
            {**POD, "spec": {"topologySpreadConstraints": [{"maxSkew": "a"}]}},
            r"spec\.topologySpreadConstraints\[0\]\.maxSkew must be a whole number of 32 bits, not 'a'",
        ),
        ({**POD, "metadata": {"name": "p", "uid": "u"}, "spec": []}, r"Pod p: spec must be a mapping, not \[\]"),
        ({**POD, "metadata": {"name": "p", "uid": "u"}}, "Pod p: spec is missing"),
        ({**NODE, "status": {"allocatable": {"cpu": "x"}}}, r"status\.allocatable\[cpu\] must be a quantity such as"),
        ({**NODE, "status": {"allocatable": [1]}}, r"Node n: status\.allocatable must be a mapping, not \[1\]"),
        ({**NODE, "spec": {"taints": "x"}}, r"Node n: spec\.taints must be a list, not 'x'"),
        ({**NODE, "metadata": {"name": "n", "ownerReferences": "x"}}, r"metadata\.ownerReferences must be a list"),
        (
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": 5},
            r"PersistentVolumeClaim c: spec must be a mapping, not 5",
        ),
        (
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"}},
            "CustomResourceDefinition d: it lacks a field, or one has the wrong type: KeyError: 'spec'",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}},
            'Pod p: Pod "p" is invalid: spec.containers: Required value',
        ),
    ],
)
def test_refused_objects_are_reported_by_name(server: ApiServer, manifest: Json, expected: str) -> None:
    with pytest.raises(ManifestError, match=expected):
        populate(server, [manifest])


def test_an_object_with_a_uid_and_no_name_is_given_one(server: ApiServer) -> None:
    container = {"name": "c", "image": "i"}
    metadata = {"generateName": "p-", "uid": "from-afar"}
    populate(server, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}])
    (pod,) = server.store.collection("pods").objects.values()
    assert pod.fields["metadata"]["name"].startswith("p-")


def test_fields_that_kubernetes_does_not_know_and_nulls_pass(server: ApiServer) -> None:
    node = {**NODE, "spec": {"taints": None, "nonsense": 5}, "status": {"allocatable": {"cpu": 1.5, "pods": 9}}}
    assert populate(server, [node]) == 1
