"""What `trio-sched what-if` predicts on a real control plane is what kubectl, controllers and the scheduler then do."""

import json
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import define, frozen
from real_servers import ASSETS, Files, Server, eventually, process, real_server

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN

pytestmark = pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")

Json = dict[str, Any]
CONTROLLERS = (
    "deployment-controller,replicaset-controller,statefulset-controller,daemonset-controller,disruption-controller,"
    "garbage-collector-controller,pod-garbage-collector-controller"
)
POOL, ZONE, HOST = "cloud.google.com/gke-nodepool", "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PODS = "/api/v1/namespaces/default/pods"
QUIET_SECONDS = 3.0
LONGEST_SECONDS = 60.0


def node(name: str, cpu: int = 4, pool: str = "general") -> Json:
    amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "110"}
    labels = {HOST: name, POOL: pool, ZONE: f"zone-{'ab'[int(name[-1]) % 2]}"}
    status = {"allocatable": amounts, "capacity": amounts}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def workload(kind: str, name: str, replicas: int, cpu: str = "1", **spec: Any) -> Json:
    container = {"name": "c", "image": "registry.test/app:1", "resources": {"requests": {"cpu": cpu}}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container], **spec}}
    wanted: Json = {"selector": {"matchLabels": {"app": name}}, "template": template}
    if kind != "DaemonSet":
        wanted["replicas"] = replicas
    if kind == "StatefulSet":
        wanted |= {"serviceName": name, "podManagementPolicy": "Parallel"}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": wanted}


def deployment(name: str, replicas: int, cpu: str = "1", **spec: Any) -> Json:
    return workload("Deployment", name, replicas, cpu, **spec)


def budget(name: str, **limit: int) -> Json:
    spec = {"selector": {"matchLabels": {"app": name}}, **limit}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


URGENT = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}, "value": 1000}
THREE = [node("n0"), node("n1"), node("n2")]


@define(eq=False)
class Cluster:
    """A real cluster without kubelets, and whoever asks and changes it."""

    server: Server
    folder: Path

    async def run(self, *command: str, text: str = "") -> tuple[int, str, str]:
        env = {**os.environ, "KUBECONFIG": str(self.folder / "kubeconfig"), "PATH": f"{ASSETS}:{os.environ['PATH']}"}
        done = await trio.run_process(
            list(command), stdin=text.encode(), capture_stdout=True, capture_stderr=True, check=False, env=env
        )
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    async def kubectl(self, *arguments: str, text: str = "") -> str:
        code, printed, said = await self.run("kubectl", *arguments, text=text)
        assert code == 0, said
        return printed

    async def create(self, objects: Sequence[Json]) -> None:
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        await self.kubectl("apply", "--server-side", "-f", "-", text=json.dumps(listed))
        for one in objects:
            if one["kind"] == "Node":
                patch = json.dumps({"status": one["status"]})
                name = one["metadata"]["name"]
                await self.kubectl("patch", "node", name, "--subresource=status", "--type=merge", "-p", patch)

    async def asked(self, *arguments: str, objects: Sequence[Json] = ()) -> Json:
        """The answer of what-if; *objects* are in the file that ``FILE`` among the arguments stands for."""
        file = self.folder / "given.json"
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        words = [str(file) if one == "FILE" else one for one in arguments]
        _code, printed, said = await self.run(sys.executable, "-m", "trio_sched", "what-if", *words, "-o", "json")
        assert printed.startswith("{"), said
        answer: Json = json.loads(printed)
        return answer

    async def settle(self) -> None:
        """Wait until no pod has changed for a while; no event tells what happens in other processes."""
        with trio.fail_after(LONGEST_SECONDS):
            before, since = "", trio.current_time()
            while trio.current_time() < since + QUIET_SECONDS:
                now = json.dumps([_seen(one) for one in (await self.server.request("GET", PODS))["items"]])
                if now != before:
                    before, since = now, trio.current_time()
                await trio.sleep(0.3)

    async def state(self) -> Json:
        """Pending pods by workload, and pods on nodes by pool and zone."""
        nodes = {one["metadata"]["name"]: one for one in (await self.server.request("GET", "/api/v1/nodes"))["items"]}
        pending: Counter[str] = Counter()
        groups: dict[str, Counter[str]] = {POOL: Counter(), ZONE: Counter()}
        for one in (await self.server.request("GET", PODS))["items"]:
            name = one["spec"].get("nodeName")
            if not name:
                pending[one["metadata"].get("labels", {}).get("app", one["metadata"]["name"])] += 1
                continue
            for label, counts in groups.items():
                counts[nodes[name]["metadata"]["labels"][label]] += 1
        return {"pending": dict(pending), "pools": dict(groups[POOL]), "zones": dict(groups[ZONE])}

    async def kubelets(self) -> None:
        """Pods that have a node run; those that are to end are gone."""
        while True:
            for one in (await self.server.request("GET", PODS))["items"]:
                path = f"{PODS}/{one['metadata']['name']}"
                if "deletionTimestamp" in one["metadata"]:
                    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": one["metadata"]["uid"]}}
                    await self.server.admin.request("DELETE", path, json=options)
                elif one["spec"].get("nodeName") and one.get("status", {}).get("phase") != "Running":
                    ready = [{"type": "Ready", "status": "True"}]
                    body = json.dumps({"status": {"phase": "Running", "conditions": ready}})
                    headers = {"Content-Type": "application/strategic-merge-patch+json"}
                    await self.server.admin.patch(f"{path}/status", content=body, headers=headers)
            await trio.sleep(0.2)

    async def clear(self) -> None:
        for kind in ("deployments,statefulsets,daemonsets,pdb", "pods", "nodes", "priorityclasses"):
            forced = ("--force", "--grace-period=0") if kind == "pods" else ()
            await self.run("kubectl", "delete", kind, "--all", *forced, "--timeout=20s")


