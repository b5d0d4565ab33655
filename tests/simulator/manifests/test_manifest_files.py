import gzip
import json
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.manifests.manifest_checks import CheckedManifests
from trio_sched.simulator.manifests.manifests import ManifestError
from trio_sched.simulator.manifests.scenario import load_manifests

NODES: list[Json] = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}} for name in "abc"]
LINES = "\n".join(map(json.dumps, NODES))


def names(loaded: CheckedManifests) -> list[str]:
    return [one.fields["metadata"]["name"] for one in loaded.manifests]


def problem_of(source: Path | StringIO) -> str:
    with pytest.raises(ManifestError) as caught:
        load_manifests([source])
    (problem,) = caught.value.problems
    return str(problem)


@pytest.mark.parametrize("name", ["dump.json.gz", "dump.yaml.gz", "dump"])
def test_compressed_files_are_unpacked(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(gzip.compress(LINES.encode()))
    assert names(load_manifests([tmp_path / name])) == ["a", "b", "c"]
    if name != "dump":
        assert names(load_manifests([tmp_path])) == ["a", "b", "c"]


def test_joined_compressed_files_and_standard_input_are_unpacked() -> None:
    first, *others = map(json.dumps, NODES)
    joined = gzip.compress(first.encode()) + gzip.compress("\n".join(others).encode()) + bytes(512)
    assert names(load_manifests([TextIOWrapper(BytesIO(joined))])) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (gzip.compress(LINES.encode())[:-20], "it is packed with gzip, and its end is missing"),
        (b"\x1f\x8bnothing else", "it begins as gzip does, but cannot be unpacked: "),
        (gzip.compress(bytes(5000)), "it is larger than 1000 bytes when it is unpacked"),
        (gzip.compress(bytes(900)) * 2, "it is larger than 1000 bytes when it is unpacked"),
    ],
)
def test_what_cannot_be_unpacked_is_refused(
    content: bytes, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trio_sched.simulator.manifests.manifest_files.MAX_BYTES", 1000)
    (tmp_path / "dump.gz").write_bytes(content)
    assert f"dump.gz: cannot be read: {problem}" in problem_of(tmp_path / "dump.gz")


@pytest.mark.parametrize("between", ["\n", "", "\r\n\r\n", " "])
def test_objects_of_json_may_follow_each_other(between: str) -> None:
    assert names(load_manifests([StringIO(between.join(map(json.dumps, NODES)) + between)])) == ["a", "b", "c"]


def test_a_mistake_in_json_lines_has_its_place() -> None:
    wrong = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "d"}, "specc": {}}
    problem = problem_of(StringIO(f"{LINES}\n\n{json.dumps(wrong)}\n"))
    assert problem == "<text>, line 5 (document 4): Node d: specc: unknown field; did you mean 'spec'?"


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps({"apiVersion": "v1", "kind": "List", "items": NODES}).encode())
    assert names(load_manifests([path])) == ["a", "b", "c"]
    path.write_bytes(b"\xef\xbb\xbfapiVersion: v1\r\nkind: Node\r\nmetadata:\r\n  name: a\r\n---\r\n")
    assert names(load_manifests([path])) == ["a"]


def test_files_of_a_folder_that_are_no_manifests_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "nodes.jsonl").write_text(LINES)
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    (tmp_path / "health.json").write_text('[{"healthy": true}]')
    (tmp_path / "empty.yaml").write_text("# nothing\n---\n")
    loaded = load_manifests([tmp_path])
    assert names(loaded) == ["a", "b", "c"]
    assert [Path(one).name for one in loaded.files.no_manifests] == ["health.json", "values.yaml"]


@pytest.mark.parametrize("text", ["kind: Pod\n", "apiVersion: v1\n", "metadata: {name: a}\n"])
def test_half_a_manifest_is_a_mistake_in_a_folder_too(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(text)
    assert "is missing" in problem_of(tmp_path)


def test_a_named_file_must_be_one_of_manifests(tmp_path: Path) -> None:
    (tmp_path / "values.yaml").write_text("replicas: 3\n")
    assert "apiVersion is missing" in problem_of(tmp_path / "values.yaml")
    assert problem_of(tmp_path).endswith(": holds no object")


def test_a_list_of_objects_is_said_how_to_write() -> None:
    assert problem_of(StringIO("- a\n")).endswith(
        "expected an object, found a list; write {apiVersion: v1, kind: List, items: [...]} around it"
    )


def test_helm_charts_are_left_out_and_kustomizations_noted(tmp_path: Path) -> None:
    chart = tmp_path / "app"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: app\n")
    (chart / "templates" / "a.yaml").write_text("{{- if x }}")
    (tmp_path / "kustomization.yaml").write_text("resources: [nodes.yaml]\n")
    (tmp_path / "nodes.yaml").write_text(LINES)
    loaded = load_manifests([tmp_path])
    assert names(loaded) == ["a", "b", "c"]
    assert (loaded.files.charts, loaded.files.kustomized) == ([str(chart)], [str(tmp_path)])
    assert f"{chart}: is a Helm chart; write `helm template {chart}" in problem_of(chart)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("{{- if .Values.x }}\na: b\n", "this looks like a template of Helm"),
        (
            '{"kind": "NodeList", "apiVersion": "v1"}\n==== START logs for container c of pod p ====\nx\n',
            "`kubectl cluster-info dump`",
        ),
    ],
)
def test_what_no_manifest_is_is_named(text: str, cause: str) -> None:
    assert cause in problem_of(StringIO(text))
