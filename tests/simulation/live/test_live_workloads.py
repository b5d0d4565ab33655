import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulator_thread import Simulator, simulator_in_thread

from trio_sched.cli.main import main
from trio_sched.simulator.manifests.manifest_checks import check_manifests
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.manifests.scenario import populate
from trio_sched.simulator.storage.object_store import ObjectStore

Capture = pytest.CaptureFixture[str]

NAMESPACES = ("shop", "billing", "tight", "full")
TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"memory": "64Gi"}}}]},
}


def deployment(name: str, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "x"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": selector, "template": TEMPLATE, **spec},
    }


def stateful_set(name: str) -> dict[str, Any]:
    return {**deployment(name, serviceName=name, replicas=1), "kind": "StatefulSet"}


def quota(namespace: str, memory: str) -> dict[str, Any]:
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": namespace}}
    return {**head, "spec": {"hard": {"requests.memory": memory}}}


def in_namespace(namespace: str, one: dict[str, Any]) -> dict[str, Any]:
    return {**one, "metadata": {**one["metadata"], "namespace": namespace}}


def cron_job(name: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"schedule": "0 0 1 1 *", "jobTemplate": template, **spec},
    }


def is_settled(store: ObjectStore) -> bool:
    """Whether the pods that can be created are there and counted, and events say why the others are not."""
    pods = {one.fields["metadata"]["namespace"] for one in store.collection("pods").in_order()}
    refused = {
        one.fields["metadata"]["namespace"]
        for one in store.collection("events").in_order()
        if one.fields["reason"] == "FailedCreate"
    }
    (big,) = [one for one in store.collection("deployments.apps").in_order() if one.fields["metadata"]["name"] == "big"]
    is_counted = (big.fields.get("status") or {}).get("replicas") == 1
    return is_counted and pods == {"shop", "tight"} and refused == {"tight", "full"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Simulator]:
    objects = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"pods": "9"}}},
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            for name in ("shop", "billing", "tight", "full")
        ),
        deployment("web"),
        deployment("asleep", replicas=0),
        cron_job("yearly"),
        cron_job("paused", suspend=True),
        quota("tight", "100Gi"),
        quota("full", "1Gi"),
        in_namespace("tight", deployment("big", replicas=3)),
        in_namespace("full", stateful_set("store")),
    ]
    with simulator_in_thread() as simulator:
        simulator.call(populate, simulator.server, check_manifests([Manifest(one) for one in objects]).manifests)
        until = time.monotonic() + 10
        while not simulator.call(lambda: is_settled(simulator.server.store)):
            assert time.monotonic() < until, "a pod is missing, or one is refused and no event says so"
        yield simulator


@pytest.fixture
def kubeconfig(cluster: Simulator, tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(cluster.kubeconfig()))
    return str(path)


def refused(capsys: Capture, kubeconfig: str, words: str) -> str:
    """What is said of names that no pod has."""
    assert main(["explain", "--kubeconfig", kubeconfig, *words.split()]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    return printed.err.removeprefix("Error: ").removesuffix("\n")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("-n shop deployment/asleep", "deployment shop/asleep has no pods: it wants none"),
        (
            "-n shop cronjob/paused",
            "cronjob shop/paused has no pods: it is suspended; to resume it: "
            """kubectl patch cronjob paused -n shop -p '{"spec":{"suspend":false}}'""",
        ),
        (
            "-n shop cronjob/yearly",
            "cronjob shop/yearly has no pods: none of its jobs is running; it makes one when it is time",
        ),
        (
            "-n shop deployment/asleeep",
            "there is no pod of deployment shop/asleeep; did you mean deployment shop/asleep?",
        ),
        ("-n shop cronjob/yeerly", "there is no pod of cronjob shop/yeerly; did you mean cronjob shop/yearly?"),
        ("-n shop deployment/weeb", "there is no pod of deployment shop/weeb; did you mean deployment shop/web?"),
        ("-n biling invoices", "there is no pod biling/invoices; did you mean namespace billing?"),
        ("-n billing invoices", "there is no pod billing/invoices"),
    ],
)
def test_what_has_no_pods_is_looked_up_or_named_by_what_is_near(
    words: str, error: str, kubeconfig: str, capsys: Capture
) -> None:
    assert refused(capsys, kubeconfig, words) == error


def test_pods_beyond_a_quota_are_missed_with_the_change_that_allows_them(kubeconfig: str, capsys: Capture) -> None:
    error = refused(capsys, kubeconfig, "-n full statefulset/store")
    assert "statefulset full/store has no pods: " in error
    patch = """'{"spec":{"hard":{"requests.memory":"64Gi"}}}'"""
    assert error.endswith(f"to allow it: kubectl patch resourcequota team -n full --type=merge -p {patch}")
    main(["explain", "--kubeconfig", kubeconfig, "-n", "tight", "deployment/big"])
    printed = capsys.readouterr().out
    assert "Note: deployment tight/big lacks 2 pods: " in printed
    assert """exceeded quota: team, requested: requests.memory=64Gi""" in printed
    assert """{"requests.memory":"192Gi"}""" in printed


def test_the_pods_of_a_deployment_are_found(kubeconfig: str, capsys: Capture) -> None:
    assert main(["explain", "--kubeconfig", kubeconfig, "-n", "shop", "deployment/web"]) == 1
    printed = capsys.readouterr().out
    assert printed.startswith("shop/web-")
    assert printed.count("Note: this is what the default configuration says; --config FILE takes that of the") == 1


@pytest.mark.parametrize(
    ("words", "resource", "error"),
    [
        (
            "deployment/web",
            "replicasets",
            "the pods of deployment shop/web cannot be found, because you may not read the replicasets between them: "
            "not you; ask for the right to get replicasets, or name a pod",
        ),
        (
            "statefulset/db",
            "statefulsets",
            "no pod of statefulset shop/db is seen, and you may not read it: not you; "
            "ask for the right to get statefulsets, or name a pod",
        ),
    ],
)
def test_a_kind_that_may_not_be_read_is_named_with_the_right_that_is_missing(
    words: str, resource: str, error: str, cluster: Simulator, kubeconfig: str, capsys: Capture
) -> None:
    faults = cluster.server.faults
    cluster.call(
        lambda: faults.fail_next(1, verb="get", resource=resource, code=403, reason="Forbidden", message="not you")
    )
    assert refused(capsys, kubeconfig, f"-n shop {words}") == error


def test_names_that_may_not_be_listed_are_not_suggested(cluster: Simulator, kubeconfig: str, capsys: Capture) -> None:
    faults = cluster.server.faults
    for resource in ("deployments", "namespaces"):
        cluster.call(lambda name=resource: faults.fail_next(1, verb="list", resource=name, code=403))
    error = refused(capsys, kubeconfig, "-n shopp deployment/asleeep")
    assert error == "there is no pod of deployment shopp/asleeep; did you mean namespace shop?"