def _seen(pod: Json) -> Any:
    return (
        pod["metadata"]["uid"],
        pod["spec"].get("nodeName"),
        pod["status"].get("phase"),
        pod["status"].get("conditions"),
    )


@frozen(kw_only=True)
class Scenario:
    """A question, and how it is made true."""

    objects: Sequence[Json]
    question: Sequence[str]
    do: Callable[[Cluster, Json], Awaitable[object]]
    given: Sequence[Json] = ()


async def by_its_commands(cluster: Cluster, answer: Json) -> None:
    for command in answer["commands"]:
        await cluster.kubectl(*command.split()[1:], "--timeout=40s")
        await cluster.settle()


async def for_some_seconds(cluster: Cluster, answer: Json) -> None:
    (command,) = answer["commands"]
    code, _printed, said = await cluster.run(*command.split(), "--timeout=8s")
    assert code == 1, "a budget should have blocked it"
    assert "disruption budget" in said


async def by_new_nodes(cluster: Cluster, answer: Json) -> None:
    listed = json.loads(await cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    known = {one["metadata"]["name"]: one for one in listed}
    wanted = {one["like"]: one["count"] for one in answer.get("added", ())}
    made = []
    for like, count in (wanted or {"n0": 2}).items():
        for number in range(1, count + 1):
            name, model = f"{like}-{number}", known[like]
            labels = {**model["metadata"]["labels"], HOST: name}
            made.append({**model, "metadata": {"name": name, "labels": labels}, "spec": {}})
    for batch in [[one] for one in made] if wanted else [made]:  # what is found out comes one after the other
        await cluster.create(batch)
        await cluster.settle()


async def by_a_deletion(cluster: Cluster, answer: Json) -> None:
    for command in answer["commands"]:
        await cluster.kubectl(*command.split()[1:])
    gone = set(answer["commands"][0].split()[3:])

    async def are_collected() -> bool:  # which the garbage collector of pods does after 40 to 60 s
        pods = (await cluster.server.request("GET", PODS))["items"]
        return all(one["spec"].get("nodeName") not in gone for one in pods)

    await eventually(are_collected, within_seconds=90)


def applied(objects: Sequence[Json]) -> Callable[[Cluster, Json], Awaitable[object]]:
    async def do(cluster: Cluster, _answer: Json) -> None:
        await cluster.create(objects)

    return do


MORE = [deployment("web", 6), deployment("other", 9)]
PREEMPTING = [URGENT, deployment("urgent", 3, "2", priorityClassName="urgent")]
DAEMONS = workload("DaemonSet", "agent", 0, "100m")

SCENARIOS = {
    "drain": Scenario(
        objects=[*THREE, deployment("web", 5), workload("StatefulSet", "db", 2), DAEMONS],
        question=["drain", "n1"],
        do=by_its_commands,
    ),
    "drain, no room": Scenario(objects=[*THREE, deployment("web", 12)], question=["drain", "n2"], do=by_its_commands),
    "drain in waves": Scenario(
        objects=[*THREE, node("n3"), deployment("web", 8), budget("web", maxUnavailable=1)],
        question=["drain", "n0", "n1"],
        do=by_its_commands,
    ),
    "drain, blocked": Scenario(
        objects=[*THREE, deployment("web", 6), budget("web", minAvailable=6)],
        question=["drain", "-l", f"{HOST}=n1"],
        do=for_some_seconds,
    ),
    "remove": Scenario(
        objects=[*THREE, deployment("web", 6), workload("StatefulSet", "db", 2), budget("web", minAvailable=6)],
        question=["remove", "n0"],
        do=by_a_deletion,
    ),
    "add": Scenario(
        objects=[*THREE, deployment("web", 17)], question=["add", "--like", "n0", "--count", "2"], do=by_new_nodes
    ),
    "add until placed": Scenario(
        objects=[*THREE, node("n4", cpu=8, pool="large"), deployment("web", 20), deployment("huge", 2, "7")],
        question=["add", "--until-placed"],
        do=by_new_nodes,
    ),
    "apply": Scenario(
        objects=[*THREE, deployment("web", 5)], question=["apply", "-f", "FILE"], do=applied(MORE), given=MORE
    ),
    "apply with preemption": Scenario(
        objects=[*THREE, deployment("web", 12), URGENT],
        question=["apply", "-f", "FILE"],
        do=applied(PREEMPTING),
        given=PREEMPTING,
    ),
    "compact": Scenario(
        objects=[*THREE, node("n3"), node("n4"), deployment("web", 9), budget("web", maxUnavailable=2), DAEMONS],
        question=["compact"],
        do=by_its_commands,
    ),
}


@asynccontextmanager
async def cluster_in(folder: Path) -> AsyncIterator[Cluster]:
    async with real_server(Files(folder)) as server:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(kubeconfig, server=server.url, authority=server.files.server.authority, token=ADMIN_TOKEN)
        flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]
        manager = [str(Path(ASSETS) / "kube-controller-manager"), *flags, f"--controllers={CONTROLLERS}"]
        scheduler = [str(Path(ASSETS) / "kube-scheduler"), *flags]
        async with (
            process(scheduler, folder / "scheduler.log"),
            process(manager, folder / "manager.log"),
            trio.open_nursery() as nursery,
        ):
            cluster = Cluster(server, folder)
            nursery.start_soon(cluster.kubelets)
            yield cluster
            nursery.cancel_scope.cancel()


