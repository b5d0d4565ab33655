"""lightkube: what its documentation's examples do."""

from collections.abc import Iterator

import pytest
import trio
from simulator_thread import Simulator

pytest.importorskip("lightkube", reason="the Python client lightkube is not installed")

from lightkube import ApiError, AsyncClient, Client, KubeConfig, codecs
from lightkube import operators as op
from lightkube.generic_resource import (
    create_namespaced_resource,
    get_generic_resource,
    load_in_cluster_generic_resources,
)
from lightkube.models.apps_v1 import DeploymentSpec
from lightkube.models.autoscaling_v1 import ScaleSpec
from lightkube.models.core_v1 import Container, NodeStatus, PodSpec, PodTemplateSpec
from lightkube.models.meta_v1 import LabelSelector, ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Node, Pod, Secret, ServiceAccount
from lightkube.types import CascadeType, PatchType

# Its asynchronous watches leave their generators to the garbage collector.
pytestmark = [
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

RACKS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: shelves.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: shelves, singular: shelf, kind: Shelf}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""


@pytest.fixture
def client(simulator: Simulator, namespace: str) -> Iterator[Client]:
    made = Client(config=KubeConfig.from_dict(simulator.kubeconfig()), namespace=namespace, field_manager="me")
    with made:
        yield made


def pod(name: str, node: str | None = None, **labels: str) -> Pod:
    spec = PodSpec(nodeName=node, containers=[Container(name="c", image="app:1")])
    return Pod(metadata=ObjectMeta(name=name, labels=labels), spec=spec)


def deployment(name: str) -> Deployment:
    template = PodTemplateSpec(metadata=ObjectMeta(labels={"app": name}), spec=pod("").spec)
    spec = DeploymentSpec(replicas=1, selector=LabelSelector(matchLabels={"app": name}), template=template)
    return Deployment(metadata=ObjectMeta(name=name), spec=spec)


def test_lists_with_selectors_and_in_pages(client: Client) -> None:
    for number in range(5):
        client.create(pod(f"p{number}", app="odd" if number % 2 else "even"))
    found = client.list(Pod, labels={"app": op.in_(["odd"])}, fields={"metadata.name": op.not_equal("p1")})
    assert [one.metadata.name for one in found] == ["p3"]
    assert [one.metadata.name for one in client.list(Pod, chunk_size=2)] == ["p0", "p1", "p2", "p3", "p4"]
    assert "p0" in [one.metadata.name for one in client.list(Pod, namespace="*")]


def test_refusals(client: Client) -> None:
    with pytest.raises(ApiError) as missing:
        client.get(Pod, "none")
    assert (missing.value.status.code, missing.value.status.reason) == (404, "NotFound")
    client.create(pod("p"))
    found = client.get(Pod, "p")
    found.metadata.labels = {"a": "b"}
    client.replace(found)
    with pytest.raises(ApiError, match="the object has been modified"):
        client.replace(found)
    with pytest.raises(ApiError, match="the pods of this cluster are pretended"):
        list(client.log("p"))


def test_a_watch_goes_on_behind_a_list(client: Client) -> None:
    listed = client.list(Pod)
    assert list(listed) == []
    client.create(pod("p"))
    client.delete(Pod, "p", grace_period=0)
    seen = []
    for event, one in client.watch(Pod, resource_version=listed.resourceVersion, server_timeout=10):
        seen.append((event, one.metadata.name))
        if event == "DELETED":
            break
    assert seen == [("ADDED", "p"), ("DELETED", "p")]


def test_a_watch_from_an_expired_version_is_refused_with_410(client: Client, simulator: Simulator) -> None:
    listed = client.list(Pod)
    list(listed)
    client.create(pod("p"))
    simulator.call(simulator.server.compact)
    with pytest.raises(ApiError) as expired:
        next(client.watch(Pod, resource_version=listed.resourceVersion, server_timeout=10))
    assert expired.value.status.code == 410


def test_it_waits_for_conditions(client: Client) -> None:
    client.create(Node(metadata=ObjectMeta(name=f"n-{client.namespace}"), status=NodeStatus(capacity={"pods": "9"})))
    client.create(pod("p", f"n-{client.namespace}"))
    assert client.wait(Pod, "p", for_conditions=["Ready"]).status.phase == "Running"


