"""Pods with resource claims, against an API server on a port: the embedded one, and a real one where there is one."""

import signal
from collections import Counter
from pathlib import Path

import trio
from real_devices import DEVICES, DRIVER, NODES, PODS, allocations, claims_path, create_devices, create_pod
from real_servers import Files, StartServer, eventually, on_both


@on_both
async def test_every_pod_gets_devices_of_its_own_on_its_node(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await create_devices(server)
        claims = await claims_path(server)
        for number in range(NODES * DEVICES // 2):
            await create_pod(server, f"p{number}", count=2)
        await create_pod(server, "late", count=2)
        async with server.scheduler("one"):
            await server.wait_bound(NODES * DEVICES // 2)
            owned = await allocations(server)
            used = Counter(device for devices in owned.values() for device in devices)
            assert len(used) == NODES * DEVICES
            assert set(used.values()) == {1}
            for pod in (await server.request("GET", PODS))["items"]:
                name = pod["metadata"]["name"]
                pools = {device.split("/")[0] for device in owned[name]}
                assert pools == ({pod["spec"]["nodeName"]} if pod["spec"].get("nodeName") else set())
                if pools:
                    claim = await server.request("GET", f"{claims}/{name}")
                    assert claim["metadata"]["finalizers"] == ["resource.kubernetes.io/delete-protection"]
                    (consumer,) = claim["status"]["reservedFor"]
                    assert consumer["uid"] == pod["metadata"]["uid"]

            (waiting,) = [name for name, devices in owned.items() if not devices]
            condition = (await server.request("GET", f"{PODS}/{waiting}"))["status"]["conditions"][0]
            assert f"0/{NODES} nodes are available: {NODES} cannot allocate all claims." in condition["message"]

            gone = next(name for name, devices in owned.items() if devices)
            await server.request("DELETE", f"{PODS}/{gone}")
            # As the controller for that does once the pod is gone.
            claim = await server.request("GET", f"{claims}/{gone}")
            del claim["status"]
            await server.request("PUT", f"{claims}/{gone}/status", claim)

            async def has_taken_over() -> bool:
                return sorted((await allocations(server))[waiting]) == sorted(owned[gone])

            await eventually(has_taken_over, within_seconds=30)


@on_both
async def test_a_wrong_selector_is_named_and_costs_its_own_pod_only(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server, server.scheduler("one"):
        await create_devices(server)
        await create_pod(server, "wrong", expression=f'device.attributes["{DRIVER}"].colour == "red"')
        await create_pod(server, "right", expression=f'device.attributes["{DRIVER}"].model == "a100"')
        await server.wait_bound(1)

        async def is_named() -> bool:
            status = (await server.request("GET", f"{PODS}/wrong"))["status"]
            return any("no such key: colour" in one["message"] for one in status.get("conditions", ()))

        await eventually(is_named, within_seconds=30)
        assert (await server.request("GET", f"{PODS}/right"))["spec"]["nodeName"]


@on_both
async def test_nothing_is_allocated_twice_when_the_leader_is_killed(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await create_devices(server)
        async with server.scheduler("one", leader_elect=True) as leader:

            async def has_leader() -> bool:
                return bool(await server.holder())

            await eventually(has_leader, within_seconds=20)
            async with server.scheduler("two", leader_elect=True):
                for number in range(NODES * DEVICES // 2):
                    await create_pod(server, f"a{number}")
                leader.send_signal(signal.SIGKILL)
                for number in range(NODES * DEVICES // 2):
                    await create_pod(server, f"b{number}")
                with trio.fail_after(60):
                    await server.wait_bound(NODES * DEVICES)
                used = Counter(device for devices in (await allocations(server)).values() for device in devices)
                assert len(used) == NODES * DEVICES
                assert set(used.values()) == {1}
