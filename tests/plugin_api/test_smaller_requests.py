"""Smaller requests of a pod: which container gives, and what stays together."""

from typing import Any

import pytest
from msgspec import convert

from trio_sched.plugin_api import Pod, ResourceOptions, nano_requests, to_amounts
from trio_sched.plugin_api.smaller_requests import with_request

GIB = 1 << 30
OPTIONS = ResourceOptions()


def pod(**spec: Any) -> Pod:
    return convert({"metadata": {"name": "p", "namespace": "default"}, "spec": spec}, Pod)


def container(name: str, memory: str, **more: Any) -> dict[str, Any]:
    limits = {"limits": {"memory": more.pop("limit")}} if "limit" in more else {}
    return {"name": name, "resources": {"requests": {"memory": memory}, **limits}, **more}


def requests_of(one: Pod | None) -> list[str]:
    assert one is not None
    found = [*(one.spec.containers or ()), *(one.spec.init_containers or ())]
    return [str((each.resources.requests or {})["memory"]) for each in found if each.resources is not None]


@pytest.mark.parametrize(
    ("spec", "most", "expected"),
    [
        ({"containers": [container("a", "8Gi")]}, 6, ["6Gi"]),
        ({"containers": [container("a", "4Gi"), container("b", "8Gi")]}, 6, ["4Gi", "2Gi"]),
        ({"containers": [container("a", "1Gi")], "initContainers": [container("i", "9Gi")]}, 6, ["1Gi", "6Gi"]),
        (
            {"containers": [container("a", "2Gi")], "initContainers": [container("s", "8Gi", restartPolicy="Always")]},
            6,
            ["2Gi", "4Gi"],
        ),
        ({"containers": [container("a", "8Gi")], "overhead": {"memory": "1Gi"}}, 6, ["5Gi"]),
    ],
)
def test_the_container_that_requests_most_gives_first(spec: dict[str, Any], most: int, expected: list[str]) -> None:
    lower = with_request(pod(**spec), "memory", most * GIB, OPTIONS)
    assert requests_of(lower) == expected
    assert lower is not None
    assert to_amounts(nano_requests(lower, OPTIONS)).memory_bytes == most * GIB


def test_a_limit_that_is_the_request_follows_it_and_others_stay() -> None:
    equal = with_request(pod(containers=[container("a", "8Gi", limit="8192Mi")]), "memory", 6 * GIB, OPTIONS)
    higher = with_request(pod(containers=[container("a", "8Gi", limit="9Gi")]), "memory", 6 * GIB, OPTIONS)
    limits = [(one.spec.containers or ())[0].resources for one in (equal, higher) if one is not None]
    assert [one.limits for one in limits if one is not None] == [{"memory": "6Gi"}, {"memory": "9Gi"}]


def test_containers_request_no_more_than_their_pod() -> None:
    spec = {"resources": {"requests": {"memory": "12Gi"}}, "containers": [container("a", "10Gi")]}
    lower = with_request(pod(**spec), "memory", 8 * GIB, OPTIONS)
    assert requests_of(lower) == ["8Gi"]
    assert lower is not None
    assert lower.spec.resources is not None
    assert lower.spec.resources.requests == {"memory": "8Gi"}


def test_what_is_not_the_containers_cannot_be_given() -> None:
    assert with_request(pod(containers=[], overhead={"memory": "8Gi"}), "memory", 6 * GIB, OPTIONS) is None
