"""`simulate` of a cluster that runs, with the rights of who asks, on the embedded API server and on a real one."""

import json
import re
import shlex
import sys
from pathlib import Path

import trio
from real_servers import Files, StartServer, eventually, on_both, real_server

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN, SCHEDULER_TOKEN

PAGE = Path(__file__).parents[3] / "docs" / "how_to" / "migrate_from_kube_scheduler.md"


async def simulated(folder: Path, files: Files, server: str, token: str, *options: str) -> tuple[int, str, str]:
    """Exit code, output and messages of `trio-sched simulate` on the cluster at *server*, as the user of *token*."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server=server, authority=files.server.authority, token=token)
    command = [sys.executable, "-m", "trio_sched", "simulate", "--kubeconfig", str(kubeconfig), "-o", "json", *options]
    done = await trio.run_process(command, capture_stdout=True, capture_stderr=True, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@on_both
async def test_a_running_cluster_is_simulated_and_stays_as_it_is(start_server: StartServer, tmp_path: Path) -> None:
    files = Files(tmp_path)
    async with start_server(files) as server:
        await server.create_nodes()
        await server.create_pods("web", 5)
        code, printed, said = await simulated(tmp_path, files, server.url, ADMIN_TOKEN)
        assert (code, said) == (0, "")
        assert json.loads(printed)["summary"] == {
            "nodes": server.nodes,
            "placed": 5,
            "pending": 0,
            "notCreated": 0,
            "settled": True,
            "simulatedSeconds": 1,
        }
        # The role of a scheduler has neither the workloads nor the quotas that make pods.
        code, printed, said = await simulated(tmp_path, files, server.url, SCHEDULER_TOKEN)
        assert (code, json.loads(printed)["summary"]["placed"]) == (0, 5)
        if start_server is real_server:  # the embedded one lets everybody do everything
            assert "Warning: resourcequotas cannot be listed, so none are known here: " in said
        assert await server.bound() == {False: 5}


def options_of_the_page(config: Path) -> list[str]:
    """What follows the context in the command that the migration page tries a configuration with."""
    (command,) = re.findall(r"^trio-sched simulate --context production (.*)$", PAGE.read_text(), re.MULTILINE)
    return [str(config) if word == "scheduler.yaml" else word for word in shlex.split(command)]


@on_both
async def test_the_migration_page_tries_a_cluster_with_static_and_finished_pods(
    start_server: StartServer, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    config = tmp_path / "scheduler.yaml"
    config.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    async with start_server(files) as server:
        await server.create_nodes()
        pods = "/api/v1/namespaces/default/pods"
        requests = {"requests": {"cpu": "20"}}  # of 32 that a node has
        container = {"name": "c", "image": "registry.test/app:1", "resources": requests}
        for number in range(server.nodes):
            static = {"name": f"static-{number}", "annotations": {"kubernetes.io/config.mirror": "hash"}}
            spec = {"containers": [container], "nodeName": f"n{number}", "tolerations": [{"operator": "Exists"}]}
            await server.request("POST", pods, {"metadata": static, "spec": spec})
        spec = {"containers": [container], "nodeName": "n0"}
        await server.request("POST", pods, {"metadata": {"name": "ended"}, "spec": spec})

        async def is_running() -> bool:
            return (await server.request("GET", f"{pods}/ended"))["status"]["phase"] == "Running"

        if start_server is not real_server:  # which has no kubelets
            await eventually(is_running, within_seconds=10)
        ended = await server.request("GET", f"{pods}/ended")
        await server.request("PUT", f"{pods}/ended/status", {**ended, "status": {"phase": "Succeeded"}})
        await server.create_pods("web", server.nodes, cpu="10")  # each fits beside a static pod
        code, printed, said = await simulated(tmp_path, files, server.url, ADMIN_TOKEN, *options_of_the_page(config))
        assert code == 0, said
        found = json.loads(printed)
        assert found["summary"]["pending"] == 0
        nodes = {one["pod"]: one["node"] for one in found["placements"]}
        assert {name: node for name, node in nodes.items() if name.startswith("static")} == {
            f"static-{number}": f"n{number}" for number in range(server.nodes)
        }
        assert {name for name in nodes if name.startswith("web")} == {f"web-{n}" for n in range(server.nodes)}
        assert f"{server.nodes} mirror pods" in said
