"""The official Python client: what its examples do."""

from __future__ import annotations  # the client loads a class when it is named, which takes seconds for all of them

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from simulator_thread import Simulator

kubernetes = pytest.importorskip("kubernetes", reason="the Python client kubernetes is not installed")

from kubernetes import client, config, dynamic, stream, utils, watch  # noqa: E402
from kubernetes.client.exceptions import ApiException  # noqa: E402
from kubernetes.informer import SharedInformer  # noqa: E402

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
RACKS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "racks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "racks", "singular": "rack", "kind": "Rack"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.slots", "statusReplicasPath": ".status.used"},
                },
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture(scope="module")
def api(simulator: Simulator) -> Iterator[client.ApiClient]:
    settings = client.Configuration()
    config.load_kube_config_from_dict(simulator.kubeconfig(), client_configuration=settings)
    with client.ApiClient(settings) as made:
        yield made


@pytest.fixture
def core(api: client.ApiClient) -> client.CoreV1Api:
    return client.CoreV1Api(api)


def pod(name: str, **labels: str) -> client.V1Pod:
    return client.V1Pod(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1PodSpec(containers=[client.V1Container(name="c", image="app:1")]),
    )


def deployment(name: str) -> client.V1Deployment:
    template = client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels={"app": name}), spec=pod("").spec)
    selector = client.V1LabelSelector(match_labels={"app": name})
    spec = client.V1DeploymentSpec(replicas=1, selector=selector, template=template)
    return client.V1Deployment(metadata=client.V1ObjectMeta(name=name), spec=spec)


def node(name: str) -> client.V1Node:
    ready = client.V1NodeCondition(type="Ready", status="True")
    status = client.V1NodeStatus(capacity={"cpu": "4", "pods": "110"}, conditions=[ready])
    return client.V1Node(metadata=client.V1ObjectMeta(name=name), status=status)


def names(found: Any) -> list[str]:
    return [one.metadata.name for one in found.items]


def refusal(error: pytest.ExceptionInfo[ApiException]) -> tuple[int, str]:
    return error.value.status, json.loads(error.value.body)["reason"]


def wait_for(core: client.CoreV1Api, namespace: str, version: str, condition: Callable[[Any], bool]) -> None:
    """Watch the pods of *namespace* from *version* on until *condition* holds for an event."""
    watching = watch.Watch()
    met = False
    for event in watching.stream(core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=10):
        met = condition(event)
        if met:
            watching.stop()
    assert met


def test_versions_and_groups(api: client.ApiClient) -> None:
    assert client.VersionApi(api).get_code().git_version == "v1.36.2"
    assert client.CoreApi(api).get_api_versions().versions == ["v1"]
    groups = {group.name: group.preferred_version.version for group in client.ApisApi(api).get_api_versions().groups}
    assert groups["apps"] == "v1"
    assert groups["resource.k8s.io"] == "v1"
    assert "pods/binding" in [one.name for one in client.CoreV1Api(api).get_api_resources().resources]
    for path in ("/healthz", "/readyz", "/livez/ping"):
        assert api.call_api("GET", api.configuration.host + path).read() == b"ok"


def test_lists_with_selectors_and_in_pages(core: client.CoreV1Api, namespace: str) -> None:
    for number in range(5):
        core.create_namespaced_pod(namespace, pod(f"p{number}", app="odd" if number % 2 else "even"))
    assert set(names(core.list_pod_for_all_namespaces())) >= {f"p{number}" for number in range(5)}
    chosen = core.list_namespaced_pod(namespace, label_selector="app in (odd)", field_selector="metadata.name!=p1")
    assert names(chosen) == ["p3"]
    pages, following = [], None
    while following != "":
        page = core.list_namespaced_pod(namespace, limit=2, _continue=following)
        pages.append(names(page))
        following = page.metadata._continue or ""
    assert pages == [["p0", "p1"], ["p2", "p3"], ["p4"]]


