"""`explain` and `kubectl why` on a cluster that runs, with the rights of who asks, embedded and real."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from real_servers import ASSETS, Files, Server, StartServer, on_both, real_server

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN

needs_roles = pytest.mark.skipif(not ASSETS, reason="the embedded API server lets everybody do everything")
USER_TOKEN = "user-token"
DEFAULT = "/api/v1/namespaces/default"


async def said(command: list[str], kubeconfig: Path) -> tuple[int, str, str]:
    """Exit code, output and messages of *command*."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False, env=environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def kubeconfig_of(files: Files, server: str, token: str) -> Path:
    kubeconfig = files.folder / f"kubeconfig-{token}"
    write_kubeconfig(kubeconfig, server=server, authority=files.server.authority, token=token)
    return kubeconfig


async def explained(files: Files, server: str, token: str, *words: str) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "trio_sched", "explain", *words, "-o", "json"]
    code, printed, errors = await said(command, kubeconfig_of(files, server, token))
    assert errors == ""
    return code, json.loads(printed)


async def create_pending_pods(server: Server) -> None:
    """Two pods of a replica set that ask for more than a node has."""
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "64"}}}
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": True}
    metadata = {"name": "web-abc", "ownerReferences": [deployment]}
    path = "/apis/apps/v1/namespaces/default/replicasets"
    made = await server.request("POST", path, {"metadata": metadata, "spec": spec})
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-abc",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    for number in range(2):
        metadata = {"name": f"web-abc-{number}", "labels": labels, "ownerReferences": [owner]}
        await server.request("POST", f"{DEFAULT}/pods", {"metadata": metadata, "spec": template["spec"]})


@on_both
async def test_pods_of_a_running_cluster_are_explained_and_nothing_is_written(
    start_server: StartServer, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    async with start_server(files) as server:
        await server.create_nodes()
        await create_pending_pods(server)
        before = await server.request("GET", f"{DEFAULT}/pods")
        code, data = await explained(files, server.url, ADMIN_TOKEN, "deployment/web")
        (one,) = data["explanations"]
        (note,) = data["notes"]
        assert note.startswith("this is what the default configuration says; ")
        assert (code, one["nodes"]) == (1, server.nodes)
        assert one["alike"] == ["default/web-abc-0", "default/web-abc-1"]
        assert one["cause"]["reasons"] == ["InsufficientCPU"]
        assert (one["remedies"][0]["title"], one["workload"]["kind"]) == ("request cpu ≤ 32", "Deployment")
        assert await server.request("GET", f"{DEFAULT}/pods") == before
        code, data = await explained(files, server.url, ADMIN_TOKEN, "--all-pending", "--node", "n1")
        assert [one["onNodes"][0]["exists"] for one in data["explanations"]] == [True]


@on_both
async def test_kubectl_why_is_the_same_command(start_server: StartServer, tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with start_server(files) as server:
        await server.create_nodes()
        await create_pending_pods(server)
        kubeconfig = kubeconfig_of(files, server.url, ADMIN_TOKEN)
        code, printed, errors = await said(["kubectl", "why", "web"], kubeconfig)
        first, cause, *_rest = printed.splitlines()
        assert first.startswith("default/web-abc-0  pending ")
        assert cause.startswith(f"Cause: cpu 64. {server.nodes} of {server.nodes} nodes pass everything else; ")
        assert (code, errors) == (1, "")
        code, printed, errors = await said(["kubectl", "why", "wbe", "-n", "default"], kubeconfig)
        assert (code, printed) == (2, "")
        assert errors.startswith("Error: there is no pod default/wbe")


async def create_database(server: Server) -> None:
    """A pod with a claim, which is there."""
    core = "/api/v1/namespaces/default"
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await server.request("POST", f"{core}/persistentvolumeclaims", {"metadata": {"name": "data-db-0"}, "spec": claim})
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}]
    spec = {"containers": [{"name": "main", "image": "example"}], "volumes": volumes}
    await server.request("POST", f"{core}/pods", {"metadata": {"name": "db-0"}, "spec": spec})


async def let_list(server: Server, *resources: str) -> None:
    """Let the user of `USER_TOKEN` list *resources* of the core group."""
    roles = "/apis/rbac.authorization.k8s.io/v1"
    rule = {"apiGroups": [""], "resources": list(resources), "verbs": ["list"]}
    await server.request("POST", f"{roles}/clusterroles", {"metadata": {"name": "explains"}, "rules": [rule]})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "explains"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "user"}
    binding = {"metadata": {"name": "explains"}, "roleRef": reference, "subjects": [subject]}
    await server.request("POST", f"{roles}/clusterrolebindings", binding)


def with_user(folder: Path) -> Files:
    """Files of a server that knows the user of `USER_TOKEN`."""
    files = Files(folder)
    with files.server.tokens.open("a") as tokens:
        tokens.write(f'{USER_TOKEN},user,3,""\n')
    return files


@needs_roles
async def test_who_may_list_pods_and_nodes_only_is_told_what_that_hides(tmp_path: Path) -> None:
    files = with_user(tmp_path)
    async with real_server(files) as server:
        await server.create_nodes()
        await create_pending_pods(server)
        await let_list(server, "pods", "nodes")
        code, data = await explained(files, server.url, USER_TOKEN, "web-abc-0")
        (one,) = data["explanations"]
        assert (code, one["cause"]["reasons"]) == (1, ["InsufficientCPU"])
        # The replica set may not be seen, so the deployment behind it is not known.
        assert one["workload"] == {"kind": "ReplicaSet", "name": "web-abc"}
        assert {
            "you may not list poddisruptionbudgets; which pods a budget protects is not known",
            "you may not list limitranges in namespace default; they may refuse a request that is suggested",
            "you may not list priorityclasses; no other priority is tried",
            "you may not list namespaces; pod affinity that selects namespaces may be judged wrongly",
        } <= set(data["notes"])
        kubeconfig = kubeconfig_of(files, server.url, USER_TOKEN)
        _code, printed, _errors = await said(["kubectl", "why", "web-abc-0"], kubeconfig)
        _explanation, _separator, notes = printed.partition("\n\nNote: ")
        assert notes.count("\nNote: ") == len(data["notes"]) - 1
        assert "\n\n" not in notes
        await create_database(server)
        code, database = await explained(files, server.url, USER_TOKEN, "db-0")
        (one,) = database["explanations"]
        (clause,) = [clause for clause in one["clauses"] if clause["title"] in one["cause"]["clauses"]]
        (problem,) = clause["problems"]
        assert problem.startswith("may be wrong: you may not list persistentvolumeclaims"), problem
        # What does not matter for this pod is not asked for.
        assert not [note for note in data["notes"] if "persistentvolume" in note or "resourceclaims" in note]


@needs_roles
@pytest.mark.parametrize("may_list", [(), ("pods",)], ids=["nothing", "pods"])
async def test_who_may_not_list_pods_or_nodes_gets_one_error(may_list: tuple[str, ...], tmp_path: Path) -> None:
    files = with_user(tmp_path)
    async with real_server(files) as server:
        await server.create_pods("web", 1)
        await let_list(server, *may_list, "configmaps")
        kubeconfig = kubeconfig_of(files, server.url, USER_TOKEN)
        code, printed, errors = await said(["kubectl", "why", "web-0"], kubeconfig)
        assert (code, printed) == (3, "")
        (line,) = errors.strip().splitlines()
        missing = "nodes" if may_list else "pods"
        assert line.startswith(f"Error: the cluster's {missing} cannot be listed: ")
        assert line.endswith("; ask for the right to list them in all namespaces")
