"""`trio-sched explain`: what can be asked about, where the cluster comes from, how it is shown, and the exit codes."""

import json
import sys
from collections.abc import Sequence
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from contrib.scenarios.manifests import claim, node, pod, storage_class
from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.explanation.text import Layout, explanation_text

Capture = pytest.CaptureFixture[str]
Json = dict[str, Any]

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"
SCHEMA = Draft202012Validator(json.loads((REFERENCE / "explanation.schema.json").read_text()))
NOT_FOUND = 2
QUIET = """
from trio_sched.plugin_api import Change, edit_node, hookimpl, replace_fields, unresolvable

def awake(node):
    labels = {key: value for key, value in node.labels.items() if key != "quiet"}
    return replace_fields(node, metadata=replace_fields(node.metadata, labels=labels))

class Quiet:
    name = "Quiet"

    def __init__(self, args, handle):
        pass

    @hookimpl
    def filter_node(self, pod, node):
        if "quiet" in node.labels:
            remedy = Change(title=f"wake {node.name}", edits=(edit_node(node.name, awake),))
            return unresolvable("node(s) were quiet").about("quiet zone", remedy=remedy)
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: %s, plugins: {multiPoint: {enabled: [{name: Quiet}]}}}]
"""


def listed(objects: Sequence[Json]) -> str:
    """*objects* as ``kubectl get -o json`` prints them, with what an API server has added."""
    for number, one in enumerate(objects, 1):
        one["metadata"] |= {
            "uid": f"uid-{number}",
            "resourceVersion": str(number),
            "creationTimestamp": "2026-01-01T00:00:00Z",
        }
        if one["kind"] == "Pod":
            one["spec"].setdefault("schedulerName", "default-scheduler")
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}, indent=1)


