"""The simulator before its strictest judge: the real kubectl."""

import json
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import yaml

from trio_sched.simulator import ApiServer, populate, run_kubelets, serve
from trio_sched.simulator.kubelets.kubelet import KubeletPace

KUBECTL = shutil.which("kubectl")
OLDEST = 30
"""The oldest minor version that is to get on with the simulator."""
Kubectl = Callable[..., Awaitable[str]]

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not on PATH")

NODE = """\
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {kubernetes.io/hostname: n1}}
status:
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
  conditions: [{type: Ready, status: "True"}]
  nodeInfo: {kubeletVersion: v1.36.2}
"""

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p1, labels: {app: shop}}
spec:
  nodeName: n1
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: "app:1", resources: {limits: {cpu: 100m}}}]
"""

NODE_AND_POD = [yaml.safe_load(NODE), yaml.safe_load(POD)]

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 2
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: "app:1", ports: [{containerPort: 80}]}]}
"""


def installed() -> list[str]:
    """kubectl; where a distribution has many versions, of which it calls one, the oldest and the newest of them."""
    if KUBECTL is None:
        return []
    beside = Path(KUBECTL).resolve().parent.glob("kubectl.1.[0-9][0-9]")
    versions = sorted(path for path in beside if int(path.suffix[1:]) >= OLDEST)
    return [str(versions[0]), str(versions[-1])] if len(versions) > 1 else [KUBECTL]


@pytest.fixture(params=installed(), ids=lambda path: Path(path).name)
async def kubectl(request: pytest.FixtureRequest, server: ApiServer, nursery: trio.Nursery, tmp_path: Path) -> Kubectl:
    await nursery.start(run_kubelets, server, KubeletPace(start_seconds=0, stop_seconds=0))
    address = await nursery.start(serve, server)
    cluster = {"name": "simulator", "cluster": {"server": address}}
    context = {"name": "simulator", "context": {"cluster": "simulator", "user": ""}}
    config = {"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context]}
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({**config, "current-context": "simulator"}))
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(kubeconfig), "PATH": "/usr/bin:/bin"}

    async def run(*arguments: str, stdin: str = "", fails: bool = False) -> str:
        with trio.fail_after(20):
            done = await trio.run_process(
                [request.param, *arguments],
                stdin=stdin.encode(),
                capture_stdout=True,
                capture_stderr=True,
                env=environment,
                check=False,
            )
        assert (done.returncode != 0) is fails, (arguments, done.stdout, done.stderr)
        return (done.stderr if fails else done.stdout).decode()

    return run


def stored(server: ApiServer, collection: str, key: str) -> dict[str, Any]:
    """The object as the server has it; a kubectl that prints it costs as much as the request that is to be checked."""
    found = server.store.get(collection, key)
    assert found is not None
    return found.fields


async def test_discovery_works(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.2" in await kubectl("version")
    resources = await kubectl("api-resources")
    for word in ("pods", "priorityclasses", "deployments", "leases", "po"):
        assert word in resources.split()
    assert await kubectl("get", "--raw", "/readyz") == "ok"


async def test_it_creates_shows_and_describes(kubectl: Kubectl, server: ApiServer) -> None:
    assert await kubectl("create", "-f", "-", stdin=f"{NODE}---\n{POD}") == "node/n1 created\npod/p1 created\n"
    await kubectl("wait", "--for=condition=Ready", "pod/p1", "--timeout=10s")
    assert await kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pod/p1") == "pod/p1 condition met\n"
    header, row = (await kubectl("get", "pods", "-o", "wide")).splitlines()
    assert header.split()[:5] == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row.split()[:4] == ["p1", "1/1", "Running", "0"]
    assert await kubectl("get", "pods,nodes", "-A", "-o", "name") == "pod/p1\nnode/n1\n"
    assert await kubectl("get", "pods", "-l", "app=shop", "-o", "name") == "pod/p1\n"
    assert await kubectl("get", "pods", "--field-selector", "spec.nodeName=other", "-o", "name") == ""
    pod = json.loads(await kubectl("get", "pod", "p1", "-o", "json"))
    assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "100m"}
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "p1.1"},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "note": "Successfully assigned default/p1 to n1",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "p1", "uid": pod["metadata"]["uid"]},
    }
    await kubectl("create", "-f", "-", stdin=json.dumps(event))
    description = await kubectl("describe", "pod", "p1")
    assert "default-scheduler  Successfully assigned default/p1 to n1" in description
    assert "Normal" in await kubectl("get", "events")
    assert "cpu                100m (2%)  100m (2%)" in await kubectl("describe", "node", "n1")


async def test_it_creates_from_arguments_which_it_sends_as_protobuf(kubectl: Kubectl, server: ApiServer) -> None:
    assert await kubectl("create", "namespace", "shop") == "namespace/shop created\n"
    assert await kubectl("create", "priorityclass", "high", "--value=1000") == (
        "priorityclass.scheduling.k8s.io/high created\n"
    )
    assert (
        await kubectl("create", "deployment", "web", "--image=web:1", "-n", "shop") == "deployment.apps/web created\n"
    )
    template = stored(server, "deployments.apps", "shop/web")["spec"]["template"]
    assert [one["image"] for one in template["spec"]["containers"]] == ["web:1"]
    assert "already exists" in await kubectl("create", "namespace", "shop", fails=True)


