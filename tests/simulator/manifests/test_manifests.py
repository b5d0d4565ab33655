import json
from io import StringIO
from pathlib import Path

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifest_checks import CheckedManifests, check_manifests
from trio_sched.simulator.manifests.manifests import Manifest, ManifestError
from trio_sched.simulator.manifests.scenario import load_manifests

NODE: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
POD_SPEC: Json = {"containers": [{"name": "main", "image": "i"}]}
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  nodeSelecter: {{}}
  containers:
  - name: main
    image: i
    resources:
      requests: {{cpu: {cpu}}}
"""


def problems_of(*sources: Path | str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load_manifests([StringIO(one) if isinstance(one, str) else one for one in sources])
    return [str(problem) for problem in caught.value.problems]


def names(loaded: CheckedManifests) -> list[str]:
    return [one.fields["metadata"]["name"] for one in loaded.manifests]


def test_every_problem_of_all_files_has_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(POD.format(name="a", cpu="lots") + "---\n" + POD.format(name="b", cpu="1"))
    (tmp_path / "b.json").write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [NODE, 5]}, indent=1))
    (tmp_path / "c.yml").write_text("kind: Pod\n")
    problems = problems_of(tmp_path)
    assert [problem.replace(str(tmp_path), "") for problem in problems] == [
        "/a.yaml, line 6 (document 1): Pod a: spec.nodeSelecter: unknown field; did you mean 'nodeSelector'?",
        "/a.yaml, line 11 (document 1): Pod a: spec.containers[0].resources.requests[cpu]: "
        "must be a quantity such as 500m or 2Gi, not 'lots'",
        "/a.yaml, line 18 (document 2): Pod b: spec.nodeSelecter: unknown field; did you mean 'nodeSelector'?",
        "/b.json, line 12 (document 1): expected an object, found a number",
        "/c.yml, line 1 (document 1): apiVersion is missing",
    ]


def test_the_error_counts_problems_and_files(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(POD.format(name="a", cpu="lots"))
    with pytest.raises(ManifestError, match=r"^2 problems in 1 file:\n  .*a\.yaml, line 6 .*\n  .*a\.yaml, line 11 "):
        load_manifests([path])


def test_rules_are_those_of_the_api_server() -> None:
    text = POD.format(name="a", cpu="1").replace("nodeSelecter: {}", "nodeSelector: {disk: a b}")
    (problem,) = problems_of(text)
    assert problem.startswith(
        '<text>, line 6 (document 1): Pod default/a: spec.nodeSelector: Invalid value: "a b": a valid'
    )


def test_lenient_leaves_unknown_fields_out() -> None:
    loaded = load_manifests([StringIO(POD.format(name="a", cpu="1"))], lenient=True)
    assert [warning.path for warning in loaded.warnings] == ["spec.nodeSelecter"]
    assert "nodeSelecter" not in loaded.manifests[0].fields["spec"]


def test_a_dump_may_be_of_another_version() -> None:
    pod = POD.format(name="a\n  uid: u", cpu="1")
    loaded = load_manifests([StringIO(pod)])
    assert [warning.path for warning in loaded.warnings] == ["spec.nodeSelecter"]


def test_custom_resources_without_definition_are_counted() -> None:
    custom = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, custom, custom]})
    loaded = load_manifests([StringIO(text)])
    assert names(loaded) == ["n"]
    assert loaded.skipped == {"example.com/v1 Thing": 2}
    with pytest.raises(ManifestError, match=r"there is no CustomResourceDefinition of Thing in example\.com/v1"):
        load_manifests([StringIO(text)], strict=True)
    (problem,) = problems_of(json.dumps(custom))
    assert problem == "no object is of a kind that is known here: example.com/v1 Thing"


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        ("v1", "Pood", "no kind Pood in v1 is known; did you mean 'Pod'?"),
        ("apps/v1beta1", "Deployment", "no kind Deployment in apps/v1beta1 is known; write apiVersion: apps/v1"),
        ("v1", "Deployment", "no kind Deployment in v1 is known; write apiVersion: apps/v1"),
        ("app/v1", "Deployment", "no kind Deployment in app/v1 is known; write apiVersion: apps/v1"),
        ("batch/v1", "Zzzzzzz", "no kind Zzzzzzz in batch/v1 is known"),
    ],
)
def test_kinds_of_kubernetes_must_exist(api_version: str, kind: str, hint: str) -> None:
    (problem,) = problems_of(json.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}))
    assert problem.endswith(f": kind: {hint}")


def test_a_kind_that_came_with_a_newer_version_is_said_to_be_one() -> None:
    group = {"apiVersion": "scheduling.k8s.io/v1alpha3", "kind": "CompositePodGroup", "metadata": {"name": "g"}}
    (problem,) = problems_of(json.dumps({**group, "spec": {"workloadRef": {}}}))
    text = "kind: Kubernetes 1.36 has no CompositePodGroup; that of --kubernetes-version 1.37 has it"
    assert problem.endswith(f"CompositePodGroup g: {text}")


@pytest.mark.parametrize(
    ("minor", "api_version", "kind", "text"),
    [
        (
            31,
            "resource.k8s.io/v1alpha3",
            "DeviceTaintRule",
            "DeviceTaintRule; that of --kubernetes-version 1.33 has it",
        ),
        (35, "scheduling.k8s.io/v1alpha2", "PodGroup", "PodGroup; that of --kubernetes-version 1.36 has it"),
        (
            35,
            "scheduling.k8s.io/v1alpha2",
            "Workload",
            "Workload in scheduling.k8s.io/v1alpha2; that of --kubernetes-version 1.36 has it",
        ),
    ],
)
def test_a_kind_that_the_version_does_not_serve_is_refused_if_written_and_left_out_of_dumps(
    minor: int, api_version: str, kind: str, text: str
) -> None:
    one = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    with pytest.raises(ManifestError) as caught:
        check_manifests([Manifest(one)], minor=minor)
    assert str(caught.value).endswith(f"kind: Kubernetes 1.{minor} has no {text}")
    dumped = Manifest({**one, "metadata": {"name": "x", "uid": "u"}})
    checked = check_manifests([Manifest(dict(NODE)), dumped], minor=minor)
    assert checked.skipped == {f"{api_version} {kind}": 1}
    assert names(checked) == ["n"]


def test_an_object_is_there_once() -> None:
    text = json.dumps(NODE) + "\n---\n" + json.dumps(NODE)
    (problem,) = problems_of(text)
    assert problem == (
        "<text>, line 3 (document 2): Node n: metadata.name: the same object is in <text>, line 1 already"
    )
    dumped = json.dumps({**NODE, "metadata": {"name": "n", "uid": "u"}})
    assert names(load_manifests([StringIO(f"{dumped}\n---\n{dumped}")])) == ["n"]


def test_folders_are_read_with_those_in_them(tmp_path: Path) -> None:
    below = tmp_path / "namespaces" / "core"
    below.mkdir(parents=True)
    (below / "nodes.yaml").write_text(json.dumps(NODE))
    (tmp_path / ".hidden.yaml").write_text("{")
    (tmp_path / "log.txt").write_text("{")
    assert names(load_manifests([tmp_path])) == ["n"]


def test_a_folder_without_manifests_is_an_error(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path)
    assert problem == f"{tmp_path}: no file in this folder ends in .yaml, .yml, .json, .jsonl"


def test_a_folder_with_everything_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trio_sched.simulator.manifests.manifest_files._MOST_ENTRIES", 2)
    for number in range(3):
        (tmp_path / f"{number}.yaml").write_text(json.dumps(NODE))
    (problem,) = problems_of(tmp_path)
    assert problem.endswith("there are more than 2 files and folders in it; name the one with the manifests")


def test_lists_in_lists_are_unpacked_and_their_mistakes_found() -> None:
    inner = {"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "x"}}, {"metadata": {"name": 1}}]}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [NODE, inner]}, indent=1)
    (problem,) = problems_of(text)
    assert problem.endswith("Node: metadata.name: must be a text; put it in quotes, not 1")
    line = int(problem.partition("line ")[2].partition(" ")[0])
    assert text.split("\n")[line - 1].strip() == '"name": 1'


ANY_FIELDS = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


def test_a_definition_in_the_files_makes_its_kind_known() -> None:
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Cluster",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": ANY_FIELDS}],
        },
    }
    custom = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    loaded = load_manifests([StringIO(json.dumps(custom) + "\n---\n" + json.dumps(definition))], strict=True)
    assert names(loaded) == ["things.example.com", "t"]
    del definition["spec"]["group"]  # type: ignore[attr-defined]
    assert "spec.group: Required value" in problems_of(json.dumps(definition))[0]


def test_pods_of_one_template_share_what_is_equal() -> None:
    pods = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": n}, "spec": POD_SPEC} for n in ("a", "b")]
    pods.append({**pods[0], "metadata": {"name": "c"}, "spec": {"containers": [{"name": "other", "image": "i"}]}})
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": pods})
    first, second, third = (one.fields["spec"]["containers"] for one in load_manifests([StringIO(text)]).manifests)
    assert first is second
    assert third[0]["name"] == "other"


def test_objects_of_other_versions_are_checked_as_they_are_stored() -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default", "uid": "u"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "eventTime": None,
    }
    assert names(load_manifests([StringIO(json.dumps(event))])) == ["e"]
