import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from simulator_thread import Simulator, simulator_in_thread

from trio_sched.cli.main import main
from trio_sched.cli.process.exit_code import ExitCode
from trio_sched.simulation.live import live_cluster
from trio_sched.simulator import ApiServer
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.manifests.scenario import populate
from trio_sched.testing import composite_pod_group, node, pod, pod_group
from trio_sched.testing.manifests import manifest_of

Capture = pytest.CaptureFixture[str]

NODES = 3
PODS = 7
MORE = "{apiVersion: v1, kind: Node, metadata: {name: more}, status: {allocatable: {cpu: 9, pods: 9}}}"


def put(simulator: Simulator) -> None:
    """Three nodes, and seven pods of which three do not fit."""
    allocatable = {"cpu": "2", "memory": "8Gi", "pods": "10"}
    nodes = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{i}"}, "status": {"allocatable": allocatable}}
        for i in range(NODES)
    ]
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"p{i}", "namespace": "default"},
            "spec": {"containers": [container], "nodeName": "n0" if i < 2 else ""},
        }
        for i in range(PODS)
    ]
    checked = check_manifests([Manifest(one) for one in [*nodes, *pods]])
    simulator.call(populate, simulator.server, checked.manifests)


@pytest.fixture
def cluster() -> Iterator[Simulator]:
    with simulator_in_thread() as simulator:
        put(simulator)
        yield simulator


@pytest.fixture
def kubeconfig(cluster: Simulator, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(cluster.kubeconfig()))
    return str(path)


def simulated(capsys: Capture, *options: str) -> tuple[dict[str, str | None], str]:
    """The node of each pod that is placed, and what is said beside."""
    assert main(["simulate", *options, "-o", "json"]) == ExitCode.OK
    printed = capsys.readouterr()
    return {one["pod"]: one["node"] for one in json.loads(printed.out)["placements"]}, printed.err


def test_a_running_cluster_is_simulated_in_pages_and_stays_as_it_is(
    cluster: Simulator, kubeconfig: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_cluster, "_PAGE", 2)
    placed, said = simulated(capsys, "--kubeconfig", kubeconfig)
    assert len(placed) == 2 * NODES
    assert (placed["p0"], placed["p1"]) == ("n0", "n0")
    assert said == ""
    pending = [pod.fields for pod in cluster.call(cluster.server.store.collection("pods").in_order)][2:]
    assert not any(pod["spec"].get("nodeName") for pod in pending)


def test_trees_of_groups_of_a_running_cluster_are_scheduled_as_a_whole(tmp_path: Path, capsys: Capture) -> None:
    tree = [composite_pod_group("tree", min_group_count=2)]
    groups = [pod_group(name, min_count=1, parent="tree") for name in ("left", "right")]
    pods = [pod("fits", cpu="1", group="left"), pod("too-large", cpu="9", group="right"), pod("alone", cpu="1")]
    made = [manifest_of(one) for one in (node("n", cpu="2"), *tree, *groups, *pods)]
    kubeconfig = tmp_path / "kubeconfig"
    with simulator_in_thread(ApiServer(kubernetes_version="1.37")) as running:
        running.call(populate, running.server, made)
        kubeconfig.write_text(json.dumps(running.kubeconfig()))
        gates = "--feature-gates=GenericWorkload=true,CompositePodGroup=true"
        placed, said = simulated(capsys, "--kubeconfig", str(kubeconfig), gates)
        older, left_out = simulated(capsys, "--kubeconfig", str(kubeconfig), "--kubernetes-version=1.36")
    assert (placed, said) == ({"alone": "n"}, "")
    assert older == {"alone": "n", "fits": "n"}
    assert "1 of scheduling.k8s.io/v1alpha3 CompositePodGroup" in left_out


def test_files_add_to_a_running_cluster(kubeconfig: str, tmp_path: Path, capsys: Capture) -> None:
    more = tmp_path / "more.yaml"
    more.write_text(MORE)
    placed, _said = simulated(capsys, "--kubeconfig", kubeconfig, "-f", str(more))
    assert len(placed) == PODS
    assert "more" in placed.values()


