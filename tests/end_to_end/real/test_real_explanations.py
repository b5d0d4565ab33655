"""What `trio-sched explain` says of pending pods on a real control plane, and that its first change lets them run."""

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from real_servers import ASSETS, Files, Server, eventually, process, real_server
from real_versions import as_served, minor_of

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import ADMIN_TOKEN, optional_kinds_flags
from contrib.scenarios.manifests import NAMESPACE, volume
from contrib.scenarios.pending_causes import CAUSES, PendingCause

pytestmark = pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")

KINDS = (
    "deployments,replicasets,pods,persistentvolumeclaims,persistentvolumes,storageclasses,resourceclaimtemplates,resourceclaims,resourceslices,deviceclasses,"
    "csinodes,csidrivers,csistoragecapacities,limitranges,runtimeclasses,nodes"
)
CONTROLLERS = (
    "persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,"
    "persistentvolume-protection-controller,resourceclaim-controller,ephemeral-volume-controller,"
    "deployment-controller,replicaset-controller"
)


PROVISIONERS = frozenset({"disk.test", "small.test"})
NEVER_PROVISIONED = "slow"
"""The class of a cause that is about a volume which nobody makes."""
SINCE_MINOR = {"devices with a taint": 36, "a feature that no kubelet declares": 36}
"""Cause → the first minor version where it can be without a feature gate."""
STORED = ("uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
"""What an API server adds to the metadata of an object."""
ONLY = os.environ.get("ONLY_CAUSE", "")
"""A part of the names of the causes that are tried; for work on one of them."""


async def run(command: list[str], folder: Path, text: str = "") -> tuple[int, str]:
    """Exit code and output of *command*, with the kubeconfig in *folder*."""
    env = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig"), "PATH": f"{ASSETS}:{os.environ['PATH']}"}
    done = await trio.run_process(
        command, stdin=text.encode(), capture_stdout=True, capture_stderr=True, check=False, env=env
    )
    return done.returncode, done.stdout.decode() + done.stderr.decode()


@asynccontextmanager
async def scheduler_of(name: str, server: Server, folder: Path) -> AsyncIterator[None]:
    """kube-scheduler or trio-sched, with kube-controller-manager beside it."""
    kubeconfig = folder / "kubeconfig"
    write_kubeconfig(kubeconfig, server=server.url, authority=server.files.server.authority, token=ADMIN_TOKEN)
    program = (
        [str(Path(ASSETS) / "kube-scheduler")] if name == "kube-scheduler" else [sys.executable, "-m", "trio_sched"]
    )
    flags = [f"--kubeconfig={kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    gates = optional_kinds_flags(await minor_of(server), all_kinds=False)[:1]
    manager = [str(Path(ASSETS) / "kube-controller-manager"), *flags, *gates, f"--controllers={CONTROLLERS}"]
    async with process([*program, *flags], folder / "scheduler.log"), process(manager, folder / "manager.log"):
        yield


async def provision(server: Server) -> None:
    """The provisioners of all classes but one: a volume for each claim, once its node is chosen where it has to be."""
    while True:
        await trio.sleep(0.5)
        claims = await server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims")
        nodes = {one["metadata"]["name"] for one in (await server.request("GET", "/api/v1/nodes"))["items"]}
        classes = (await server.request("GET", "/apis/storage.k8s.io/v1/storageclasses"))["items"]
        modes = {
            one["metadata"]["name"]: one["volumeBindingMode"]
            for one in classes
            if one["provisioner"] in PROVISIONERS and one["metadata"]["name"] != NEVER_PROVISIONED
        }
        for one in claims["items"]:
            metadata, spec = one["metadata"], one["spec"]
            is_chosen = metadata.get("annotations", {}).get("volume.kubernetes.io/selected-node") in nodes
            of_class = spec.get("storageClassName")
            is_due = is_chosen or modes.get(of_class) == "Immediate"
            if of_class not in modes or spec.get("volumeName") or not is_due or "deletionTimestamp" in metadata:
                continue
            size = spec["resources"]["requests"]["storage"]
            made = volume(f"made-{metadata['uid']}", metadata["name"], size=size, of_class=of_class)
            made["spec"]["claimRef"]["uid"] = metadata["uid"]
            await server.admin.post("/api/v1/persistentvolumes", json=made)


async def run_pods(server: Server) -> None:
    """The kubelets, for pods of workloads: without a ready pod no rollout goes on."""
    ready = [{"type": kind, "status": "True"} for kind in ("Ready", "ContainersReady", "Initialized")]
    patch = {"status": {"phase": "Running", "conditions": ready}}
    headers = {"Content-Type": "application/strategic-merge-patch+json"}
    while True:
        await trio.sleep(0.5)
        pods = await server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods")
        for one in pods["items"]:
            if owner_of(one) and one["spec"].get("nodeName") and one["status"].get("phase") == "Pending":
                path = f"/api/v1/namespaces/{NAMESPACE}/pods/{one['metadata']['name']}/status"
                await server.admin.patch(path, json=patch, headers=headers)


async def is_bound(server: Server, name: str) -> bool:
    """Whether the pod, or all pods of the deployment, have a node."""
    kind, _slash, workload = name.rpartition("/")
    if kind:
        listed = await server.request("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=app%3D{workload}")
        return bool(listed["items"]) and all(one["spec"].get("nodeName") for one in listed["items"])
    response = await server.admin.get(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}")
    return response.status_code == 200 and bool(response.json()["spec"].get("nodeName"))


async def explained(cause: PendingCause, folder: Path) -> tuple[int, dict[str, Any]]:
    command = [sys.executable, "-m", "trio_sched", "explain", cause.pod, "-o", "json"]
    code, printed = await run(command, folder)
    assert printed.startswith("{"), printed
    return code, json.loads(printed)["explanations"][0]


@pytest.mark.parametrize("scheduler", ["kube-scheduler", "trio-sched"])
async def test_the_first_change_that_is_shown_lets_each_pod_run(scheduler: str, tmp_path: Path) -> None:
    for program in ("kube-controller-manager", *(["kube-scheduler"] if scheduler == "kube-scheduler" else [])):
        if not (Path(ASSETS) / program).exists():
            pytest.skip(f"KUBEBUILDER_ASSETS has no {program}")
    problems: list[str] = []
    async with (
        real_server(Files(tmp_path)) as server,
        scheduler_of(scheduler, server, tmp_path),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(provision, server)
        nursery.start_soon(run_pods, server)
        minor = await minor_of(server)
        for cause in CAUSES:
            if minor < SINCE_MINOR.get(cause.name, 0) or (ONLY and ONLY not in cause.name):
                continue
            problem = await problem_with(cause, server, tmp_path)
            if problem:
                problems.append(f"{cause.name}: {problem}")
        nursery.cancel_scope.cancel()
    assert not problems, "\n".join(problems)


def as_created(one: dict[str, Any]) -> dict[str, Any]:
    """An object as it is before it is stored, before a controller has bound it, and before somebody deletes it."""
    is_kept = one["kind"] == "Pod" or "deletionTimestamp" in one["metadata"]
    stored = STORED if is_kept else (*STORED, "finalizers")
    metadata = {key: value for key, value in one["metadata"].items() if key not in stored}
    bound = "pv.kubernetes.io/bind-completed"
    annotations = {key: value for key, value in metadata.pop("annotations", {}).items() if key != bound}
    return {**one, "metadata": {**metadata, **({"annotations": annotations} if annotations else {})}}


def owner_of(one: dict[str, Any]) -> str | None:
    """The UID of the controller of an object; None if it has none."""
    return next((owner["uid"] for owner in one["metadata"].get("ownerReferences", ())), None)


async def create(server: Server, objects: list[dict[str, Any]], folder: Path) -> str:
    """What was wrong; empty if they are created, and had a second to be seen."""
    if not objects:
        return ""
    minor = await minor_of(server)
    items = [as_served(minor, as_created(one)) for one in objects]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    code, printed = await run(["kubectl", "create", "-f", "-"], folder, json.dumps(listed))
    if not code:
        await trio.sleep(1)
    return printed if code else ""


async def problem_with(cause: PendingCause, server: Server, folder: Path) -> str:
    """What is wrong with the explanation of *cause*; empty if nothing is."""
    for kind in ("pods", "persistentvolumeclaims", "resourceclaims"):
        release = f"kubectl get {kind} -o name | xargs -r kubectl patch --type=merge -p "
        await run(["bash", "-c", f"""{release} '{{"metadata":{{"finalizers":null}}}}'"""], folder)
    classes = sorted(
        {one["metadata"]["name"] for each in CAUSES for one in each.objects if one["kind"] == "PriorityClass"}
    )
    await run(["kubectl", "delete", "priorityclasses", "--ignore-not-found", *classes], folder)
    for kind in KINDS.split(","):
        await run(["kubectl", "delete", kind, "--all", "--force", "--grace-period=0", "--timeout=20s"], folder)
    uids = {one["metadata"].get("uid") for one in cause.objects if one["kind"] in ("Deployment", "ReplicaSet")}
    made = [one for one in cause.objects if owner_of(one) not in uids]  # controllers make the others
    first = [one for one in made if one["kind"] in ("PersistentVolume", "StorageClass")]
    deleted = [one for one in made if "deletionTimestamp" in one["metadata"]]
    pending = [one for one in made if one["kind"] == "Pod" and "nodeName" not in one["spec"]]
    last = [one for one in pending if deleted and one not in deleted]
    last += [
        one for one in made if one["kind"] == "Deployment" and cause.pod == f"deployment/{one['metadata']['name']}"
    ]
    for objects in (first, [one for one in made if one not in (*first, *last)]):
        problem = await create(server, objects, folder)
        if problem:
            return problem
    for one in made:  # creating an object drops its status
        if "status" in one and one["kind"] != "PersistentVolumeClaim":
            kind, name = one["kind"].lower(), one["metadata"]["name"]
            patch = json.dumps({"status": one["status"]})
            await run(["kubectl", "patch", kind, name, "--subresource=status", "--type=merge", "-p", patch], folder)
    for one in deleted:
        await run(["kubectl", "delete", one["kind"].lower(), one["metadata"]["name"], "--wait=false"], folder)
    problem = await create(server, last, folder)
    if problem:
        return problem
    if await is_bound(server, cause.pod):
        return "the pod is not pending"
    code, data = await explained(cause, folder)
    if code != 1 or set(data["cause"]["reasons"]) != cause.reasons:
        return f"exit code {code}, {data['cause']}"
    if not cause.remedy:
        return ""
    remedy = data["remedies"][0]
    if not remedy["title"].startswith(cause.remedy):
        return f"the first change is {remedy['title']}"
    for one in [edit["object"] for edit in remedy["edits"] if not remedy["commands"] and edit["action"] == "create"]:
        problem = await create(server, [one], folder)
        if problem:
            return problem
        patch = json.dumps({"status": one["status"]})
        await run(
            ["kubectl", "patch", "node", one["metadata"]["name"], "--subresource=status", "--type=merge", "-p", patch],
            folder,
        )
    for command in remedy["commands"]:
        code, printed = await run(["bash", "-c", command], folder)
        if code:
            return f"{command}: {printed}"
    try:
        await eventually(lambda: is_bound(server, cause.pod), within_seconds=20)
    except trio.TooSlowError:
        _code, printed = await run(["kubectl", "get", "pods,nodes", "-o", "wide"], folder)
        return f"it does not run after {remedy['title']}: {remedy['commands']}\n{printed}"
    return ""
