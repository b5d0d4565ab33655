"""kr8s: what its documentation's examples do."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from simulator_thread import Simulator

pytest.importorskip("kr8s", reason="the Python client kr8s is not installed")

import httpx_ws
import kr8s
import kr8s.asyncio
from kr8s._async_utils import as_sync_func
from kr8s.objects import (
    ConfigMap,
    CustomResourceDefinition,
    Deployment,
    Node,
    Pod,
    Table,
    new_class,
    object_from_spec,
    objects_from_files,
)

# It knows versions up to the one before the simulated one, and says so; it leaves its connections open.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def kubeconfig(simulator: Simulator, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kr8s") / "kubeconfig"
    path.write_text(json.dumps(simulator.kubeconfig()))
    return path


@pytest.fixture(scope="module")
def connected(kubeconfig: Path) -> Iterator[Any]:
    api = kr8s.api(kubeconfig=str(kubeconfig))
    yield api
    as_sync_func(api._session.aclose)()


@pytest.fixture
def api(connected: Any, namespace: str) -> Any:
    connected.namespace = namespace
    return connected


def pod(api: Any, name: str, node: str = "", **labels: str) -> Pod:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "app:1"}]}
    if node:
        spec["nodeName"] = node
    metadata = {"name": name, "namespace": api.namespace, "labels": labels}
    made = Pod({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, api=api)
    made.create()
    return made


def node(api: Any) -> Node:
    status = {"capacity": {"cpu": "4", "pods": "110"}}
    made = Node({"metadata": {"name": f"n-{api.namespace}"}, "status": status}, api=api)
    made.create()
    return made


def test_versions_resources_and_who_one_is(api: Any) -> None:
    assert api.version()["gitVersion"] == "v1.36.2"
    assert api.whoami() == "simulator-admin"
    assert {"pods", "podgroups"} <= {one["name"] for one in api.api_resources()}
    assert "apps/v1" in list(api.api_versions())


def test_lists_with_selectors_and_as_tables(api: Any) -> None:
    for number in range(4):
        pod(api, f"p{number}", app="odd" if number % 2 else "even")
    assert {"p0", "p3"} <= {one.name for one in api.get("pods", namespace=kr8s.ALL)}
    chosen = api.get("pods", label_selector={"app": "odd"}, field_selector={"metadata.name": "p1"})
    assert [one.name for one in chosen] == ["p1"]
    assert [one.name for one in Pod.list(api=api, namespace=api.namespace)] == ["p0", "p1", "p2", "p3"]
    (table,) = api.get("pods", as_object=Table)
    assert [column["name"] for column in table.column_definitions][:3] == ["Name", "Ready", "Status"]
    assert [row["cells"][0] for row in table.rows] == ["p0", "p1", "p2", "p3"]


def test_nodes_are_cordoned_and_tainted_and_pods_wait_for_being_ready(api: Any) -> None:
    chosen = node(api)
    chosen.cordon()
    assert chosen.unschedulable
    chosen.uncordon()
    chosen.taint("k", "v", effect="NoSchedule")
    assert chosen.taints == [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    one = pod(api, "p", chosen.name)
    one.wait("condition=Ready", timeout=10)
    one.wait("jsonpath='{.status.phase}'=Running", timeout=10)
    assert one.ready()
    one.delete()
    one.wait("delete", timeout=10)
    assert not one.exists()


def test_patches_labels_and_annotations(api: Any) -> None:
    one = pod(api, "p")
    one.patch({"metadata": {"labels": {"merged": "1"}}})
    one.patch([{"op": "add", "path": "/metadata/labels/json", "value": "1"}], type="json")
    one.label(given="1")
    one.annotate({"note": "kept"})
    one.remove_label("json")
    one.patch({"status": {"message": "waiting"}}, subresource="status")
    one.refresh()
    assert one.labels == {"merged": "1", "given": "1"}
    assert one.annotations == {"note": "kept"}
    assert one.status.message == "waiting"


def test_a_watch(api: Any) -> None:
    pod(api, "p")
    seen = []
    for event, one in api.watch("pods", namespace=api.namespace):
        seen.append((event, one.name))
        if len(seen) == 1:
            pod(api, "q")
        if len(seen) == 2:
            break
    assert seen == [("ADDED", "p"), ("ADDED", "q")]


def test_deployments_are_scaled_and_have_pods(api: Any) -> None:
    chosen = node(api)
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": {"app": "d"}},
        "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"nodeName": chosen.name, "containers": [{"name": "c", "image": "app:1"}]},
        },
    }
    one = Deployment({"metadata": {"name": "d", "namespace": api.namespace}, "spec": spec}, api=api)
    one.create()
    one.scale(2)
    one.wait("condition=Available", timeout=10)
    assert len(one.pods()) == 2
    one.delete(propagation_policy="Foreground")


def test_owners(api: Any) -> None:
    child, owner = pod(api, "child"), pod(api, "owner")
    child.set_owner(owner)
    child.refresh()
    assert child.metadata.ownerReferences[0].name == "owner"


def test_what_needs_a_container_is_refused(api: Any) -> None:
    one = pod(api, "p", node(api).name)
    one.wait("condition=Ready", timeout=10)
    with pytest.raises(kr8s.ServerError, match="the pods of this cluster are pretended"):
        list(one.logs())
    with pytest.raises(httpx_ws.WebSocketUpgradeError, match="400"):
        one.exec(["ls"])


def test_custom_resources_and_files(api: Any, tmp_path: Path) -> None:
    versions = [
        {
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"scale": {"specReplicasPath": ".spec.wanted", "statusReplicasPath": ".status.used"}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        }
    ]
    names = {"plural": "lanes", "singular": "lane", "kind": "Lane"}
    spec = {"group": "example.net", "scope": "Namespaced", "names": names, "versions": versions}
    definition = CustomResourceDefinition({"metadata": {"name": "lanes.example.net"}, "spec": spec}, api=api)
    definition.create()
    definition.wait("condition=Established", timeout=10)
    lanes = new_class(
        "Lane", version="example.net/v1", namespaced=True, plural="lanes", scalable=True, scalable_spec="wanted"
    )
    lanes({"metadata": {"name": "l", "namespace": api.namespace}, "spec": {"wanted": 1}}, api=api).create()
    (one,) = lanes.list(api=api, namespace=api.namespace)
    one.scale(3)
    assert one.spec.wanted == 3
    file = tmp_path / "settings.yaml"
    file.write_text(f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c, namespace: {api.namespace}}}\n")
    (settings,) = objects_from_files(file, api=api)
    settings.create()
    assert ConfigMap.get("c", namespace=api.namespace, api=api).exists()
    same = object_from_spec(settings.to_dict(), api=api)
    with pytest.raises(kr8s.ServerError, match="already exists"):
        same.create()
    definition.delete()


async def test_the_asynchronous_api(kubeconfig: Path, namespace: str) -> None:
    with trio.fail_after(10):
        api = await kr8s.asyncio.api(kubeconfig=str(kubeconfig), namespace=namespace)
        one = await kr8s.asyncio.objects.Secret({"metadata": {"name": "c", "namespace": namespace}}, api=api)
        await one.create()
        assert [found.name async for found in api.get("secrets")] == ["c"]
        async for event, found in api.watch("secrets"):
            assert (event, found.name) == ("ADDED", "c")
            break
        await one.delete()
        await api._session.aclose()