def of(kind: str, name: str, made: Json) -> Json:
    """*made* with a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def replica_set() -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "x"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web-abc", "namespace": "default"}
    return of("Deployment", "web", {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})


def web(number: int) -> Json:
    labels = {"app": "web", "pod-template-hash": "abc"}
    made = pod(f"web-abc-{number}", requests={"memory": "4Gi"}, labels=labels)
    return of("ReplicaSet", "web-abc", made)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    """Two pods of a deployment are pending, one pod of nobody fits, one has a node, two are of another scheduler."""
    grouped = [pod(f"train-{number}", schedulingGroup={"podGroupName": "train"}) for number in range(2)]
    for one in grouped:
        one["spec"]["schedulingGates"] = [{"name": "example.com/wait"}]
    objects = [
        node("n1"),
        node("n2", memory="2Gi"),
        pod("running", requests={"memory": "5Gi"}, on="n1"),
        replica_set(),
        web(1),
        web(2),
        pod("fits"),
        pod("other", requests={"cpu": "16"}, schedulerName="custom"),
        pod("theirs", on="n2", schedulerName="custom"),
        *grouped,
    ]
    file = tmp_path / "dump.json"
    file.write_text(listed(objects))
    return file


def explained(capsys: Capture, *arguments: str) -> tuple[int, Json]:
    """Exit code and data."""
    code = main(["explain", *arguments, "-o", "json"])
    printed = capsys.readouterr()
    data: Json = json.loads(printed.out)
    SCHEMA.validate(data)
    return code, data


def pods_of(data: Json) -> list[str]:
    return sorted(key for one in data["explanations"] for key in one["alike"])


def refused(capsys: Capture, *arguments: str) -> tuple[int, str]:
    """Exit code and error."""
    code = main(["explain", *arguments])
    printed = capsys.readouterr()
    assert printed.out == ""
    return code, printed.err.strip()


# --- names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "pods"),
    [
        ("web-abc-1", ["default/web-abc-1"]),
        ("default/web-abc-1", ["default/web-abc-1"]),
        ("pod/web-abc-1", ["default/web-abc-1"]),
        ("deployment/web", ["default/web-abc-1", "default/web-abc-2"]),
        ("deployment.apps/web", ["default/web-abc-1", "default/web-abc-2"]),
        ("Deploy/web", ["default/web-abc-1", "default/web-abc-2"]),
        ("replicasets/web-abc", ["default/web-abc-1", "default/web-abc-2"]),
        ("web", ["default/web-abc-1", "default/web-abc-2"]),
        ("deployment web", ["default/web-abc-1", "default/web-abc-2"]),
        ("pod web-abc-1 web-abc-2", ["default/web-abc-1", "default/web-abc-2"]),
        ("podgroup/train", ["default/train-0", "default/train-1"]),
        ("web-abc-2 podgroup/train", ["default/train-0", "default/train-1", "default/web-abc-2"]),
    ],
)
def test_a_name_stands_for_pods(words: str, pods: list[str], dump: Path, capsys: Capture) -> None:
    code, data = explained(capsys, *words.split(), "-f", str(dump))
    assert (code, pods_of(data)) == (ExitCode.FAILURE, pods)


def test_pods_of_one_template_are_explained_together(dump: Path, capsys: Capture) -> None:
    _code, data = explained(capsys, "deployment/web", "-f", str(dump))
    (one,) = data["explanations"]
    assert one["workload"] == {"kind": "Deployment", "name": "web"}
    assert one["remedies"][0]["commands"][0].startswith("kubectl patch deployment web -n default -p ")
    assert main(["explain", "deployment/web", "-f", str(dump)]) == ExitCode.FAILURE
    assert "\nThe same holds for default/web-abc-2\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("web-abc-3", "there is no pod default/web-abc-3; did you mean default/web-abc-2?"),
        ("deployment/wob", "there is no pod of deployment default/wob"),
        ("elsewhere/fits", "there is no pod elsewhere/fits; did you mean default/fits?"),
        ("-n defualt train", "there is no pod defualt/train; did you mean namespace default?"),
        ("podgroup/trains", "there is no pod group default/trains"),
        ("fits nothing", "there is no pod default/nothing"),
    ],
)
def test_what_is_not_there_is_named_with_what_may_be_meant(words: str, error: str, dump: Path, capsys: Capture) -> None:
    code, said = refused(capsys, *words.split(), "-f", str(dump))
    assert code == NOT_FOUND
    assert said.splitlines()[-1].startswith(f"Error: {error}")


def test_what_the_demo_does_not_have_is_an_error_of_one_line(capsys: Capture) -> None:
    code, said = refused(capsys, "--demo", "wrong-label-001")
    assert (code, said) == (
        NOT_FOUND,
        "Error: there is no pod default/wrong-label-001; did you mean misfits/wrong-label-001?",
    )


@pytest.mark.parametrize("words", [[], ["web", "--all-pending"]])
def test_either_names_or_all_pending_pods_are_asked_about(words: list[str], dump: Path, capsys: Capture) -> None:
    code, said = refused(capsys, *words, "-f", str(dump))
    assert code == ExitCode.NO_ANSWER
    assert "give the names of pods, or --all-pending" in said


def test_all_pending_pods_begin_with_their_causes(dump: Path, capsys: Capture) -> None:
    code, data = explained(capsys, "--all-pending", "-f", str(dump))
    assert code == ExitCode.FAILURE
    pending = [*(f"default/train-{n}" for n in range(2)), "default/web-abc-1", "default/web-abc-2"]
    assert pods_of(data) == sorted(["default/fits", "default/other", *pending])
    assert main(["explain", "--all-pending", "-f", str(dump)]) == ExitCode.FAILURE
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == ["6 pods are pending.", "", " PODS  CAUSE"]
    causes = {line[7:]: int(line[:6]) for line in lines[3 : lines.index("", 3)]}
    assert causes == {
        "memory 4.0Gi": 2,
        "scheduling gate example.com/wait": 2,
        "cpu 16": 1,
        "none any more: they fit a node now": 1,
    }


def test_all_pending_pods_can_be_those_of_one_namespace(tmp_path: Path, capsys: Capture) -> None:
    objects = [node("n1"), *(pod(requests={"cpu": "16"}) for _ in range(2))]
    objects[1]["metadata"]["namespace"] = "shop"
    file = tmp_path / "dump.json"
    file.write_text(listed(objects))
    assert pods_of(explained(capsys, "--all-pending", "-f", str(file))[1]) == ["default/asked", "shop/asked"]
    assert pods_of(explained(capsys, "--all-pending", "-n", "shop", "-f", str(file))[1]) == ["shop/asked"]
    assert main(["explain", "--all-pending", "-n", "nowhere", "-f", str(file)]) == ExitCode.OK
    assert capsys.readouterr().out == "No pod is pending.\n"


def test_a_cluster_without_pending_pods_says_so(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    file.write_text(listed([node("n1"), pod("running", on="n1")]))
    assert main(["explain", "--all-pending", "-f", str(file)]) == ExitCode.OK
    assert capsys.readouterr().out == "No pod is pending.\n"


# --- nodes ----------------------------------------------------------------------------------------------------------


def test_a_pending_pod_is_asked_why_it_is_not_on_a_node(dump: Path, capsys: Capture) -> None:
    _code, data = explained(capsys, "web-abc-1", "--node", "n1", "--node", "n22", "-f", str(dump))
    here, missing = data["explanations"][0]["onNodes"]
    assert here["clauses"] == [
        {"title": "memory 4.0Gi", "cause": "it asks for 4.0Gi, the most that is free is 3.0Gi (n1)"}
    ]
    assert (missing["exists"], missing["nearest"]) == (False, "n2")
    main(["explain", "web-abc-1", "--node", "n1", "--node", "n22", "-f", str(dump)])
    printed = capsys.readouterr().out
    assert "\nNode n1: not possible. memory 4.0Gi: it asks for 4.0Gi" in printed
    assert "\nNode n22: there is no such node; did you mean n2?\n" in printed


def test_a_placed_pod_is_asked_why_it_is_there(dump: Path, capsys: Capture) -> None:
    code, data = explained(capsys, "running", "--node", "n2", "-f", str(dump))
    (one,) = data["explanations"]
    assert (code, one["node"], one["cause"]) == (ExitCode.OK, "n1", None)
    assert [row["node"] for row in one["scores"]] == ["n1"]
    assert one["onNodes"][0]["clauses"][0]["title"] == "memory 5.0Gi"
    assert main(["explain", "fits", "--node", "n1", "-f", str(dump)]) == ExitCode.OK
    assert "\nNode n1: possible, with a score of " in capsys.readouterr().out


def test_scores_fit_the_width_and_leave_out_plugins_that_do_not_tell_nodes_apart(
    tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "dump.json"
    labels = {"disk": "ssd"}
    terms = [{"weight": 5, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}]
    prefers = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    taint = {"key": "slow", "effect": "PreferNoSchedule"}
    nodes = [node("one", labels=labels), node("a-node-with-a-name-of-40-characters-xxxx", memory="6Gi", taints=[taint])]
    file.write_text(listed([*nodes, pod(requests={"cpu": "1", "memory": "2Gi"}, on="one", affinity=prefers)]))
    _code, data = explained(capsys, "asked", "-f", str(file))
    lines = explanation_text(data["explanations"][0], Layout(width=80)).splitlines()
    heads = [line for line in lines if line.startswith(" NODE")]
    assert len(heads) > 1
    assert all("ImageLocality" not in line for line in heads)
    assert max(map(len, lines)) <= 80
    same = next(number for number, line in enumerate(lines) if "The same for all: " in line)
    assert "ImageLocality 0×1" in " ".join(lines[same:])
    for plugin in ("NodeAffinity", "TaintToleration", "NodeResourcesFit"):
        assert sum(plugin in line for line in heads) == 1


def test_all_nodes_are_named_on_request(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    file.write_text(listed([*(node(f"node-{n}") for n in range(9)), pod(requests={"cpu": "16"})]))
    main(["explain", "asked", "-f", str(file)])
    few = capsys.readouterr().out
    main(["explain", "asked", "--nodes", "-f", str(file)])
    every = capsys.readouterr().out
    assert "cpu 16: node-0, node-1, node-2 and 6 more\n" in few
    assert all(f"node-{n}" in every for n in range(9))


# --- clusters -------------------------------------------------------------------------------------------------------


def test_a_dump_is_read_from_standard_input_and_from_folders(
    dump: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(dump.read_bytes())))
    assert pods_of(explained(capsys, "web", "-f", "-")[1]) == ["default/web-abc-1", "default/web-abc-2"]
    assert pods_of(explained(capsys, "fits", "-f", str(dump.parent))[1]) == ["default/fits"]


def test_the_demo_has_pods_to_explain(capsys: Capture) -> None:
    code, data = explained(capsys, "--demo", "-n", "misfits", "wrong-label-001")
    (one,) = data["explanations"]
    assert (code, one["cause"]["reasons"]) == (ExitCode.FAILURE, ["NodeSelectorMismatch"])
    assert one["remedies"][3]["commands"] == ["kubectl label node general-01 disk=nvme --overwrite"]


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (lambda nodes, asked: asked["spec"].update(containers=5), "Pod default/asked: "),
        (lambda nodes, asked: asked["spec"].update(priority="high"), "Pod default/asked: "),
        (lambda nodes, asked: nodes["metadata"].update(labels=[1]), "Node n1: "),
        (lambda nodes, asked: nodes["spec"].update(taints={"key": "x"}), "Node n1: "),
    ],
)
def test_an_object_that_is_none_of_its_kind_is_named_with_file_and_line(
    change: Any, place: str, tmp_path: Path, capsys: Capture
) -> None:
    objects = [node("n1"), pod()]
    change(*objects)
    file = tmp_path / "dump.json"
    file.write_text(listed(objects))
    code, said = refused(capsys, "asked", "-f", str(file))
    assert code == ExitCode.NO_ANSWER
    line = file.read_text().splitlines().index("  {", 5 if place.startswith("Pod") else 0) + 2
    assert said.startswith(f"Error: {file}, line {line - 1} (document 1): {place}Expected ")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "holds no object"),
        ('{"kind": "List", "items": [5]}', "line 1 (document 1): "),
        ('{"kind": "List"', "line 2, column 1 (document 1): "),
    ],
)
def test_a_file_that_is_no_dump_is_refused(text: str, error: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    file.write_text(text)
    code, said = refused(capsys, "asked", "-f", str(file))
    assert code == ExitCode.NO_ANSWER
    assert error in said


def test_a_dump_without_nodes_says_that_there_are_none(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    file.write_text(listed([pod()]))
    code, data = explained(capsys, "asked", "-f", str(file))
    (one,) = data["explanations"]
    assert (code, one["nodes"], one["cause"]["text"]) == (ExitCode.FAILURE, 0, "there are no nodes")


def test_a_kubeconfig_that_is_not_there_is_named(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nowhere/kubeconfig")
    code, said = refused(capsys, "asked")
    assert (code, "there is no kubeconfig: $KUBECONFIG names /nowhere/kubeconfig" in said) == (ExitCode.NO_ANSWER, True)


# --- schedulers and plugins -----------------------------------------------------------------------------------------


def test_pods_of_another_scheduler_are_judged_by_the_first_profile_which_a_note_says(
    dump: Path, capsys: Capture
) -> None:
    _code, data = explained(capsys, "other", "-f", str(dump))
    assert data["explanations"][0]["cause"]["reasons"] == ["InsufficientCPU"]
    (note,) = data["notes"]
    assert note.startswith("pods of custom are judged by the profile default-scheduler; --config FILE takes")


def test_a_plugin_in_a_file_takes_part_with_its_remedy(tmp_path: Path, capsys: Capture) -> None:
    plugin, config, file = tmp_path / "quiet.py", tmp_path / "config.yaml", tmp_path / "dump.json"
    plugin.write_text(QUIET)
    config.write_text(CONFIG % "custom")
    file.write_text(listed([node("n1", labels={"quiet": "yes"}), pod(schedulerName="custom")]))
    options = ("--config", str(config), "--plugin", str(plugin), "-f", str(file))
    code, data = explained(capsys, "asked", *options)
    (one,) = data["explanations"]
    assert (code, data["notes"]) == (ExitCode.FAILURE, [])
    assert one["cause"]["reasons"] == ["RejectedByQuiet"]
    assert one["cause"]["clauses"] == ["quiet zone"]
    assert one["remedies"][0] | {"edits": []} == {
        "title": "wake n1",
        "node": "n1",
        "touches": "Node",
        "evicts": [],
        "notes": [],
        "edits": [],
        "commands": ["kubectl label node n1 quiet-"],
    }


def test_a_plugin_that_fails_is_the_cause(tmp_path: Path, capsys: Capture) -> None:
    plugin, config, file = tmp_path / "quiet.py", tmp_path / "config.yaml", tmp_path / "dump.json"
    plugin.write_text(QUIET.replace('if "quiet" in node.labels:', "if node.no_such_thing:"))
    config.write_text(CONFIG % "default-scheduler")
    file.write_text(listed([node("n1"), pod()]))
    code, data = explained(capsys, "asked", "--config", str(config), "--plugin", str(plugin), "-f", str(file))
    cause = data["explanations"][0]["cause"]
    assert (code, cause["reasons"]) == (ExitCode.FAILURE, ["PluginFailedQuiet"])
    assert "no_such_thing" in cause["text"]


@pytest.mark.parametrize(
    "options", [("--config", "nowhere.yaml"), ("--plugin", "nowhere.py"), ("--feature-gates", "Nothing=true")]
)
def test_wrong_settings_are_no_answer(options: tuple[str, str], dump: Path, capsys: Capture) -> None:
    code, said = refused(capsys, "web", "-f", str(dump), *options)
    assert code == ExitCode.NO_ANSWER
    assert said.startswith("Error: ")


# --- how it is shown ------------------------------------------------------------------------------------------------


def test_a_name_after_nodes_is_taken_for_a_pod_which_the_error_says(dump: Path, capsys: Capture) -> None:
    code, said = refused(capsys, "web-abc-1", "--nodes", "n1", "-f", str(dump))
    assert code == NOT_FOUND
    assert said.endswith("Error: there is no pod default/n1 (--nodes takes no name; --node does)")


@pytest.mark.parametrize("option", ["--kubeconfig", "--context"])
def test_files_and_a_running_cluster_are_not_both_asked(
    option: str, dump: Path, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = {"name": "s", "cluster": {"server": "https://192.0.2.1"}}
    context = {"name": "s", "context": {"cluster": "s", "user": "s"}}
    kubeconfig = {"current-context": "s", "contexts": [context], "clusters": [cluster], "users": [{"name": "s"}]}
    file = tmp_path / "kubeconfig"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **kubeconfig}))
    monkeypatch.setenv("KUBECONFIG", str(file))
    code, said = refused(capsys, "web", "-f", str(dump), option, {"--kubeconfig": str(file)}.get(option, "s"))
    assert code == ExitCode.NO_ANSWER
    assert "files and --kubeconfig or --context name two clusters; give one of them" in said


def test_a_changed_template_of_a_deployment_is_said_to_replace_all_of_its_pods(dump: Path, capsys: Capture) -> None:
    _code, data = explained(capsys, "web", "-f", str(dump))
    notes = {remedy["title"]: remedy["notes"] for remedy in data["explanations"][0]["remedies"]}
    assert notes["request memory ≤ 3.0Gi"][0] == "the template changes, so Deployment web replaces all of its pods"
    assert not any("template" in note for title, said in notes.items() if "node like" in title for note in said)


def test_a_deployment_is_known_by_its_pods_where_the_replica_set_is_not(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    file.write_text(listed([node("n1", memory="2Gi"), web(1)]))
    _code, data = explained(capsys, "web-abc-1", "-f", str(file))
    (one,) = data["explanations"]
    assert one["workload"] == {"kind": "Deployment", "name": "web"}
    assert one["remedies"][0]["commands"][0].startswith("kubectl patch deployment web -n default -p ")
    unlabelled = web(1)
    del unlabelled["metadata"]["labels"]["pod-template-hash"]
    file.write_text(listed([node("n1", memory="2Gi"), replica_set(), unlabelled]))
    _code, data = explained(capsys, "web-abc-1", "-f", str(file))
    assert data["explanations"][0]["workload"] == {"kind": "Deployment", "name": "web"}


def test_pods_that_a_stateful_set_does_not_have_yet_are_to_run_as_well(tmp_path: Path, capsys: Capture) -> None:
    metadata = {"name": "db", "namespace": "default"}
    stateful_set = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": 2}}
    first = of("StatefulSet", "db", pod("db-0", requests={"memory": "16Gi"}, labels={"app": "db"}))
    file = tmp_path / "dump.json"
    file.write_text(listed([node("n1"), stateful_set, first]))
    _code, data = explained(capsys, "statefulset/db", "-f", str(file))
    (one,) = data["explanations"]
    assert one["remedies"][0]["title"] == "request memory ≤ 4.0Gi"


def test_a_storage_class_that_is_missing_can_be_created(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "dump.json"
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    objects = [node("n1"), storage_class("standard"), claim("data", of_class="fast"), pod(volumes=volumes)]
    file.write_text(listed(objects))
    _code, data = explained(capsys, "asked", "-f", str(file))
    (remedy,) = [one for one in data["explanations"][0]["remedies"] if one["title"].startswith("create")]
    assert remedy["title"] == "create the storage class fast like standard"
    (command,) = remedy["commands"]
    assert '"kind":"StorageClass","metadata":{"name":"fast"},"provisioner":"disk.test"' in command


def test_the_first_three_lines_say_it(dump: Path, capsys: Capture) -> None:
    assert main(["explain", "web", "-f", str(dump)]) == ExitCode.FAILURE
    first, cause, funnel, *_rest = capsys.readouterr().out.splitlines()
    assert first.startswith("default/web-abc-1  pending ")
    assert cause == (
        "Cause: memory 4.0Gi. 2 of 2 nodes pass everything else; it asks for 4.0Gi, the most that is free is 3.0Gi (n1)"
    )
    assert funnel == "2 nodes ─ 2 memory 4.0Gi → 0"


def test_yaml_holds_what_json_holds(dump: Path, capsys: Capture) -> None:
    _code, as_json = explained(capsys, "fits", "--node", "n1", "-f", str(dump))
    assert main(["explain", "fits", "--node", "n1", "-f", str(dump), "-o", "yaml"]) == ExitCode.OK
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    for data in (as_json, as_yaml):
        data["explanations"][0]["waiting"] = None  # the seconds since its creation
    assert as_yaml == as_json


class Terminal(TextIOWrapper):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("environment", "is_coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_terminals_get_colours_and_lines_of_their_width(
    environment: dict[str, str], is_coloured: bool, dump: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"COLUMNS": "60", **environment}.items():
        monkeypatch.setenv(name, value)
    written = BytesIO()
    monkeypatch.setattr(sys, "stdout", Terminal(written, encoding="utf-8"))
    assert main(["explain", "other", "-f", str(dump)]) == ExitCode.FAILURE
    sys.stdout.flush()
    text = written.getvalue().decode()
    assert ("\x1b[" in text) is is_coloured
    if not is_coloured:
        lines = [line for line in text.splitlines() if "kubectl" not in line]
        assert max(map(len, lines)) <= 60
        assert any(line.startswith("Note: pods of custom") for line in lines)


def test_pipes_get_no_colours(dump: Path, capsys: Capture) -> None:
    main(["explain", "web", "-f", str(dump)])
    assert "\x1b" not in capsys.readouterr().out
