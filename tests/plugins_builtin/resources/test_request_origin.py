"""Which part of a pod a request comes from, in words."""

from typing import Any

import msgspec
import pytest

from plugins_builtin.resources.request_origin import request_origin
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import ResourceOptions


def container(name: str, cpu: str = "", *, sidecar: bool = False) -> dict[str, Any]:
    requests = {"cpu": cpu} if cpu else {}
    return {"name": name, "resources": {"requests": requests}, **({"restartPolicy": "Always"} if sidecar else {})}


def origin(resource: str = "cpu", annotations: dict[str, str] | None = None, **spec: Any) -> str:
    metadata = {"name": "p", "namespace": "team", "annotations": annotations}
    pod = msgspec.convert({"metadata": metadata, "spec": {"containers": [container("app", "1")], **spec}}, Pod)
    return request_origin(pod, resource, ResourceOptions())


@pytest.mark.parametrize(
    ("inits", "text"),
    [
        ([], ""),
        ([container("small", "500m")], ""),
        ([container("warm", "6")], " (init container warm asks for 6 CPU)"),
        ([container("mesh", "3", sidecar=True)], " (3 CPU of it sidecar mesh)"),
        (
            [container("mesh", "3", sidecar=True), container("warm", "2")],
            " (init container warm asks for 2 CPU; 3 CPU of it sidecar mesh)",
        ),
        ([container("early", "3"), container("mesh", "3", sidecar=True)], " (3 CPU of it sidecar mesh)"),
    ],
)
def test_init_containers_and_sidecars_are_named_where_they_decide(inits: list[Any], text: str) -> None:
    assert origin(initContainers=inits) == text


def test_requests_of_the_whole_pod_overhead_and_defaults_are_named() -> None:
    assert origin(resources={"requests": {"cpu": "3"}}) == " (spec.resources of the whole pod)"
    assert origin(overhead={"cpu": "500m"}) == " (500m CPU of it overhead of its runtime class)"
    ranged = {"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container app"}
    assert origin("cpu", ranged) == origin("memory", ranged)
    assert origin("memory", ranged) == " (a default of a LimitRange in namespace team)"
    assert origin("ephemeral-storage", ranged) == ""
