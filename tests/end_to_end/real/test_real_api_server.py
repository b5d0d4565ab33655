"""``trio-sched`` as processes against an API server on a port.

The embedded one always; a real kube-apiserver with etcd and RBAC where ``KUBEBUILDER_ASSETS`` names the folder of both,
as ``setup-envtest use -p env`` prints it.
"""

import signal
from collections import Counter
from pathlib import Path

import httpx
import pytest
import trio
from real_servers import ASSETS, Files, StartServer, etcd, eventually, on_both


@on_both
async def test_pods_are_bound_and_explained(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server, server.scheduler("one"):
        await server.create_nodes()
        await server.create_pods("fits", server.pods)
        await server.create_pods("huge", 2, cpu="64")
        await server.wait_bound(server.pods)

        async def are_explained() -> bool:
            return len(await server.events("Scheduled")) == server.pods and bool(
                await server.events("FailedScheduling")
            )

        await eventually(are_explained, within_seconds=30)
        scheduled = Counter(event["regarding"]["name"] for event in await server.events("Scheduled"))
        assert scheduled == {f"fits-{number}": 1 for number in range(server.pods)}
        available = f"0/{server.nodes} nodes are available: {server.nodes}"
        preemption = f"preemption: {available} Preemption is not helpful for scheduling."
        text = f"{available} Insufficient cpu. no new claims to deallocate, {preemption}"
        huge = await server.request("GET", "/api/v1/namespaces/default/pods/huge-0")
        (condition,) = huge["status"]["conditions"]
        assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", text)
        assert {event["note"] for event in await server.events("FailedScheduling")} == {text}


@on_both
async def test_after_sigkill_the_follower_leads(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await server.create_nodes()
        async with server.scheduler("one", leader_elect=True) as leader:

            async def has_leader() -> bool:
                return bool(await server.holder())

            await eventually(has_leader, within_seconds=20)
            first = await server.holder()
            async with server.scheduler("two", leader_elect=True) as follower:
                await server.create_pods("before", 20)
                await server.wait_bound(20)
                assert await server.holder() == first
                leader.send_signal(signal.SIGKILL)
                await server.create_pods("after", 20)
                await server.wait_bound(40, within_seconds=20)
                assert await server.holder() not in ("", first)
                follower.send_signal(signal.SIGTERM)
                with trio.fail_after(20):
                    assert await follower.wait() == 0
                assert await server.holder() == ""


@on_both
async def test_the_scheduler_continues_after_a_restart_of_the_api_server(
    start_server: StartServer, tmp_path: Path
) -> None:
    async with start_server(Files(tmp_path)) as server, server.scheduler("one") as scheduler:
        await server.create_nodes()
        await server.create_pods("before", 10)
        await server.wait_bound(10)
        await server.stop()
        await trio.sleep(1)
        await server.resume()
        await server.create_pods("after", 10)
        await server.wait_bound(20, within_seconds=60)
        assert scheduler.poll() is None


ETCD = Path(ASSETS) / "etcd" if ASSETS else Path("/usr/bin/etcd")


@pytest.mark.skipif(not ETCD.exists(), reason=f"there is no etcd at {ETCD} (Debian's package etcd-server brings it)")
async def test_the_installed_etcd_accepts_its_flags(tmp_path: Path) -> None:
    async with etcd(ETCD, tmp_path) as url, httpx.AsyncClient() as client:
        assert (await client.get(f"{url}/version")).json()["etcdserver"]
