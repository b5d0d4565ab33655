from io import StringIO
from pathlib import Path
from uuid import UUID

import msgspec
import pytest

from trio_sched.documents.json_values import Json
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
    assert [one.fields["kind"] for one in load_manifests([StringIO(MANIFESTS)]).manifests] == [
        "PriorityClass",
        "Node",
        "Pod",
    ]


def test_dates_stay_text() -> None:
    pod = load_manifests([StringIO(MANIFESTS)]).manifests[-1]
    assert pod.fields["metadata"]["annotations"]["since"] == "2026-01-01T00:00:00Z"


def test_folders_are_read_file_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("{apiVersion: v1, kind: Node, metadata: {name: a}}")
    (tmp_path / "b.json").write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "b"}}')
    (tmp_path / "notes.txt").write_text("not a manifest")
    assert [one.fields["metadata"]["name"] for one in load_manifests([tmp_path]).manifests] == ["a", "b"]


def test_items_of_typed_lists_inherit_what_the_list_says() -> None:
    dump = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}
    (node,) = load_manifests([StringIO(msgspec.json.encode(dump).decode())]).manifests
    assert (node.fields["kind"], node.fields["apiVersion"]) == ("Node", "v1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\n\nkind: [",
            r"cluster\.yaml, line 5, column 1 \(document 2\): did not find expected node content",
        ),
        ("a: 1", r"cluster\.yaml, line 1 \(document 1\): apiVersion is missing"),
        ("\n\napiVersion: v1\nmetadata: {name: x}", r"cluster\.yaml, line 3 \(document 1\): kind is missing"),
        (
            "{apiVersion: v1, kind: Namespace, metadata: {name: a}}\n---\napiVersion: v1\nkind: Pod\n",
            r"cluster\.yaml, line 3 \(document 2\): Pod: metadata\.name: Required value: name or",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nmetadata: {name: b}\n",
            r'cluster\.yaml, line 4 \(document 1\): key "metadata" already set in map',
        ),
        (
            '{"apiVersion": "v1", "kind": "Node",\n"metadata": {"name": "a",\n"name" : "b"}}',
            r'cluster\.yaml, line 3 \(document 1\): duplicate field "metadata\.name"',
        ),
        (
            '{"apiVersion": "v1", "kind": "Node"}\n{"kind": "Node", "x": [{"a": 1},\n {"a": {}, "b": ["a"], "a": 1}]}',
            r'cluster\.yaml, line 3 \(document 2\): duplicate field "x\[1\]\.a"',
        ),
        (
            '{"apiVersion": "v1",\n"kind": "Node", "spec": 1e400}',
            r"cluster\.yaml, line 2, column 25 \(document 1\): json: cannot unmarshal number 1e400 into Go value",
        ),
        (
            '{"apiVersion": "v1",\n"kind": "Node", "x": "18446744073709551616 {",\n"y": 18446744073709551616}',
            r"cluster\.yaml, line 3, column 6 \(document 1\): json: the number 18446744073709551616 does not fit",
        ),
        (
            "a: {b: 1, c: [2,\n .inf]}",
            r"cluster\.yaml, line 2, column 2 \(document 1\): json: unsupported value: \+Inf",
        ),
        (
            "a: &x\n  1: 2\n  ~: 3\nb: *x",
            r"cluster\.yaml, line 3, column 3 \(document 1\): unsupported map key of type: %!s\(<nil>\)",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n",
            r"cluster\.yaml, line 3 \(document 1\): Node: metadata\.name: must be a text; put it in quotes, not false",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: x, labels: {a: 'x', gpu: true}}\n",
            r"cluster\.yaml, line 3 .*: Node x: metadata\.labels\[gpu\]: must be a text; put it in quotes, not true",
        ),
        (
            "apiVersion: v1\nkind: Node\nmetadata: {name: x, annotations: [a]}\n",
            r"cluster\.yaml, .*: Node x: metadata\.annotations: must be a mapping, not \[\"a\"\]",
        ),
        ("- 1", r"cluster\.yaml, line 1 \(document 1\): expected an object, found a list"),
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
    assert populate(server, load_manifests([StringIO(MANIFESTS)]).manifests) == 3
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
    assert stored.fields["spec"].items() >= {"nodeName": "n1", "priority": 3}.items()
    assert stored.fields["status"] == dumped["status"]
    assert stored.fields["metadata"]["uid"] == "from-afar"
    assert stored.fields["metadata"]["creationTimestamp"] == "2025-05-05T05:05:05Z"
    assert stored.fields["metadata"]["resourceVersion"] == str(stored.version) != "4711"