def test_both_sides_of_a_comparison_are_one_list(
    kubeconfig: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists: list[str] = []
    real_run = trio.run

    def run(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        lists.append(getattr(function, "__qualname__", ""))
        return real_run(function, *arguments, **options)

    monkeypatch.setattr(trio, "run", run)
    more = tmp_path / "more.yaml"
    more.write_text(MORE)
    assert main(["compare", "--kubeconfig", kubeconfig, "--with", str(more), "-o", "json"]) == 1
    assert lists.count("LiveCluster._list") == 1
    found = json.loads(capsys.readouterr().out)
    assert [found[side]["summary"]["placed"] for side in ("first", "second")] == [2 * NODES, PODS]


def test_what_may_not_be_listed_is_named_and_pods_and_nodes_are_needed(
    cluster: Simulator, kubeconfig: str, capsys: Capture
) -> None:
    def refuse(resource: str) -> None:
        cluster.server.faults.fail_next(verb="list", resource=resource, code=403, reason="Forbidden", message="no")

    cluster.call(refuse, "poddisruptionbudgets")
    _placed, said = simulated(capsys, "--kubeconfig", kubeconfig)
    assert said.startswith("Warning: poddisruptionbudgets cannot be listed, so none are known here: ")
    cluster.call(refuse, "nodes")
    assert main(["simulate", "--kubeconfig", kubeconfig]) == ExitCode.FAILURE
    assert "the cluster's nodes cannot be listed: " in capsys.readouterr().err


PLUGIN = """
from trio_sched.plugin_api import CustomResource, hookimpl, unschedulable

QUOTA = CustomResource("example.com", "v1", "Quota", plural="quotas")

class OnlyWithQuota:
    name = "OnlyWithQuota"
    watches = (QUOTA, "gadgets.v1.example.org")

    def __init__(self, args, handle):
        self.handle = handle

    @hookimpl
    def pre_filter(self, pod):
        gadgets = len(self.handle.objects("gadgets.v1.example.org"))
        for quota in self.handle.objects(QUOTA):
            if quota.spec["gadgets"] == gadgets:
                return None
        return unschedulable("no quota of as many gadgets")
"""


def definition(kind: str, plural: str, group: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [version],
        },
    }


@pytest.fixture
def with_quotas(cluster: Simulator, tmp_path: Path) -> str:
    """The options for a configuration with a plugin, whose custom resources the cluster has."""
    metadata = {"name": "one", "namespace": "default"}
    objects = [
        definition("Quota", "quotas", "example.com"),
        definition("Gadget", "gadgets", "example.org"),
        {"apiVersion": "example.com/v1", "kind": "Quota", "metadata": metadata, "spec": {"gadgets": 2}},
        {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": metadata},
        {"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {**metadata, "name": "two"}},
    ]
    checked = check_manifests([Manifest(one) for one in objects])
    cluster.call(populate, cluster.server, checked.manifests)
    plugin = tmp_path / "only_with_quota.py"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o600)
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles:\n- plugins: {multiPoint: {enabled: [{name: OnlyWithQuota}]}}\n"
    )
    return f"--config={config} --plugin={plugin}"


def test_the_custom_resources_that_plugins_watch_are_listed_too(
    kubeconfig: str, with_quotas: str, tmp_path: Path, capsys: Capture
) -> None:
    placed, said = simulated(capsys, "--kubeconfig", kubeconfig, *with_quotas.split())
    assert len(placed) == 2 * NODES
    assert said == ""
    more = tmp_path / "more.yaml"
    more.write_text(MORE)
    arguments = ["compare", "--kubeconfig", kubeconfig, "--with", str(more), *with_quotas.split(), "-o", "json"]
    assert main(arguments) == 1
    found = json.loads(capsys.readouterr().out)
    assert [found[side]["summary"]["placed"] for side in ("first", "second")] == [2 * NODES, PODS]


def test_custom_resources_that_may_not_be_listed_are_named(
    cluster: Simulator, kubeconfig: str, with_quotas: str, capsys: Capture
) -> None:
    def refuse(verb: str, resource: str) -> None:
        cluster.server.faults.fail_next(verb=verb, resource=resource, code=403, reason="Forbidden", message="no")

    cluster.call(refuse, "list", "quotas")
    cluster.call(refuse, "get", "customresourcedefinitions")
    placed, said = simulated(capsys, "--kubeconfig", kubeconfig, *with_quotas.split())
    assert len(placed) == 2
    assert "Warning: quotas.example.com cannot be listed, so none are known here: " in said
    assert (
        "Warning: the definition of gadgets.example.org cannot be read, so none of its objects are known here" in said
    )


def test_kinds_that_are_not_served_do_no_harm_and_a_list_that_expires_is_read_in_one_piece(
    cluster: Simulator, kubeconfig: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_cluster, "_PAGE", 3)
    begun: list[str] = []

    def begin(what: str) -> None:
        begun.append(what)
        if what == "listing pods: 4 left":
            cluster.server.faults.fail_next(verb="list", resource="pods", code=410, reason="Expired")

    from trio_sched.kube_client.kubeconfig.user_kubeconfig import user_settings

    listed = live_cluster.LiveCluster(user_settings(kubeconfig, "", os.environ)).manifests(begin)
    assert "listing pods: 4 left" in begun
    assert sum(one.fields["kind"] == "Pod" for one in listed) == PODS
    cluster.call(lambda: cluster.server.faults.fail_next(3, verb="list", resource="resourceslices", code=404))
    assert simulated(capsys, "--kubeconfig", kubeconfig)[1] == ""


def test_a_cluster_that_cannot_be_reached_is_told_with_its_address(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "kubeconfig"
    simulator = Simulator()
    simulator.url = "http://127.0.0.1:1"
    path.write_text(json.dumps(simulator.kubeconfig()))
    assert main(["simulate", "--kubeconfig", str(path)]) == ExitCode.FAILURE
    assert "http://127.0.0.1:1" in capsys.readouterr().err


def test_what_an_older_or_newer_server_lists_has_the_shape_that_the_simulator_takes() -> None:
    def objects(plural: str, version: str, spec: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
        resource = next(one for one in live_cluster._RESOURCES if one.plural == plural)
        shape = next(one for one in resource.versions if one.name == version)
        lacking: list[str] = []
        body = json.dumps({"items": [{"metadata": {"name": "x"}, "spec": spec}]}).encode()
        return list(live_cluster._objects(resource, shape, body, lacking)), lacking

    (claim,), _ = objects("resourceclaims", "v1beta1", {"devices": {"requests": [{"name": "r", "count": 2}]}})
    assert claim["apiVersion"] == "resource.k8s.io/v1"
    assert claim["spec"] == {"devices": {"requests": [{"name": "r", "exactly": {"count": 2}}]}}
    (group,), _ = objects("podgroups", "v1beta1", {"disruptionMode": {"all": {}}})
    assert (group["apiVersion"], group["spec"]) == ("scheduling.k8s.io/v1alpha2", {"disruptionMode": "PodGroup"})
    none, lacking = objects("devicetaintrules", "v1alpha3", {"deviceSelector": {"deviceClassName": "c"}})
    assert none == []
    assert "deviceClassName is not evaluated" in lacking[0]