def predicted(before: Json, answer: Json) -> Json:
    """The state that *answer* foretells."""
    pending = Counter(before["pending"])
    for one in answer["pods"]:
        app = one["workload"].rpartition("/")[2]
        was_pending = one["from"] is None and not one["isNew"]
        pending[app] += (one["replacement"] is not None and one["to"] is None) - was_pending
    groups = {key: {one["name"]: one["pods"]["after"] for one in answer[key]} for key in ("pools", "zones")}
    return {"pending": +pending, **{key: {name: n for name, n in of.items() if n} for key, of in groups.items()}}


@pytest.mark.skipif(
    not os.access(Path(ASSETS) / "kube-controller-manager", os.X_OK)
    or not os.access(Path(ASSETS) / "kube-scheduler", os.X_OK),
    reason="KUBEBUILDER_ASSETS has no kube-controller-manager or no kube-scheduler",
)
async def test_what_is_predicted_comes_true(tmp_path: Path) -> None:
    problems = []
    only = os.environ.get("ONLY_SCENARIO", "")
    async with cluster_in(tmp_path) as cluster:
        for name, scenario in SCENARIOS.items():
            if only not in name:
                continue
            await cluster.clear()
            await cluster.create(scenario.objects)
            await cluster.settle()
            before = await cluster.state()
            answer = await cluster.asked(*scenario.question, objects=scenario.given)
            await scenario.do(cluster, answer)
            await cluster.settle()
            expected, found = predicted(before, answer), await cluster.state()
            if expected != found:
                problems.append(f"{name}: {answer['summary']}\n  predicted {expected}\n  found     {found}")
    assert not problems, "\n".join(problems)


async def test_a_fit_is_what_the_scheduler_places(tmp_path: Path) -> None:
    wanted = deployment("copies", 1, "1500m")
    async with cluster_in(tmp_path) as cluster:
        await cluster.create([*THREE, node("n3", cpu=8, pool="large"), deployment("web", 5)])
        await cluster.settle()
        answer = await cluster.asked("fit", "-f", "FILE", objects=[wanted])
        copies = sum(one["copies"] for one in answer["nodesOfCopies"])
        before = await cluster.state()
        await cluster.create([deployment("copies", copies + 2, "1500m")])
        await cluster.settle()
        state = await cluster.state()
        assert state["pending"] == {"copies": 2}
        for key in ("pools", "zones"):
            assert {one["name"]: before[key].get(one["name"], 0) + one["copies"] for one in answer[key]} == state[key]
