"""`simulate` of a cluster that runs, with the rights of who asks, on the embedded API server and on a real one."""

import json
import sys
from pathlib import Path

import trio
from real_servers import Files, StartServer, on_both, real_server

from contrib.benchmarks.real.servers import ADMIN_TOKEN, SCHEDULER_TOKEN
from contrib.benchmarks.scheduler_process import write_kubeconfig


async def simulated(folder: Path, files: Files, server: str, token: str) -> tuple[int, str, str]:
    """Exit code, output and messages of `trio-sched simulate` on the cluster at *server*, as the user of *token*."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server=server, authority=files.server.authority, token=token)
    command = [sys.executable, "-m", "trio_sched", "simulate", "--kubeconfig", str(kubeconfig), "-o", "json"]
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
