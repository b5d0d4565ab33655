"""Mixed scenarios on a real API server, one after the other; no controllers run there but one for volumes, here."""

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import trio
from attrs import define
from real_plugins import daemon_with
from real_servers import Server, eventually, process
from real_versions import as_served, served_type
from scenario_outcomes import Outcome, devices_of, gates_of, pod_state, volume_of

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN
from contrib.scenarios.manifests import NAMESPACE, ZONE, volume
from contrib.scenarios.mixed.scenario import DEVICES, TAINT_RULES, MixedScenario

Json = dict[str, Any]

SECONDS: Final = 20.0
"""Many times what any attempt takes."""
SELECTED: Final = "volume.kubernetes.io/selected-node"
INSIDE: Final = f"/api/v1/namespaces/{NAMESPACE}"
KUBE_SCHEDULER: Final = os.environ.get("OTHER_SCHEDULER", "")
"""The executable of kube-scheduler, to compare its answers with those of the simulator."""


@define(eq=False)
class ScenarioServer:
    """A real server on which scenarios are tried; objects are written in versions that it serves."""

    server: Server
    minor: int

    async def difference(self, scenario: MixedScenario, expected: Outcome) -> str:
        """What is not as *expected*, with the scenario gone afterwards; empty: nothing."""
        made: list[str] = []
        try:
            for one in scenario.objects:
                made.append(await self._create(one))
            async with _scheduler(self.server, scenario), trio.open_nursery() as nursery:
                nursery.start_soon(self._bind_volumes)
                difference = await self._try_pods(scenario, expected, made)
                nursery.cancel_scope.cancel()
            return difference
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + SECONDS):
                await self._delete([*made, *(await self._made_volumes())])

    async def _try_pods(self, scenario: MixedScenario, expected: Outcome, made: list[str]) -> str:
        for pod in scenario.pods:
            path, name = await self._create(pod), pod["metadata"]["name"]
            made.append(path)
            seen = ""

            async def is_as_expected(path: str = path, name: str = name) -> bool:
                nonlocal seen
                seen = pod_state(await self.server.request("GET", path))
                return seen == expected.tried[name]

            if not await _in_time(is_as_expected):
                return f"{name} is {seen!r}, not {expected.tried[name]!r}"
        found: Outcome | None = None

        async def is_all_as_expected() -> bool:
            nonlocal found
            found = await self._outcome(scenario, expected)
            return found == expected

        return "" if await _in_time(is_all_as_expected) else f"{found}, not {expected}"

    async def _outcome(self, scenario: MixedScenario, expected: Outcome) -> Outcome:
        pods = await self._listed("/api/v1/pods")
        claims = await self._listed("/api/v1/persistentvolumeclaims")
        wanted = (
            served_type(self.minor, "resource.k8s.io/v1", "ResourceClaim")
            if scenario.needs in (DEVICES, TAINT_RULES)
            else None
        )
        devices = {} if wanted is None else await self._listed(f"/apis/{wanted.api_version}/{wanted.plural}")
        return Outcome(
            expected.tried,
            {name: pod_state(one) for name, one in pods.items()},
            {name: volume_of(one) for name, one in claims.items()},
            {name: devices_of(one) for name, one in devices.items()},
        )

    async def _listed(self, path: str) -> dict[str, Json]:
        return {one["metadata"]["name"]: one for one in (await self.server.request("GET", path))["items"]}

    async def _create(self, manifest: Json) -> str:
        """Create an object; returns its path."""
        served = served_type(self.minor, manifest["apiVersion"], manifest["kind"])
        root = f"/apis/{served.api_version}" if served.group else f"/api/{served.version}"
        inside = f"/namespaces/{manifest['metadata']['namespace']}" if served.namespaced else ""
        path = f"{root}{inside}/{served.plural}"
        await self.server.request("POST", path, as_served(self.minor, manifest))
        path = f"{path}/{manifest['metadata']['name']}"
        if served.plural == "persistentvolumes" and "claimRef" not in manifest["spec"]:
            await self._patch(f"{path}/status", {"status": {"phase": "Available"}})
        return path

    async def _delete(self, paths: list[str]) -> None:
        """Delete what is there yet, without waiting for controllers."""
        for path in reversed(paths):
            gone = await self.server.admin.request("DELETE", path, json={"gracePeriodSeconds": 0})
            if gone.status_code == 200 and (await self.server.admin.get(path)).status_code == 200:
                await self._patch(path, {"metadata": {"finalizers": None}})

    async def _patch(self, path: str, body: Json) -> None:
        headers = {"content-type": "application/merge-patch+json"}
        (await self.server.admin.patch(path, json=body, headers=headers)).raise_for_status()

    async def _made_volumes(self) -> list[str]:
        """The paths of the volumes that were made here."""
        names = await self._listed("/api/v1/persistentvolumes")
        return [f"/api/v1/persistentvolumes/{name}" for name in names if name.startswith("made-")]

    async def _bind_volumes(self) -> None:
        """Provision what waits on a node, and bind claims to the volumes that name them."""
        while True:
            claims = await self._listed(f"{INSIDE}/persistentvolumeclaims")
            volumes = await self._listed("/api/v1/persistentvolumes")
            named = {
                reference["uid"]: name
                for name, one in volumes.items()
                if (reference := one["spec"].get("claimRef") or {}).get("uid")
            }
            for name, claim in claims.items():
                uid, annotations = claim["metadata"]["uid"], claim["metadata"].get("annotations") or {}
                if claim["spec"].get("volumeName"):
                    continue
                if uid in named:
                    done = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
                    body = {"metadata": done, "spec": {"volumeName": named[uid]}}
                    await self._patch(f"{INSIDE}/persistentvolumeclaims/{name}", body)
                elif SELECTED in annotations:
                    node = await self.server.request("GET", f"/api/v1/nodes/{annotations[SELECTED]}")
                    made = volume(f"made-{uid}", name, zones=[node["metadata"]["labels"][ZONE]])
                    made["spec"]["claimRef"]["uid"] = uid
                    await self.server.request("POST", "/api/v1/persistentvolumes", made)
            await trio.sleep(0.1)


async def _in_time(check: Any) -> bool:
    try:
        await eventually(check, within_seconds=SECONDS)
    except trio.TooSlowError:
        return False
    return True


def _scheduler(server: Server, scenario: MixedScenario) -> AbstractAsyncContextManager[Any]:
    return _other_scheduler(server, scenario) if KUBE_SCHEDULER else daemon_with(server, [], gates=gates_of(scenario))


@asynccontextmanager
async def _other_scheduler(server: Server, scenario: MixedScenario) -> AsyncIterator[None]:
    folder = server.files.folder
    kubeconfig = folder / "admin"
    write_kubeconfig(kubeconfig, server=server.url, authority=server.files.server.authority, token=ADMIN_TOKEN)
    gates = ",".join(f"{name}={str(value).lower()}" for name, value in gates_of(scenario).items())
    flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0", f"--feature-gates={gates}"]
    async with process([str(Path(KUBE_SCHEDULER)), *flags], folder / "kube-scheduler.log"):
        yield