async def test_it_creates_and_applies_lists_as_it_prints_them(kubectl: Kubectl) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [namespace, pod]})
    assert await kubectl("create", "-f", "-", stdin=both) == "namespace/shop created\npod/p created\n"
    printed = await kubectl("get", "namespace/shop", "pod/p", "-o", "yaml")
    assert "kind: List" in printed
    await kubectl("apply", "-f", "-", stdin=printed)


async def test_it_applies_and_sees_what_changed(kubectl: Kubectl, server: ApiServer) -> None:
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/d created\n"
    assert await kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/d unchanged\n"
    changed = DEPLOYMENT.replace("app:1", "app:2")
    assert await kubectl("apply", "-f", "-", stdin=changed) == "deployment.apps/d configured\n"
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    assert await kubectl("get", "deployment", "d", "-o", images) == "app:2"
    assert await kubectl("scale", "deployment", "d", "--replicas=5") == "deployment.apps/d scaled\n"
    assert stored(server, "deployments.apps", "default/d")["spec"]["replicas"] == 5
    applied = await kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=changed)
    assert applied == "deployment.apps/d serverside-applied\n"
    assert stored(server, "deployments.apps", "default/d")["spec"]["replicas"] == 2


async def test_it_patches_labels_and_annotates(kubectl: Kubectl, server: ApiServer) -> None:
    await kubectl("run", "p", "--image=app:1")
    await kubectl("label", "pod", "p", "tier=front")
    await kubectl("annotate", "pod", "p", "note=kept")
    await kubectl("patch", "pod", "p", "-p", '{"metadata":{"labels":{"strategic":"1"}}}')
    await kubectl("patch", "pod", "p", "--type=merge", "-p", '{"metadata":{"labels":{"merge":"1"}}}')
    operations = '[{"op":"remove","path":"/metadata/labels/run"}]'
    await kubectl("patch", "pod", "p", "--type=json", "-p", operations)
    await kubectl("label", "pod", "p", "tier-")
    metadata = stored(server, "pods", "default/p")["metadata"]
    assert metadata["labels"] == {"strategic": "1", "merge": "1"}
    assert metadata["annotations"] == {"note": "kept"}
    refused = await kubectl("patch", "pod", "p", "-p", '{"spec":{"nodeName":"x"}}', fails=True)
    assert 'The Pod "p" is invalid: spec: Forbidden: pod updates may not change fields' in refused