def test_every_type_of_patch(client: Client) -> None:
    client.create(pod("p", first="1"))
    client.patch(Pod, "p", {"metadata": {"labels": {"strategic": "1"}}})
    client.patch(Pod, "p", [{"op": "remove", "path": "/metadata/labels/first"}], patch_type=PatchType.JSON)
    client.patch(Pod, "p", {"metadata": {"labels": {"merged": "1"}}}, patch_type=PatchType.MERGE)
    client.set(Pod, "p", annotations={"note": "kept"})
    found = client.get(Pod, "p").metadata
    assert (found.labels, found.annotations) == ({"strategic": "1", "merged": "1"}, {"note": "kept"})


def test_applying_with_managers(client: Client) -> None:
    def settings(value: str) -> ConfigMap:
        return ConfigMap(metadata=ObjectMeta(name="c"), data={"a": value})

    client.apply(settings("1"))
    with pytest.raises(ApiError, match=r'conflict with "me": \.data\.a'):
        client.apply(settings("2"), field_manager="you")
    assert client.apply(settings("2"), field_manager="you", force=True).data == {"a": "2"}
    assert client.apply(settings("3"), field_manager="you", dry_run=True).data == {"a": "3"}
    assert client.get(ConfigMap, "c").data == {"a": "2"}


def test_subresources(client: Client) -> None:
    client.create(deployment("d"))
    scale = Deployment.Scale(metadata=ObjectMeta(name="d"), spec=ScaleSpec(replicas=3))
    assert client.replace(scale, namespace=client.namespace).spec.replicas == 3
    assert client.patch(Deployment.Scale, "d", {"spec": {"replicas": 2}}).spec.replicas == 2
    assert client.get(Deployment, "d").spec.replicas == 2
    client.create(pod("p"))
    client.patch(Pod.Status, "p", {"status": {"message": "waiting"}})
    assert client.get(Pod, "p").status.message == "waiting"
    client.create(Pod.Eviction(metadata=ObjectMeta(name="p")), "p")
    with pytest.raises(ApiError, match="not found"):
        client.get(Pod, "p")
    assert [one.metadata.name for one in client.list(ServiceAccount)] == ["default"]


def test_deleting(client: Client) -> None:
    client.create(deployment("d"))
    client.delete(Deployment, "d", cascade=CascadeType.BACKGROUND)
    assert list(client.list(Deployment)) == []
    client.create(Secret(metadata=ObjectMeta(name="c")))
    client.deletecollection(Secret)
    assert list(client.list(Secret)) == []


def test_custom_resources(client: Client) -> None:
    (definition,) = codecs.load_all_yaml(RACKS)
    client.create(definition)
    client.wait(CustomResourceDefinition, "shelves.example.org", for_conditions=["Established"])
    load_in_cluster_generic_resources(client)
    assert get_generic_resource("example.org/v1", "Shelf") is not None
    shelves = create_namespaced_resource("example.org", "v1", "Shelf", "shelves")
    client.create(shelves(metadata=ObjectMeta(name="s"), spec={"size": 1}))
    client.apply(shelves(metadata=ObjectMeta(name="s"), spec={"color": "red"}))
    client.patch(shelves.Status, "s", {"status": {"used": 1}}, patch_type=PatchType.MERGE)
    found = client.get(shelves, "s")
    assert (found["spec"], found["status"]) == ({"size": 1, "color": "red"}, {"used": 1})
    client.delete(CustomResourceDefinition, "shelves.example.org")


async def test_the_asynchronous_client(simulator: Simulator, namespace: str) -> None:
    client = AsyncClient(config=KubeConfig.from_dict(simulator.kubeconfig()), namespace=namespace)
    with trio.fail_after(10):
        await client.create(pod("p"))
        assert [one.metadata.name async for one in client.list(Pod)] == ["p"]
        async for event, one in client.watch(Pod, server_timeout=10):
            assert (event, one.metadata.name) == ("ADDED", "p")
            break
        await client.close()
