"""``simulate --serve``: a cluster that lives until it is told to end."""

import json
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.kube_client.kubeconfig.kubeconfig import load_kubeconfig


def test_a_served_cluster_schedules_what_clients_create_until_a_signal_ends_it(small_cluster: Path) -> None:
    command = [sys.executable, "-m", "trio_sched", "simulate", "-f", str(small_cluster), "--serve", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = "".join(process.stdout.readline() for _ in range(3))
        found = re.search(r"alive at (http://127\.0\.0\.1:\d+)\..*kubectl --kubeconfig (\S+) get pods", said, re.DOTALL)
        assert found, said
        url, kubeconfig = found.groups()
        assert load_kubeconfig(kubeconfig).server == url
        with httpx.Client(base_url=url, timeout=20) as client:
            version = client.get("/api/v1/pods").json()["metadata"]["resourceVersion"]
            pod = {"metadata": {"name": "late"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
            client.post("/api/v1/namespaces/default/pods", json=pod).raise_for_status()
            watch = {"watch": "true", "resourceVersion": version, "fieldSelector": "metadata.name=late"}
            with client.stream("GET", "/api/v1/pods", params=watch) as events:
                seen = (json.loads(line)["object"] for line in events.iter_lines())
                running = next(one for one in seen if one["status"].get("phase") == "Running")
            assert client.get("/ui").headers["content-type"] == "text/html; charset=utf-8"
            assert client.post("/ui/pods").status_code == 405
            with client.stream("GET", "/ui/stream") as events:
                lines = events.iter_lines()
                data = next(line for line in lines if line.startswith("data: "))
            explained = client.get("/ui/pod?namespace=default&name=late").json()
        snapshot = json.loads(data.removeprefix("data: "))
        assert (snapshot["source"]["kind"], snapshot["nodes"]["name"]) == ("simulation", ["a", "b"])
        assert explained["node"] == running["spec"]["nodeName"]
        assert running["spec"]["nodeName"] in ("a", "b")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == ExitCode.OK
    assert not Path(kubeconfig).exists()


def test_a_port_that_is_taken_is_told_in_one_sentence(small_cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["simulate", "-f", str(small_cluster), "--serve", f"127.0.0.1:{port}"]) == ExitCode.FAILURE
    printed = capsys.readouterr()
    assert printed.err.endswith(f"Error: cannot serve at 127.0.0.1:{port}: address already in use\n")
    assert "Traceback" not in printed.err
