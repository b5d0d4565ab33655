"""What contrib/deploy makes, on a real API server with RBAC: the process has the rights that it needs, no others."""

import json
import ssl
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
import yaml
from attrs import define
from real_servers import ADMIN_TOKEN, ASSETS, Files, Server, eventually, process, real_server
from real_versions import minor_of

from contrib.benchmarks.scheduler_process import write_kubeconfig
from contrib.control_plane.servers import free_port

DEPLOY = Path(__file__).parents[3] / "contrib" / "deploy" / "kustomize"
SYSTEM = "/api/v1/namespaces/kube-system"
FORBIDDEN = ("forbidden", "cannot be watched", "Unauthorized")

pytestmark = pytest.mark.skipif(not ASSETS, reason="KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")


@define(eq=False)
class Deployed:
    """A running scheduler of the deployment, out of the cluster."""

    server: Server
    port: int
    log_file: Path

    async def get(self, path: str, token: str = "") -> httpx.Response:
        """Ask the scheduler's HTTPS port; its certificate is self-signed."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with httpx.AsyncClient(verify=context, trust_env=False) as client:
            return await client.get(f"https://127.0.0.1:{self.port}{path}", headers=headers)

    async def token(self, account: str) -> str:
        return await token_of(self.server, account)


async def token_of(server: Server, account: str) -> str:
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    answer = await server.request("POST", f"{SYSTEM}/serviceaccounts/{account}/token", request)
    return str(answer["status"]["token"])


async def apply(server: Server, tmp_path: Path) -> dict[tuple[str, str], Any]:
    """Apply the base, and of the monitoring what needs no operator."""
    built = await trio.run_process(["kubectl", "kustomize", str(DEPLOY)], capture_stdout=True)
    text = built.stdout.decode() + "\n---\n" + (DEPLOY / "monitoring" / "metrics_reader.yaml").read_text()
    kubeconfig = tmp_path / "admin"
    write_kubeconfig(kubeconfig, server=server.url, authority=server.files.server.authority, token=ADMIN_TOKEN)
    command = ["kubectl", f"--kubeconfig={kubeconfig}", "--namespace=kube-system", "apply", "-f", "-"]
    await trio.run_process(command, stdin=text.encode(), capture_stdout=True)
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text)}


@pytest.fixture
async def deployed(tmp_path: Path) -> AsyncIterator[Deployed]:
    async with start(tmp_path) as running:
        yield running


@asynccontextmanager
async def start(tmp_path: Path) -> AsyncIterator[Deployed]:
    async with real_server(Files(tmp_path)) as server:
        objects = await apply(server, tmp_path)
        kubeconfig, config, port = tmp_path / "kubeconfig", tmp_path / "scheduler.yaml", free_port()
        token = await token_of(server, "trio-sched")
        write_kubeconfig(kubeconfig, server=server.url, authority=server.files.server.authority, token=token)
        configuration = yaml.safe_load(objects["ConfigMap", "trio-sched"]["data"]["scheduler.yaml"])
        # In its pod it would find the cluster by itself.
        config.write_text(json.dumps({**configuration, "clientConnection": {"kubeconfig": str(kubeconfig)}}))
        (container,) = objects["Deployment", "trio-sched"]["spec"]["template"]["spec"]["containers"]
        arguments = [one.replace("/etc/trio-sched", str(tmp_path)) for one in container["args"]]
        reviews = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
        serving = [f"--secure-port={port}", "--bind-address=127.0.0.1", *reviews]
        log_file = tmp_path / "deployed.log"
        async with process([sys.executable, "-m", "trio_sched", *arguments, *serving], log_file):
            yield Deployed(server, port, log_file)


def claim(name: str) -> dict[str, Any]:
    resources = {"requests": {"storage": "1Gi"}}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def pod(name: str, *, priority_class: str = "", cpu: str = "100m", claimed: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {
        "schedulerName": "trio-sched",
        "terminationGracePeriodSeconds": 0,  # no kubelet is there to end it
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}],
    }
    if priority_class:
        spec["priorityClassName"] = priority_class
    if claimed:
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": claimed}}]
    return {"metadata": {"name": name}, "spec": spec}


async def test_it_schedules_preempts_and_binds_volumes_with_its_roles(deployed: Deployed) -> None:
    server, pods = deployed.server, "/api/v1/namespaces/default/pods"
    await server.create_nodes()
    late = {
        "metadata": {"name": "late"},
        "provisioner": "example.com/none",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    await server.request("POST", "/apis/storage.k8s.io/v1/storageclasses", late)
    high = {"metadata": {"name": "high"}, "value": 1000}
    await server.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", high)
    for i in range(server.nodes):
        await server.request("POST", pods, pod(f"low-{i}", cpu="30"))
    await server.wait_bound(server.nodes)

    await server.request("POST", pods, pod("important", priority_class="high", cpu="20"))
    await server.wait_bound(server.nodes)  # a victim is gone, as no kubelet delays that, and the preemptor in its place

    async def is_bound() -> bool:
        return bool((await server.request("GET", f"{pods}/important"))["spec"].get("nodeName"))

    await eventually(is_bound, within_seconds=30)
    await server.request("POST", "/api/v1/namespaces/default/persistentvolumeclaims", claim("c"))
    await server.request("POST", pods, pod("stores", claimed="c"))

    async def is_provisioned_for() -> bool:
        found = await server.request("GET", "/api/v1/namespaces/default/persistentvolumeclaims/c")
        return "volume.kubernetes.io/selected-node" in found["metadata"].get("annotations", {})

    await eventually(is_provisioned_for, within_seconds=30)
    log = deployed.log_file.read_text()
    assert [line for line in log.splitlines() if any(word in line for word in FORBIDDEN)] == []


async def test_it_allocates_devices_with_its_roles(deployed: Deployed) -> None:
    server, pods = deployed.server, "/api/v1/namespaces/default/pods"
    if await minor_of(server) < 36:
        pytest.skip("before 1.36 no device class stands for an extended resource by default")
    group, driver = "/apis/resource.k8s.io/v1", "gpu.example.com"
    await server.create_nodes()
    nodes = (await server.request("GET", "/api/v1/nodes"))["items"]
    name = nodes[0]["metadata"]["name"]
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    spec = {"selectors": [selector], "extendedResourceName": "example.com/gpu"}
    await server.request("POST", f"{group}/deviceclasses", {"metadata": {"name": driver}, "spec": spec})
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    published = {"driver": driver, "nodeName": name, "pool": pool, "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}
    await server.request("POST", f"{group}/resourceslices", {"metadata": {"name": "s"}, "spec": published})
    asked = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": driver}}]}}
    claims = f"{group}/namespaces/default/resourceclaims"
    await server.request("POST", claims, {"metadata": {"name": "one"}, "spec": asked})
    with_claim, extended = pod("with-claim"), pod("extended")
    with_claim["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "one"}]
    resources = {"example.com/gpu": "1"}
    extended["spec"]["containers"][0]["resources"] = {"requests": resources, "limits": resources}
    for one in (with_claim, extended):
        await server.request("POST", pods, one)

    async def are_bound() -> bool:
        found = [await server.request("GET", f"{pods}/{one}") for one in ("with-claim", "extended")]
        return all(one["spec"].get("nodeName") == name for one in found)

    await eventually(are_bound, within_seconds=60)
    stored = (await server.request("GET", claims))["items"]
    results = [one["status"]["allocation"]["devices"]["results"] for one in stored]
    assert sorted(one["device"] for (one,) in results) == ["gpu-0", "gpu-1"]
    log = deployed.log_file.read_text()
    assert [line for line in log.splitlines() if any(word in line for word in FORBIDDEN)] == []


async def test_its_token_is_no_good_for_anything_else(deployed: Deployed) -> None:
    server, token = deployed.server, await deployed.token("trio-sched")
    for path in (f"{SYSTEM}/secrets", f"{SYSTEM}/configmaps", "/apis/rbac.authorization.k8s.io/v1/clusterroles"):
        answer = await server.admin.get(path, headers={"Authorization": f"Bearer {token}"})
        assert answer.status_code == 403, path
    lease = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
    answer = await server.admin.get(lease, headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 403


async def test_who_may_ask_it_what(deployed: Deployed) -> None:
    async def is_ready() -> bool:
        try:
            return (await deployed.get("/readyz")).status_code == 200
        except httpx.TransportError:
            return False

    await eventually(is_ready, within_seconds=30)
    answer = await deployed.get("/metrics")
    assert answer.status_code == 403
    assert answer.json()["message"] == 'forbidden: User "system:anonymous" cannot get path "/metrics"'
    assert (await deployed.get("/metrics", "no.such.token")).status_code == 401
    metrics = await deployed.get("/metrics", await deployed.token("trio-sched-metrics"))
    assert metrics.status_code == 200
    assert "\nscheduler_pending_pods{" in metrics.text
    for path in ("/configz", "/debug/pprof/", "/metrics/nothing"):
        assert (await deployed.get(path, await deployed.token("trio-sched-metrics"))).status_code == 403
    assert (await deployed.get("/configz", ADMIN_TOKEN)).status_code == 200