def test_a_job_of_a_dump_without_its_selector_selects_by_its_uid(server: ApiServer) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u"},
        "spec": {"template": template},
    }
    populate(server, [job])
    stored = server.store.get("jobs.batch", "default/j")
    assert stored is not None
    spec = stored.fields["spec"]
    assert spec["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": "u"}
    assert spec["template"]["metadata"]["labels"].items() >= spec["selector"]["matchLabels"].items()


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
            "Thing t: kind: there is no CustomResourceDefinition of Thing in example.com/v1",
        ),
        ({**POD, "spec": {"containers": 5}}, r"Pod p: spec\.containers: must be a list, not 5"),
        ({**POD, "spec": {"containers": [5]}}, r"Pod p: spec\.containers\[0\]: must be a mapping, not 5"),
        ({**POD, "spec": {"containers": [None]}}, r"spec\.containers\[0\]\.name: Required value"),
        (
            {**POD, "spec": {"nodeSelector": {"a": 5}}},
            r"spec\.nodeSelector\[a\]: must be a text; put it in quotes, not 5",
        ),
        ({**POD, "spec": {"priority": "high"}}, r"spec\.priority: must be a whole number of 32 bits, not 'high'"),
        ({**POD, "spec": {"hostNetwork": "yes"}}, r"spec\.hostNetwork: must be true or false, not 'yes'"),
        (
            {**POD, "spec": {"volumes": [{"name": "v", "persistentVolumeClaim": 5}]}},
            r"Pod p: spec\.volumes\[0\]\.persistentVolumeClaim: must be a mapping, not 5",
        ),
        ({**POD, "spec": {"volumes": "v" * 9999}}, r"must be a list, not 'v+… \(10001 characters\)"),
        (
            {**POD, "spec": {"topologySpreadConstraints": [{"maxSkew": "a"}]}},
            r"spec\.topologySpreadConstraints\[0\]\.maxSkew: must be a whole number of 32 bits, not 'a'",
        ),
        ({**POD, "metadata": {"name": "p", "uid": "u"}, "spec": []}, r"Pod p: spec: must be a mapping, not \[\]"),
        ({**POD, "metadata": {"name": "p", "uid": "u"}}, r"Pod default/p: spec\.containers: Required value"),
        ({**NODE, "status": {"allocatable": {"cpu": "x"}}}, r"status\.allocatable\[cpu\]: must be a quantity such as"),
        ({**NODE, "status": {"allocatable": [1]}}, r"Node n: status\.allocatable: must be a mapping, not \[1\]"),
        ({**NODE, "spec": {"taints": "x"}}, r"Node n: spec\.taints: must be a list, not 'x'"),
        ({**NODE, "metadata": {"name": "n", "ownerReferences": "x"}}, r"metadata\.ownerReferences: must be a list"),
        (
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": 5},
            r"PersistentVolumeClaim c: spec: must be a mapping, not 5",
        ),
        (
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "d"}},
            r"CustomResourceDefinition d: spec\.group: Required value",
        ),
        (
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}},
            r"Pod default/p: spec\.containers: Required value",
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


def test_nulls_pass_and_unknown_fields_do_not(server: ApiServer) -> None:
    node = {**NODE, "spec": {"taints": None}, "status": {"allocatable": {"cpu": 1.5, "pods": 9}}}
    assert populate(server, [node]) == 1
    with pytest.raises(ManifestError, match=r"Node n: spec\.taint: unknown field; did you mean 'taints'\?"):
        populate(server, [{**NODE, "spec": {"taint": []}}])