async def test_it_taints_cordons_and_drains(kubectl: Kubectl, server: ApiServer) -> None:
    populate(server, NODE_AND_POD)
    await kubectl("taint", "node", "n1", "k=v:NoSchedule")
    assert stored(server, "nodes", "n1")["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    await kubectl("taint", "node", "n1", "k-")
    await kubectl("cordon", "n1")
    assert "Ready,SchedulingDisabled" in await kubectl("get", "nodes")
    await kubectl("uncordon", "n1")
    assert "node/n1 drained" in await kubectl("drain", "n1", "--force", "--timeout=10s")
    assert server.store.get("pods", "default/p1") is None


async def test_it_deletes_gently_and_by_force(kubectl: Kubectl, server: ApiServer) -> None:
    populate(server, NODE_AND_POD)
    await kubectl("delete", "pod", "p1", "--timeout=10s")
    assert server.store.get("pods", "default/p1") is None
    populate(server, [yaml.safe_load(POD.replace("n1", "nowhere"))])
    await kubectl("delete", "pod", "p1", "--wait=false")
    assert "Terminating" in await kubectl("get", "pods")
    await kubectl("delete", "pod", "p1", "--force", "--grace-period=0")
    assert await kubectl("wait", "--for=delete", "pod/p1", "--timeout=10s") == ""
    assert "NotFound" in await kubectl("get", "pod", "p1", fails=True)


async def test_it_watches(kubectl: Kubectl, server: ApiServer, nursery: trio.Nursery) -> None:
    seen: list[str] = []

    async def watch() -> None:
        seen.append(await kubectl("get", "pods", "--watch", "--request-timeout=10s", "--no-headers"))

    async with trio.open_nursery() as watching:
        watching.start_soon(watch)
        with trio.fail_after(10):
            while not server.open_watches:  # noqa: ASYNC110 - another process decides when; nothing here could be set
                await trio.sleep(0.01)
        assert "pod/p1 created" in await kubectl("create", "-f", "-", stdin=f"{NODE}---\n{POD}")
        await kubectl("wait", "--for=condition=Ready", "pod/p1", "--timeout=10s")
        server.restart()  # the watch ends, and kubectl with it
    states = [line.split()[2] for line in seen[0].splitlines()]
    assert states[0] == "Pending"
    assert states[-1] == "Running"


DEPLOY = Path(__file__).parents[2] / "contrib" / "deploy"


async def test_the_base_of_contrib_can_be_applied_and_applied_again(kubectl: Kubectl, server: ApiServer) -> None:
    applied = await kubectl("apply", "-k", str(DEPLOY / "kustomize"))
    for created in (
        "serviceaccount/trio-sched",
        "clusterrole.rbac.authorization.k8s.io/trio-sched",
        "role.rbac.authorization.k8s.io/trio-sched-leader-election",
        "configmap/trio-sched",
        "deployment.apps/trio-sched",
        "poddisruptionbudget.policy/trio-sched",
    ):
        assert f"{created} created\n" in applied
    again = await kubectl("apply", "-k", str(DEPLOY / "kustomize"))
    # kubectl replaces the selector of a disruption budget each time and calls that a change, with real servers as well.
    changed = [line for line in again.splitlines() if not line.endswith(" unchanged")]
    assert changed == ["poddisruptionbudget.policy/trio-sched configured"]
    made = stored(server, "deployments.apps", "kube-system/trio-sched")
    assert made["spec"]["template"]["spec"]["containers"][0]["image"] == "trio-sched"


async def test_what_the_chart_renders_can_be_applied(kubectl: Kubectl, server: ApiServer) -> None:
    helm = Path(sys.executable).parent / "helm"
    chart, chosen = str(DEPLOY / "helm" / "trio-sched"), "preset=spread,schedulerName=spread"
    rendered = await trio.run_process(
        [str(helm), "template", "spread", chart, "--namespace=kube-system", f"--set={chosen}"], capture_stdout=True
    )
    applied = await kubectl("apply", "-f", "-", stdin=rendered.stdout.decode())
    assert applied.count(" created\n") == len(applied.splitlines()) == 9
    assert "schedulerName: spread\n" in stored(server, "configmaps", "kube-system/spread")["data"]["scheduler.yaml"]


CREATED = {
    "quota q --hard=pods=9": "resourcequota/q",
    "cronjob c --image=i --schedule=@daily": "cronjob.batch/c",
    "job j --from=cronjob/c": "job.batch/j",
    "ingress i --rule=example.com/*=web:80,tls=cert": "ingress.networking.k8s.io/i",
    "pdb b --selector=app=web --min-available=50%": "poddisruptionbudget.policy/b",
    "secret generic s --from-literal=a=b": "secret/s",
    "role r --verb=get --resource=pods": "role.rbac.authorization.k8s.io/r",
    "rolebinding rb --role=r --user=u": "rolebinding.rbac.authorization.k8s.io/rb",
    "service clusterip w --tcp=80:80": "service/w",
    "serviceaccount robot": "serviceaccount/robot",
}


async def test_it_creates_and_describes_what_it_has_commands_for(kubectl: Kubectl) -> None:
    for arguments, created in CREATED.items():
        assert await kubectl("create", *arguments.split()) == f"{created} created\n"
    assert "example.com" in await kubectl("describe", "ingress,cronjob,quota,pdb,role,rolebinding,service,secret")
    assert "@daily" in await kubectl("get", "cronjobs", "--no-headers")


async def test_it_refuses_what_needs_a_container_in_words(kubectl: Kubectl, server: ApiServer) -> None:
    populate(server, NODE_AND_POD)
    for command in ("logs p1", "exec p1 -- ls", "port-forward p1 8080:80", "debug p1 --image=busybox"):
        refused = await kubectl(*command.split(), fails=True)
        assert "the pods of this cluster are pretended" in refused
        assert "Traceback" not in refused
    assert "node-debugger-n1-" in await kubectl("debug", "node/n1", "--image=busybox")


async def test_managers_conflict_in_server_side_applies(kubectl: Kubectl, server: ApiServer) -> None:
    await kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT)
    changed = DEPLOYMENT.replace("app:1", "app:2")
    compared = await kubectl("diff", "--server-side", "-f", "-", stdin=changed, fails=True)
    assert compared == ""  # what differs is on standard output
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    refused = await kubectl(*other, stdin=changed, fails=True)
    assert 'conflict with "kubectl": .spec.template.spec.containers[name="c"].image' in refused
    await kubectl("scale", "deployment", "d", "--replicas=5")
    refused = await kubectl("apply", "--server-side", "-f", "-", stdin=DEPLOYMENT, fails=True)
    assert 'with subresource "scale"' in refused
    await kubectl(*other, "--force-conflicts", stdin=changed)
    assert stored(server, "deployments.apps", "default/d")["spec"]["replicas"] == 2


async def test_it_replaces_by_force_and_prunes(kubectl: Kubectl, server: ApiServer) -> None:
    populate(server, NODE_AND_POD)
    replaced = await kubectl("replace", "--force", "--grace-period=0", "-f", "-", stdin=POD)
    assert replaced.endswith("pod/p1 replaced\n")
    kept, pruned = (f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, labels: {{a: b}}}}\n" for name in "ab")
    await kubectl("apply", "-f", "-", stdin=f"{kept}---\n{pruned}")
    applied = await kubectl(
        "apply", "--prune", "-l", "a=b", "--prune-allowlist=core/v1/ConfigMap", "-f", "-", stdin=kept
    )
    assert applied == "configmap/a unchanged\nconfigmap/b pruned\n"