def test_what_is_missing_or_wrong_is_refused(core: client.CoreV1Api, namespace: str) -> None:
    with pytest.raises(ApiException) as missing:
        core.read_namespaced_pod("none", namespace)
    assert refusal(missing) == (404, "NotFound")
    core.create_namespaced_pod(namespace, pod("p"))
    with pytest.raises(ApiException) as twice:
        core.create_namespaced_pod(namespace, pod("p"))
    assert refusal(twice) == (409, "AlreadyExists")
    with pytest.raises(ApiException) as wrong:
        core.create_namespaced_pod(namespace, pod("Not_A_Name"))
    assert refusal(wrong) == (422, "Invalid")


def test_a_watch_goes_on_behind_a_list(core: client.CoreV1Api, namespace: str) -> None:
    listed = core.list_namespaced_pod(namespace)
    core.create_namespaced_pod(namespace, pod("p"))
    core.delete_namespaced_pod("p", namespace)
    watching = watch.Watch()
    seen = []
    for event in watching.stream(
        core.list_namespaced_pod, namespace, resource_version=listed.metadata.resource_version, timeout_seconds=10
    ):
        seen.append((event["type"], event["object"].metadata.name))
        if event["type"] == "DELETED":
            watching.stop()
    assert seen == [("ADDED", "p"), ("DELETED", "p")]


def test_a_watch_streams_initial_events_up_to_a_bookmark(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("p"))
    watching = watch.Watch()
    for event in watching.stream(
        core.list_namespaced_pod,
        namespace,
        send_initial_events=True,
        allow_watch_bookmarks=True,
        resource_version_match="NotOlderThan",
    ):
        if event["type"] == "BOOKMARK":
            annotations = event["raw_object"]["metadata"]["annotations"]
            watching.stop()
        else:
            assert event["object"].metadata.name == "p"
    assert annotations == {"k8s.io/initial-events-end": "true"}


def test_a_watch_from_an_expired_version_is_refused_with_410(
    core: client.CoreV1Api, namespace: str, simulator: Simulator
) -> None:
    version = core.list_namespaced_pod(namespace).metadata.resource_version
    core.create_namespaced_pod(namespace, pod("p"))
    simulator.call(simulator.server.compact)
    with pytest.raises(ApiException) as expired:
        list(watch.Watch().stream(core.list_namespaced_pod, namespace, resource_version=version, timeout_seconds=10))
    assert expired.value.status == 410
    assert expired.value.reason.startswith("Expired: too old resource version")


def test_an_informer_follows_and_recovers_from_expired_versions(
    core: client.CoreV1Api, namespace: str, simulator: Simulator
) -> None:
    events: Queue[tuple[str, str]] = Queue()
    informer = SharedInformer(core.list_namespaced_pod, namespace=namespace)
    for kind in ("ADDED", "MODIFIED", "DELETED"):
        informer.add_event_handler(kind, lambda one, kind=kind: events.put((kind, one.metadata.name)))
    core.create_namespaced_pod(namespace, pod("p"))
    informer.start()
    try:
        assert events.get(timeout=10) == ("ADDED", "p")
        core.patch_namespaced_pod("p", namespace, {"metadata": {"labels": {"a": "b"}}})
        assert events.get(timeout=10) == ("MODIFIED", "p")
        simulator.call(simulator.server.restart)
        core.create_namespaced_pod(namespace, pod("q"))
        assert events.get(timeout=10) == ("ADDED", "q")
        assert sorted(informer.cache.list_keys()) == [f"{namespace}/p", f"{namespace}/q"]
    finally:
        informer.stop()


def test_every_type_of_patch(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("p", first="1"))

    def patched(body: Any, **more: Any) -> dict[str, str]:
        labels: dict[str, str] = core.patch_namespaced_pod("p", namespace, body, **more).metadata.labels
        return labels

    assert patched({"metadata": {"labels": {"strategic": "1"}}}) == {"first": "1", "strategic": "1"}
    assert patched([{"op": "remove", "path": "/metadata/labels/first"}]) == {"strategic": "1"}
    assert patched({"metadata": {"labels": {"merged": "1"}}}, _content_type=MERGE) == {"strategic": "1", "merged": "1"}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"applied": "1"}}}
    applied = patched(body, _content_type=APPLY, field_manager="me")
    assert applied == {"strategic": "1", "merged": "1", "applied": "1"}
    with pytest.raises(ApiException) as unmet:
        patched([{"op": "test", "path": "/metadata/labels/applied", "value": "2"}])
    assert refusal(unmet) == (422, "Invalid")


