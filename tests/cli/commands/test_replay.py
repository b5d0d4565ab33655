"""``trio-sched replay``: what it shows, and its exit codes."""

import json
from pathlib import Path

import pytest

from trio_sched.cli.main import main
from trio_sched.recording.folder import segment_paths

MOST_ALLOCATED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""
CLUSTER = {
    "apiVersion": "v1",
    "kind": "List",
    "items": [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}},
        }
        for name, cpu in (("small", "4"), ("large", "16"))
    ]
    + [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{number}", "namespace": "shop"},
            "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
        }
        for number in range(3)
    ],
}


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    folder = tmp_path / "recording"
    arguments = ["simulate", "-f", str(tmp_path / "cluster.json"), "--begin", "2026-03-01T22:00:00Z"]
    assert main([*arguments, "--record", str(folder)]) == 0
    return folder


def test_the_same_decisions(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["replay", str(recording), "--verify"]) == 0
    shown = capsys.readouterr().out
    assert "From 2026-03-01T22:00:00.000Z" in shown
    assert "3 decisions, 3 the same, 0 different" in shown


def test_another_configuration_shows_the_pods_that_it_moves(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text(MOST_ALLOCATED)
    capsys.readouterr()
    assert main(["replay", str(recording), "--config", str(tmp_path / "other.yaml")]) == 1
    shown = capsys.readouterr().out
    assert "shop/p0: recorded large, replayed small" in shown
    assert "NodeResourcesFit +" in shown
    assert main(["replay", str(recording), "--config", str(tmp_path / "other.yaml"), "-o", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["different"] == len(data["differences"]) == 3
    assert data["differences"][0]["recorded"] == "large"


def test_a_time_limits_what_is_compared(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option, decisions in (("--from", 0), ("--until", 3)):
        capsys.readouterr()
        assert main(["replay", str(recording), option, "2026-03-01T22:30:00Z", "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)["decisions"] == decisions


def test_a_recording_that_is_cut_off_is_no_error_unless_everything_is_to_be_compared(
    recording: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = segment_paths(recording)
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["replay", str(recording)]) == 0
    assert "cannot be read" in capsys.readouterr().out
    assert main(["replay", str(recording), "--verify"]) == 3


def test_what_is_no_recording_has_a_code_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(tmp_path)]) == 3
    assert f"{tmp_path} has no segments" in capsys.readouterr().err
    assert main(["replay", str(tmp_path), "--config", str(tmp_path / "gone.yaml")]) == 3
    assert main(["replay"]) == 3


def test_the_cluster_is_written_for_simulations(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "manifests.jsonl"
    assert main(["replay", str(recording), "--manifests", str(path)]) == 0
    manifests = [json.loads(line) for line in path.read_text().splitlines()]
    assert {one["metadata"]["name"] for one in manifests if one["kind"] == "Pod"} == {"p0", "p1", "p2"}
    assert not any("nodeName" in one["spec"] for one in manifests if one["kind"] == "Pod")
    capsys.readouterr()
    assert main(["simulate", "-f", str(path)]) == 0
    assert "3 pods, 2 nodes: 3 placed" in capsys.readouterr().out
    assert main(["replay", str(recording), "--manifests", str(tmp_path / "gone" / "file")]) == 3


def test_another_configuration_is_simulated_beside_the_recorded_one(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text(MOST_ALLOCATED)
    arguments = ["replay", str(recording), "--config", str(tmp_path / "other.yaml")]
    capsys.readouterr()
    assert main(arguments) == 1
    shown = capsys.readouterr().out
    assert "The recorded cluster, simulated:" in shown
    assert "as recorded" in shown
    assert "Moved: 3 pods" in shown
    assert main([*arguments, "-o", "json"]) == 1
    outcome = json.loads(capsys.readouterr().out)["outcome"]
    assert {(one["pod"], one["first"], one["second"]) for one in outcome["moved"]} == {
        (f"shop/p{number}", "large", "small") for number in range(3)
    }
    assert main([*arguments, "--no-outcome"]) == 1
    assert "simulated" not in capsys.readouterr().out
    assert main(["replay", str(recording), "--outcome"]) == 3
    assert "give the other one with --config" in capsys.readouterr().err


def test_a_configuration_that_cannot_be_simulated_is_replayed_all_the_same(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    extenders = "extenders: [{urlPrefix: 'http://extender.test', prioritizeVerb: prioritize, weight: 1}]"
    (tmp_path / "other.yaml").write_text(f"{MOST_ALLOCATED}{extenders}\n")
    capsys.readouterr()
    assert main(["replay", str(recording), "--config", str(tmp_path / "other.yaml")]) == 1
    captured = capsys.readouterr()
    assert "3 decisions, 0 the same, 3 different" in captured.out
    assert "Warning: the recorded cluster is not simulated: extenders cannot be asked" in captured.err


GANG_OF_1_37 = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    podGroupPostFilter: {enabled: [{name: DefaultPreemption}]}
"""
RESHAPED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}
"""


@pytest.mark.parametrize(
    ("gates", "problem"),
    [
        ("GenericWorkload=true", 'unknown field "profiles[0].plugins.podGroupPostFilter"'),
        ("GenericWorkload=true,PodGroupPreemptionPolicy=false", "unrecognized feature gate: PodGroupPreemptionPolicy"),
    ],
)
def test_a_recording_is_replayed_as_its_version_and_what_another_does_not_have_is_named(
    gates: str, problem: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster.json").write_text(json.dumps(CLUSTER))
    (tmp_path / "scheduler.yaml").write_text(GANG_OF_1_37)
    folder, cluster = tmp_path / "recording", str(tmp_path / "cluster.json")
    config = ["--config", str(tmp_path / "scheduler.yaml"), "--feature-gates", gates]
    simulated = ["simulate", "-f", cluster, "--kubernetes-version=1.37", *config, "--record", str(folder)]
    assert main(simulated) == 0
    assert main(["replay", str(folder), "--verify"]) == 0
    capsys.readouterr()
    assert main(["replay", str(folder), "--emulated-version=1.36"]) == 3
    error = capsys.readouterr().err
    assert "the recorded configuration cannot be used; give one with --config" in error
    assert problem in error
    assert "It was read as of kube-scheduler 1.36, as --emulated-version says." in error
    (tmp_path / "other.yaml").write_text(MOST_ALLOCATED)
    other = ["--emulated-version=1.36", "--config", str(tmp_path / "other.yaml"), "--feature-gates="]
    assert main(["replay", str(folder), *other]) == 1
    assert "shop/p0: recorded large, replayed small" in capsys.readouterr().out


def test_a_configuration_of_a_newer_version_takes_the_option(
    recording: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "newer.yaml").write_text(RESHAPED)
    config = ["--config", str(tmp_path / "newer.yaml")]
    assert main(["replay", str(recording), *config]) == 3
    assert "It was read as of kube-scheduler 1.36, as was recorded." in capsys.readouterr().err
    assert main(["replay", str(recording), *config, "--emulated-version=1.37", "--no-outcome"]) == 0
    assert main(["replay", str(recording), "--emulated-version=1.37"]) == 0
    shown = capsys.readouterr().out
    assert "3 decisions, 3 the same, 0 different" in shown
    assert "The recorded cluster, simulated" in shown
