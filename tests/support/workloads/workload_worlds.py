"""The same steps in two clusters: on the simulator in virtual time, and on a real control plane."""

import os
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import trio
import trio.testing
from attrs import define, field
from pretend_kubelets import START_SECONDS, STOP_SECONDS, PretendKubelets
from real_servers import ASSETS, Files, process, real_server
from stored_objects import changed_in_place, encode_when_stored
from workload_mirror import POOL, Mirror, Summary

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN
from trio_sched.documents.json_values import Json
from trio_sched.simulator import InProcessTransport, KubeletPace
from trio_sched.simulator.controllers.nodes.node_registration import NodeRegistration
from trio_sched.testing.cluster import virtual_cluster

CONTROLLER_MANAGER = Path(ASSETS or os.devnull) / "kube-controller-manager"
_CORE = ("pods", "replicationcontrollers", "resourcequotas", "limitranges", "persistentvolumeclaims", "services")
_GROUPS = {
    **dict.fromkeys(_CORE, "/api/v1"),
    **dict.fromkeys(("deployments", "replicasets", "statefulsets", "daemonsets"), "/apis/apps/v1"),
    **dict.fromkeys(("jobs", "cronjobs"), "/apis/batch/v1"),
    "poddisruptionbudgets": "/apis/policy/v1",
}
MERGE = {"content-type": "application/merge-patch+json"}
VARYING = {
    # By how many steps ReplicaSets get their sizes depends on which pods are ready when.
    "rollouts": re.compile(r"Scaled (up|down) replica set"),
    "stuck-rollouts": re.compile(r"Scaled (up|down) replica set"),
    # Whether the controllers of claims and of their owners write at the same time, and whether a CronJob that goes last
    # sees its Jobs go.
    "stateful-claims": re.compile(r"FailedUpdate"),
    "cron-jobs": re.compile(r"MissingJob"),
    # Whether a Job that fails by its first pod sees the second one end, or deletes it.
    "jobs": re.compile(r"Job refused: (Normal SuccessfulDelete|Failed bound)"),
    # How often a refused pod was tried, and so which messages were combined.
    "quotas": re.compile(r"FailedCreate \("),
    # The taints of a node that is ready again go one after the other, and pods may come in between. Of the pods of a
    # node that is gone, those that have failed may be deleted by their controllers as well.
    "node-losses": re.compile(r"Cancelling deletion|SuccessfulDelete"),
    "zone-losses": re.compile(r"Cancelling deletion|SuccessfulDelete"),
    # As above: pods that pod GC lets fail may be deleted by their controllers before it does so.
    "out-of-service-nodes": re.compile(r"SuccessfulDelete"),
    "abandoned-nodes": re.compile(r"SuccessfulDelete"),
    # Which of several budgets is told of.
    "failed-budgets": re.compile(r"MultiplePodDisruptionBudgets"),
    # What the controllers try in a namespace that is going, and when their objects go.
    "held-namespaces": re.compile(r"FailedCreate"),
    # Whether the StatefulSet sees its last claim before it goes.
    "claim-owners": re.compile(r"FailedUpdate"),
    # How often a name was found in use.
    "adoptions": re.compile(r"FailedCreate"),
}
"""Scenario → what depends on the pace of the controllers there, and is not compared."""
Until = Callable[[Summary], bool]
Scenario = Callable[["Place"], Awaitable[None]]


@define(eq=False)
class World:
    """A cluster, and the way to wait until nothing happens in it."""

    client: httpx.AsyncClient
    mirror: Mirror
    quiet_seconds: float
    expected: dict[str, dict[str, Summary]] | None = None
    """Scenario and step → what is waited for, if it is known."""
    kubelets: PretendKubelets | None = None
    """Those of a real control plane; the simulator has its own."""

    async def observe(self, place: str, step: str, until: Until | None, within_seconds: float) -> Summary:
        """What there is once nothing changes any more."""
        wanted = None
        if self.expected is not None:
            known = self.expected[place].get(step) or {}
            wanted = {line: count for line, count in known.items() if not line.startswith("request ")}
        seen: Summary = {}
        with trio.move_on_after(within_seconds):
            while True:
                await trio.sleep(self.quiet_seconds / 4)
                seen = self.look(place)
                if trio.current_time() - self.mirror.changed.get(place, 0.0) < self.quiet_seconds:
                    continue
                if (until is None or until(seen)) and (wanted is None or seen == wanted):
                    return seen
        return seen if until is None or until(seen) else {**seen, "what the step waits for did not happen": 1}

    def look(self, place: str) -> Summary:
        """What there is now."""
        told = self.mirror.summary(place) | self.mirror.events(place)
        varying = VARYING.get(place)
        return {line: told[line] for line in sorted(told) if varying is None or not varying.search(line)}