def test_managers_of_fields_conflict_unless_forced(core: client.CoreV1Api, namespace: str) -> None:
    def apply(image: str, manager: str, **more: Any) -> Any:
        spec = {"containers": [{"name": "c", "image": image}]}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
        return core.patch_namespaced_pod("p", namespace, body, _content_type=APPLY, field_manager=manager, **more)

    apply("app:1", "me")
    with pytest.raises(ApiException) as contested:
        apply("app:2", "you")
    message = json.loads(contested.value.body)["message"]
    assert message == ('Apply failed with 1 conflict: conflict with "me": .spec.containers[name="c"].image')
    assert apply("app:2", "you", force=True).spec.containers[0].image == "app:2"


def test_replacing_an_old_version_conflicts(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "c"}, "data": {"a": "1"}})
    found = core.read_namespaced_config_map("c", namespace)
    found.data = {"a": "2"}
    core.replace_namespaced_config_map("c", namespace, found)
    with pytest.raises(ApiException) as outdated:
        core.replace_namespaced_config_map("c", namespace, found)
    assert refusal(outdated) == (409, "Conflict")
    core.replace_namespaced_config_map("c", namespace, {"metadata": {"name": "c"}, "data": {}}, dry_run="All")
    assert core.read_namespaced_config_map("c", namespace).data == {"a": "2"}


def test_a_scheduler_binds_and_pods_run_until_they_are_evicted(core: client.CoreV1Api, namespace: str) -> None:
    core.create_node(node(f"n-{namespace}"))
    version = core.create_namespaced_pod(namespace, pod("p")).metadata.resource_version
    target = client.V1ObjectReference(kind="Node", api_version="v1", name=f"n-{namespace}")
    binding = client.V1Binding(metadata=client.V1ObjectMeta(name="p"), target=target)
    core.create_namespaced_pod_binding("p", namespace, binding, _preload_content=False)
    wait_for(core, namespace, version, lambda event: event["object"].status.phase == "Running")
    assert core.read_namespaced_pod_status("p", namespace).status.phase == "Running"
    with pytest.raises(ApiException) as bound:
        core.create_namespaced_binding(namespace, binding, _preload_content=False)
    assert refusal(bound) == (409, "Conflict")
    core.create_namespaced_pod_eviction("p", namespace, client.V1Eviction(metadata=client.V1ObjectMeta(name="p")))
    wait_for(core, namespace, version, lambda event: event["type"] == "DELETED")
    assert core.list_namespaced_pod(namespace).items == []


def test_status_and_scale(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("p"))
    patched = core.patch_namespaced_pod_status("p", namespace, {"status": {"message": "waiting"}})
    assert patched.status.message == "waiting"
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("d"))
    scale = apps.read_namespaced_deployment_scale("d", namespace)
    scale.spec.replicas = 2
    apps.replace_namespaced_deployment_scale("d", namespace, scale)
    assert apps.patch_namespaced_deployment_scale("d", namespace, {"spec": {"replicas": 3}}).spec.replicas == 3
    assert apps.read_namespaced_deployment("d", namespace).spec.replicas == 3


def test_deleting(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("d"))
    answer = apps.delete_namespaced_deployment("d", namespace, propagation_policy="Foreground")
    assert answer is not None
    for name in ("p1", "p2", "kept"):
        core.create_namespaced_pod(namespace, pod(name, app=name[0]))
    core.delete_namespaced_pod("p1", namespace, grace_period_seconds=0)
    core.delete_collection_namespaced_pod(namespace, label_selector="app=p")
    assert "kept" in names(core.list_namespaced_pod(namespace))
    assert not {"p1", "p2"} & set(names(core.list_namespaced_pod(namespace)))
    with pytest.raises(ApiException) as unknown:
        core.delete_namespaced_pod("kept", namespace, propagation_policy="Sideways")
    assert refusal(unknown) == (422, "Invalid")


