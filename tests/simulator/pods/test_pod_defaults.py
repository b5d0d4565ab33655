from typing import Any

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.pod_defaults import add_default_tolerations, fill_pod, quality_of_service


def filled(**spec: Any) -> Json:
    spec = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    fill_pod(spec)
    return spec


def test_a_bare_pod_gets_the_defaults_of_kube_apiserver() -> None:
    spec = filled()
    container = spec.pop("containers")[0]
    assert spec == {
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "enableServiceLinks": True,
    }
    assert container == {
        "name": "main",
        "image": "app:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("app", "Always"),
        ("app:latest", "Always"),
        ("app:1", "IfNotPresent"),
        ("host:5000/app", "Always"),
        ("host:5000/app:2", "IfNotPresent"),
        ("app@sha256:00", "IfNotPresent"),
    ],
)
def test_images_without_a_fixed_tag_are_always_pulled(image: str, policy: str) -> None:
    assert filled(containers=[{"name": "c", "image": image}])["containers"][0]["imagePullPolicy"] == policy


def test_limits_are_requested_where_nothing_else_is() -> None:
    resources = {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}
    spec = filled(containers=[{"name": "c", "image": "i", "resources": resources}])
    assert spec["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_host_network_turns_container_ports_into_host_ports() -> None:
    containers = [{"name": "c", "image": "i", "ports": [{"containerPort": 80}]}]
    ports = filled(hostNetwork=True, containers=containers)["containers"][0]["ports"]
    assert ports == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_volumes_without_a_source_are_empty_dirs() -> None:
    volumes = [{"name": "v"}, {"name": "c", "configMap": {"name": "x"}}]
    assert filled(volumes=volumes)["volumes"] == [
        {"name": "v", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "x", "defaultMode": 420}},
    ]


def test_every_pod_tolerates_an_unready_node_for_five_minutes() -> None:
    spec: Json = {}
    add_default_tolerations(spec)
    assert [(one["key"], one["effect"], one["tolerationSeconds"]) for one in spec["tolerations"]] == [
        ("node.kubernetes.io/not-ready", "NoExecute", 300),
        ("node.kubernetes.io/unreachable", "NoExecute", 300),
    ]


@pytest.mark.parametrize(
    "toleration",
    [{"operator": "Exists"}, {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}],
)
def test_tolerations_a_pod_has_are_not_doubled(toleration: Json) -> None:
    spec: Json = {"tolerations": [toleration]}
    add_default_tolerations(spec)
    assert [one.get("key") for one in spec["tolerations"]].count("node.kubernetes.io/not-ready") == (
        1 if "key" in toleration else 0
    )


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, "BestEffort"),
        ({"requests": {"example.com/gpu": "1"}}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1Gi"}}, "Guaranteed"),
        ({"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}, "Burstable"),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}, "Burstable"),
    ],
)
def test_quality_of_service_follows_requests_and_limits(resources: Json, expected: str) -> None:
    assert quality_of_service({"containers": [{"resources": resources}]}) == expected
    assert quality_of_service({"resources": resources, "containers": [{}]}) == expected