@define(eq=False)
class Place:
    """A namespace and nodes of its own, and what happens there; what there was after each step."""

    name: str
    world: World
    steps: dict[str, Summary] = field(factory=dict)
    _notes: Summary = field(factory=dict, init=False)

    async def reach(self, step: str, *, until: Until | None = None, within_seconds: float = 25.0) -> Summary:
        """Wait until nothing happens any more, and *until* is true."""
        found = await self.world.observe(self.name, step, until, within_seconds)
        self.steps[step] = found | {f"request {text}": count for text, count in self._notes.items()}
        self._notes = {}
        return found

    def note(self, text: str) -> None:
        """Something else that both clusters have to agree on at this step."""
        self._notes[text] = self._notes.get(text, 0) + 1

    # --- requests ---------------------------------------------------------------------------------------------------

    def path(self, plural: str, name: str = "") -> str:
        """The path of a kind or an object in the namespace."""
        path = f"{_GROUPS[plural]}/namespaces/{self.name}/{plural}"
        return f"{path}/{name}" if name else path

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """A request that both clusters answer alike; a refusal is noted."""
        given = {"content-type": "application/json", **headers}
        response = await self.world.client.request(method, path, json=body, headers=given)
        if response.status_code >= 400:
            why = self.world.mirror.masked(self.name, response.json()["message"])
            self.note(f"{method} refused: {response.status_code} {why}")
        return response

    async def begin(self, nodes: int) -> None:
        """The namespace, with nodes that only its pods use."""
        await self.send("POST", "/api/v1/namespaces", {"metadata": {"name": self.name}})
        for number in range(nodes):
            await self.add_node(number)

    async def seconds_to_minute(self, *, at_least: float) -> float:
        """How long to wait until so many seconds of the current minute are left."""
        found = await self.send("GET", f"/api/v1/nodes/{self.node_name(0)}")
        second = int(found.json()["metadata"]["creationTimestamp"][-3:-1])
        return 60.0 - second if second > 60 - at_least else 0.0

    def node_name(self, number: int) -> str:
        """The name of a node."""
        return f"{self.name}-n{number}"

    async def add_node(self, number: int, **labels: str) -> None:
        """A node that is ready."""
        name = self.node_name(number)
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
        status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
        metadata = {"name": name, "labels": {POOL: self.name, "kubernetes.io/hostname": name, **labels}}
        await self.send("POST", "/api/v1/nodes", {"metadata": metadata, "status": status})

    async def patch_node(self, number: int, body: Json, subresource: str = "") -> None:
        """Change a node; lists of conditions are merged by their types."""
        headers = {"content-type": "application/strategic-merge-patch+json"}
        await self.send("PATCH", f"/api/v1/nodes/{self.node_name(number)}{subresource}", body, **headers)

    async def cut_off(self, number: int) -> None:
        """A kubelet is cut off; a real control plane finds that out. Returns when the node is tainted."""
        name = self.node_name(number)
        if self.world.kubelets is None:
            await self._say_ready(number, "Unknown")
        else:
            self.world.kubelets.cut_off(name)
        with trio.move_on_after(60):
            while True:
                await trio.sleep(0.1)
                if len(self.world.mirror.objects["nodes"][f"/{name}"]["spec"].get("taints") or ()) == 2:
                    return

    async def reconnect(self, number: int) -> None:
        """The kubelet of a node is there again."""
        if self.world.kubelets is None:
            await self._say_ready(number, "True")
        else:
            await self.world.kubelets.reconnect(self.node_name(number))

    async def _say_ready(self, number: int, status: str) -> None:
        await self.patch_node(number, {"status": {"conditions": [{"type": "Ready", "status": status}]}}, "/status")

    async def delete_node(self, number: int) -> None:
        """Delete a node."""
        await self.send("DELETE", f"/api/v1/nodes/{self.node_name(number)}")

    async def remove_at_once(self, pod: str) -> None:
        """Delete a pod by force."""
        await self.send("DELETE", self.path("pods", pod), {"gracePeriodSeconds": 0})

    async def make(self, plural: str, name: str, *, metadata: Json | None = None, **spec: Any) -> httpx.Response:
        """Create an object whose pods stay on the nodes of the namespace."""
        pinned = _pinned(spec, self.name) if plural != "pods" else _on_pool(spec, self.name)
        return await self.send(
            "POST", self.path(plural), {"metadata": {"name": name, **(metadata or {})}, "spec": pinned}
        )

    async def patch(self, plural: str, name: str, **spec: Any) -> httpx.Response:
        """Change the spec of an object by a merge patch."""
        return await self.send("PATCH", self.path(plural, name), {"spec": _pinned(spec, self.name)}, **MERGE)

    async def scale(self, plural: str, name: str, replicas: int) -> None:
        """Change the number of replicas through the subresource, as ``kubectl scale`` does."""
        await self.send("PATCH", f"{self.path(plural, name)}/scale", {"spec": {"replicas": replicas}}, **MERGE)

    async def delete(self, plural: str, name: str, propagation: str = "Background") -> None:
        """Delete an object."""
        await self.send("DELETE", self.path(plural, name), {"propagationPolicy": propagation})

    async def evict(self, pod: str) -> httpx.Response:
        """Evict a pod; a refusal is noted."""
        return await self.send("POST", f"{self.path('pods', pod)}/eviction", {"metadata": {"name": pod}})

    def pods(self, **labels: str) -> list[Json]:
        """The pods with some labels, by name, that are not being deleted."""
        return [
            one
            for one in self.world.mirror.of("pods", self.name)
            if labels.items() <= (one["metadata"].get("labels") or {}).items()
            and "deletionTimestamp" not in one["metadata"]
        ]

    def pod_on(self, number: int, **labels: str) -> str:
        """The name of the first such pod on a node."""
        node = self.node_name(number)
        return next(one["metadata"]["name"] for one in self.pods(**labels) if one["spec"].get("nodeName") == node)