def test_pods_beyond_a_quota_are_left_out_if_that_is_wanted(server: ApiServer) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}}}
    spec = {"containers": [{"name": "c", "image": "i"}]}
    objects = [quota, *({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec} for name in "ab")]
    left_out: list[str] = []
    loaded = load_manifests([StringIO("\n".join(msgspec.json.encode(one).decode() for one in objects))]).manifests
    assert populate(server, loaded, lambda problem: left_out.append(str(problem))) == 2
    (said,) = left_out
    assert said.startswith('<text>, line 3 (document 3): Pod default/b: pods "b" is forbidden: exceeded quota: q, ')
    missing = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}, "spec": {**spec, "priorityClassName": "x"}}
    with pytest.raises(ManifestError, match="no PriorityClass"):
        populate(server, [missing], lambda problem: left_out.append(str(problem)))


def test_what_every_cluster_has_may_be_among_the_manifests(server: ApiServer) -> None:
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 2_000_000_000}
    objects = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}},
        {**classes, "metadata": {"name": "system-cluster-critical"}},
    ]
    populate(server, objects)
    stored = server.store.get("namespaces", "default")
    assert stored is not None
    assert stored.fields["metadata"]["labels"] == {"team": "a", "kubernetes.io/metadata.name": "default"}


def test_custom_resources_of_a_dump_are_stored(server: ApiServer) -> None:
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com", "uid": "u"},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions},
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t", "uid": "v"}}
    assert populate(server, [definition, thing]) == 2
    assert server.store.get("things.example.com", "t") is not None


def test_service_accounts_without_a_manifest_are_created() -> None:
    server = ApiServer()
    spec: Json = {"containers": [{"name": "c", "image": "i"}], "serviceAccountName": "robot"}
    never = {**spec, "restartPolicy": "Never", "serviceAccountName": "timer"}
    timed = {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": never}}}}
    populate(
        server,
        [
            {**POD, "spec": spec},
            {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c", "namespace": "a"}, "spec": timed},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "labels": {"a": "b"}}},
        ],
    )
    accounts = server.store.collection("serviceaccounts").objects
    assert [*accounts] == ["default/robot", "a/timer"]
    assert accounts["default/robot"].fields["metadata"]["labels"] == {"a": "b"}


def test_runtime_classes_without_a_manifest_are_created_with_the_overhead_of_their_pods() -> None:
    server = ApiServer()
    spec: Json = {"containers": [{"name": "c", "image": "i"}], "runtimeClassName": "vm", "overhead": {"cpu": "1"}}
    populate(server, [{**POD, "spec": spec}])
    (runtime_class,) = server.store.collection("runtimeclasses.node.k8s.io").objects.values()
    assert runtime_class.fields["overhead"] == {"podFixed": {"cpu": "1"}}
    with pytest.raises(ManifestError, match="Pod's Overhead doesn't match"):
        populate(server, [{**POD, "metadata": {"name": "q"}, "spec": {**spec, "overhead": {"cpu": "2"}}}])
    del spec["runtimeClassName"]
    with pytest.raises(ManifestError, match="Pod Overhead set without corresponding RuntimeClass"):
        populate(server, [{**POD, "metadata": {"name": "q"}, "spec": spec}])


def test_the_defaults_of_a_limit_range_stay_in_its_namespace() -> None:
    """Equal pods of files share their containers."""
    limit = {"type": "Container", "defaultRequest": {"cpu": "1"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l", "namespace": "a"}}
    pods = [
        {**POD, "metadata": {"name": name, "namespace": name[0]}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        for name in ("a1", "a2", "b1")
    ]
    text = msgspec.json.encode(
        {"apiVersion": "v1", "kind": "List", "items": [{**limits, "spec": {"limits": [limit]}}, *pods]}
    )
    server = ApiServer()
    populate(server, load_manifests([StringIO(text.decode())]).manifests)
    found = [stored.fields for stored in server.store.collection("pods").in_order()]
    assert [pod["spec"]["containers"][0]["resources"] for pod in found] == [{"requests": {"cpu": "1"}}] * 2 + [{}]
    assert ["annotations" in pod["metadata"] for pod in found] == [True, True, False]


def test_limit_ranges_need_no_name() -> None:
    """The API server gives them a UUID; to other kinds it gives none."""
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {}, "spec": {"limits": []}}
    server = ApiServer()
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [limits, limits]}).decode()
    populate(server, load_manifests([StringIO(text)]).manifests)
    names = [stored.fields["metadata"]["name"] for stored in server.store.collection("limitranges").in_order()]
    assert len(set(names)) == 2
    assert all(map(UUID, names))