def test_what_needs_a_container_is_refused(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_pod(namespace, pod("p"))
    with pytest.raises(ApiException) as log:
        core.read_namespaced_pod_log("p", namespace)
    assert "the pods of this cluster are pretended" in log.value.body
    with pytest.raises(ApiException, match="the pods of this cluster are pretended"):
        stream.stream(core.connect_get_namespaced_pod_exec, "p", namespace, command=["ls"], stdout=True)
    with pytest.raises(ApiException, match="the pods of this cluster are pretended"):
        stream.portforward(core.connect_get_namespaced_pod_portforward, "p", namespace, ports="80")


def test_custom_resources_through_the_dynamic_client(api: client.ApiClient, namespace: str, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovered"), discoverer=dynamic.EagerDiscoverer)
    definitions = found.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
    definitions.create(RACKS)
    found.resources.invalidate_cache()
    racks = found.resources.get(api_version="example.com/v1", kind="Rack")
    rack = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r"}, "spec": {"slots": 1}}
    racks.create(body=rack, namespace=namespace)
    racks.patch(name="r", namespace=namespace, body={"spec": {"row": 2}}, content_type=MERGE)
    racks.server_side_apply(name="r", namespace=namespace, body={**rack, "spec": {"color": "red"}}, field_manager="me")
    racks.status.patch(name="r", namespace=namespace, body={"status": {"used": 1}}, content_type=MERGE)
    racks.scale.patch(name="r", namespace=namespace, body={"spec": {"slots": 9, "replicas": 4}}, content_type=MERGE)
    one = racks.get(name="r", namespace=namespace)
    assert one.spec.to_dict() == {"slots": 4, "row": 2, "color": "red"}
    assert one.status.used == 1
    (event,) = racks.watch(namespace=namespace, timeout=1, resource_version="0", watcher=_first_only())
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "r")
    custom = client.CustomObjectsApi(api)
    scale = custom.get_namespaced_custom_object_scale("example.com", "v1", namespace, "racks", "r")
    assert (scale["spec"], scale["status"]["replicas"]) == ({"replicas": 4}, 1)
    custom.delete_collection_namespaced_custom_object("example.com", "v1", namespace, "racks")
    assert racks.get(namespace=namespace).items == []
    definitions.delete(name="racks.example.com")


def _first_only() -> watch.Watch:
    """A watch that stops at its first event."""
    watching = watch.Watch()
    read = watching.unmarshal_event

    def unmarshal(data: Any, return_type: Any) -> Any:
        watching.stop()
        return read(data, return_type)

    watching.unmarshal_event = unmarshal
    return watching


def test_objects_from_manifests(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    wanted = [api.sanitize_for_serialization(one) for one in (deployment("d"), pod("p"))]
    for one, version, kind in zip(wanted, ("apps/v1", "v1"), ("Deployment", "Pod"), strict=True):
        one |= {"apiVersion": version, "kind": kind}
    utils.create_from_dict(api, {"apiVersion": "v1", "kind": "List", "items": wanted}, namespace=namespace)
    assert names(apps.list_namespaced_deployment(namespace)) == ["d"]
    with pytest.raises(utils.FailToCreateError, match="already exists"):
        utils.create_from_dict(api, wanted[1], namespace=namespace)


def test_users_may_do_everything(api: client.ApiClient, core: client.CoreV1Api, namespace: str) -> None:
    attributes = client.V1ResourceAttributes(verb="create", resource="pods", namespace=namespace)
    review = client.V1SelfSubjectAccessReview(spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes))
    assert client.AuthorizationV1Api(api).create_self_subject_access_review(review).status.allowed
    asked = client.AuthenticationV1Api(api).create_self_subject_review(client.V1SelfSubjectReview())
    assert asked.status.user_info.username == "simulator-admin"
    assert names(core.list_namespaced_service_account(namespace)) == ["default"]
    request = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
    assert core.create_namespaced_service_account_token("default", namespace, request).status.token


def test_everything_that_is_listed_can_be_read(api: client.ApiClient, tmp_path: Path) -> None:
    found = dynamic.DynamicClient(api, cache_file=str(tmp_path / "discovered"))
    kinds = [one for one in found.resources.search() if "list" in (one.verbs or ()) and not one.kind.endswith("List")]
    assert len(kinds) > 40
    for one in kinds:
        assert one.get(limit=1).kind.endswith("List")
