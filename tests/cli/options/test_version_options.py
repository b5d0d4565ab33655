"""Which kube-scheduler the commands act as that simulate, explain or show a cluster."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from simulator_thread import simulator_in_thread

from trio_sched.cli.main import main
from trio_sched.simulator import ApiServer

OF_1_37 = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- pluginConfig:
  - name: VolumeBinding
    args: {shape: [{utilization: 0, score: 10}, {utilization: 100, score: 0}]}
"""
REFUSED = "unexpected field `shape`"
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "a"},
    "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "8"}}}]},
}
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A cluster, and a configuration that kube-scheduler 1.37 accepts, and no older one."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [NODE, POD]}
    (tmp_path / "cluster.json").write_text(json.dumps(listed))
    (tmp_path / "scheduler.yaml").write_text(OF_1_37)
    return tmp_path


def is_refused(capsys: Capture, *words: str) -> bool:
    code, err = main(list(words)), capsys.readouterr().err
    assert (REFUSED in err) == (code == 3 or "Error" in err), err
    return REFUSED in err


@pytest.mark.parametrize(
    "command",
    ["simulate -f CLUSTER", "compare -f CLUSTER", "what-if cordon a --cluster CLUSTER", "explain web -f CLUSTER"],
)
@pytest.mark.parametrize(
    ("options", "is_newer"),
    [
        ("", False),
        ("--kubernetes-version=1.37", True),
        ("--kubernetes-version=v1.37.1", True),
        ("--kubernetes-version=1.34", False),
        ("--emulated-version=1.37", True),
        ("--kubernetes-version=1.37 --emulated-version=1.36", False),
    ],
)
def test_the_version_of_the_api_server_decides_without_another(
    command: str, options: str, is_newer: bool, files: Path, capsys: Capture
) -> None:
    words = command.replace("CLUSTER", str(files / "cluster.json")).split()
    config = ["--config", str(files / "scheduler.yaml")]
    assert is_refused(capsys, *words, *options.split(), *config) is not is_newer


@pytest.mark.parametrize(
    "command",
    [
        "simulate",
        "compare",
        "what-if cordon a",
        "what-if config CONFIG",
        "explain web",
        "explain web --kubernetes-version=1.36",
        "explain web --emulated-version=1.36",
        "top --once",
    ],
)
@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_a_running_cluster_is_asked_for_its_version(command: str, version: str, files: Path, capsys: Capture) -> None:
    config = str(files / "scheduler.yaml")
    words = command.replace("CONFIG", config).split()
    with simulator_in_thread(ApiServer(kubernetes_version=version)) as simulator:
        for plural, one in (("nodes", NODE), ("namespaces/default/pods", POD)):
            answer = httpx.post(f"{simulator.url}/api/v1/{plural}", json=one, trust_env=False)
            assert answer.is_success, answer.text
        (files / "kubeconfig").write_text(json.dumps(simulator.kubeconfig()))
        given = ["--kubeconfig", str(files / "kubeconfig")]
        refused = is_refused(capsys, *words, *given, "--config", config)
    assert refused is (version == "1.36" or command.endswith("1.36"))


def test_a_version_that_no_kube_scheduler_has_is_an_error(files: Path, capsys: Capture) -> None:
    assert main(["simulate", "-f", str(files / "cluster.json"), "--emulated-version=1.99"]) == 1
    assert "emulation version 1.99 is not between" in capsys.readouterr().err


def test_a_running_scheduler_is_not_told_a_version(files: Path, capsys: Capture) -> None:
    (files / "kubeconfig").write_text(
        json.dumps(
            {
                "current-context": "s",
                "contexts": [{"name": "s", "context": {"cluster": "s"}}],
                "clusters": [{"name": "s", "cluster": {"server": "http://127.0.0.1:1"}}],
            }
        )
    )
    words = ["explain", "web", "--kubeconfig", str(files / "kubeconfig"), "--from=https://127.0.0.1:1"]
    assert main([*words, "--emulated-version=1.37"]) == 3
    assert "--from takes names of pods" in capsys.readouterr().err


def test_files_have_the_fields_of_the_version(files: Path, capsys: Capture) -> None:
    mount = {"name": "v", "mountPath": "/v", "bindMountOptions": ["noexec"]}
    container = {"name": "c", "image": "x", "volumeMounts": [mount]}
    pod = {**POD, "spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [container]}}
    (files / "pod.json").write_text(json.dumps(pod))
    (files / "node.json").write_text(json.dumps(NODE))
    words = ["-f", str(files / "pod.json"), "-f", str(files / "node.json")]
    for command, reason in ((["simulate"], "Pod's required features"), (["explain", "web"], "FeatureNotDeclared")):
        main([*command, *words, "--kubernetes-version=1.36"])
        assert "bindMountOptions: unknown field" in capsys.readouterr().err
        assert main([*command, *words, "--kubernetes-version=1.37", "-o", "json"]) == (command[0] == "explain")
        assert reason in capsys.readouterr().out
    cluster = ["--cluster", str(files / "node.json"), "-f", str(files / "pod.json")]
    assert main(["what-if", "apply", *cluster, "--kubernetes-version=1.37"]) == 0
    assert "Pod's required features" in capsys.readouterr().out
    main(["what-if", "apply", *cluster])
    assert "bindMountOptions" in capsys.readouterr().err