def _on_pool(spec: Json, pool: str) -> Json:
    return {**spec, "nodeSelector": {POOL: pool, **(spec.get("nodeSelector") or {})}}


def _pinned(spec: Json, pool: str) -> Json:
    """*spec* with its pod template on the nodes of *pool*."""
    if "jobTemplate" in spec:
        job = spec["jobTemplate"]
        return {**spec, "jobTemplate": {**job, "spec": _pinned(job["spec"], pool)}}
    if "template" in spec:
        template = spec["template"]
        if "spec" in template:
            return {**spec, "template": {**template, "spec": _on_pool(template["spec"], pool)}}
    return spec


@asynccontextmanager
async def simulated_world() -> AsyncIterator[World]:
    """The simulator with trio-sched; needs a clock that jumps."""
    pace = KubeletPace(start_seconds=START_SECONDS, stop_seconds=STOP_SECONDS)
    async with virtual_cluster(kubelets=pace, real_seconds=600.0) as cluster, trio.open_nursery() as nursery:
        encode_when_stored(cluster.api)
        await nursery.start(NodeRegistration(cluster.api).run)
        transport = InProcessTransport(cluster.api)
        async with httpx.AsyncClient(transport=transport, base_url="http://simulator", timeout=None) as client:
            mirror = Mirror(client)
            await nursery.start(mirror.follow)
            yield World(client, mirror, quiet_seconds=4.0)
            nursery.cancel_scope.cancel()
        assert changed_in_place(cluster.api) == []


@asynccontextmanager
async def real_world(folder: Path, expected: dict[str, dict[str, Summary]]) -> AsyncIterator[World]:
    """etcd, kube-apiserver and kube-controller-manager, with trio-sched and pretended kubelets."""
    files = Files(folder)
    async with real_server(files) as server, trio.open_nursery() as nursery:
        kubeconfig = folder / "admin.kubeconfig"
        write_kubeconfig(kubeconfig, server=server.url, authority=files.server.authority, token=ADMIN_TOKEN)
        manager = process(controller_manager_command(kubeconfig, files), folder / "kube-controller-manager.log")
        async with manager, server.scheduler("trio-sched"):
            context = ssl.create_default_context(cafile=str(files.server.authority))
            limits, headers = httpx.Limits(max_connections=200), dict(server.admin.headers)
            async with httpx.AsyncClient(
                base_url=server.url, headers=headers, verify=context, limits=limits, timeout=30, trust_env=False
            ) as client:
                mirror = Mirror(client)
                kubelets = PretendKubelets(client, mirror, nursery)
                await nursery.start(mirror.follow)
                yield World(client, mirror, quiet_seconds=1.2, expected=expected, kubelets=kubelets)
                nursery.cancel_scope.cancel()


def controller_manager_command(kubeconfig: Path, files: Files) -> list[str]:
    """All controllers, with no limit of requests that a test would wait for."""
    return [
        str(CONTROLLER_MANAGER),
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        f"--service-account-private-key-file={files.server.key}",
        f"--root-ca-file={files.server.authority}",
        "--node-monitor-period=1s",
        "--node-monitor-grace-period=20s",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]


async def run_scenario(world: World, name: str, scenario: Scenario) -> dict[str, Summary]:
    """What there was after each step of a scenario."""
    place = Place(name, world)
    await scenario(place)
    return place.steps


def on_simulator(name: str, scenario: Scenario) -> dict[str, Summary]:
    """What there is after each step on the simulator, in a cluster of its own."""

    async def run() -> dict[str, Summary]:
        async with simulated_world() as world:
            return await run_scenario(world, name, scenario)

    return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0.0))


def on_real_control_plane(
    folder: Path, scenarios: dict[str, Scenario], expected: dict[str, dict[str, Summary]]
) -> dict[str, dict[str, Summary]]:
    """What there is after each step of each scenario, all of them at once."""
    found: dict[str, dict[str, Summary]] = {}

    async def run() -> None:
        async with real_world(folder, expected) as world, trio.open_nursery() as nursery:
            for name, scenario in scenarios.items():
                nursery.start_soon(partial(note, world, name, scenario))

    async def note(world: World, name: str, scenario: Scenario) -> None:
        found[name] = await run_scenario(world, name, scenario)

    trio.run(run)
    return found
