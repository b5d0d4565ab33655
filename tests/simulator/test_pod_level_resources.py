import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.pod_defaults import fill_pod, quality_of_service


def filled(resources: Json | None, *containers: Json, first: Json | None = None) -> Json:
    spec: Json = {"containers": [{"name": f"c{n}", "resources": one} for n, one in enumerate(containers)]}
    if first is not None:
        spec["initContainers"] = [{"name": "first", "resources": first}]
    if resources is not None:
        spec["resources"] = resources
    fill_pod(spec)
    return spec


@pytest.mark.parametrize(
    ("given", "containers", "requests"),
    [
        ({"limits": {"cpu": "1"}}, [{}], {"cpu": "1"}),
        ({"limits": {"cpu": "1"}}, [{"requests": {"cpu": "100m"}}, {"requests": {"cpu": "300m"}}], {"cpu": "400m"}),
        ({"limits": {"cpu": "1"}}, [{"requests": {"memory": "64Mi"}}], {"cpu": "1", "memory": "64Mi"}),
        ({"limits": {"memory": "1Gi"}}, [{"limits": {"memory": "64Mi"}}] * 2, {"memory": "128Mi"}),
        ({"limits": {"cpu": "1"}}, [{"requests": {"ephemeral-storage": "1Gi"}}], {"cpu": "1"}),
        ({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}, [{"requests": {"cpu": "100m"}}], {"cpu": "500m"}),
        ({"requests": {"cpu": "500m"}}, [{"requests": {"memory": "64Mi"}}], {"cpu": "500m"}),
        (
            {"limits": {"cpu": "1"}},
            [{"limits": {"hugepages-2Mi": "4Mi"}, "requests": {"hugepages-2Mi": "4Mi"}}],
            {"cpu": "1", "hugepages-2Mi": "4Mi"},
        ),
        ({"limits": {"cpu": "1"}}, [{"requests": {"cpu": "x"}}], None),
    ],
)
def test_what_a_pod_as_a_whole_requests_follows_from_its_containers_and_then_its_limits(
    given: Json, containers: list[Json], requests: Json | None
) -> None:
    assert filled(given, *containers)["resources"].get("requests") == requests


def test_the_containers_count_as_they_run() -> None:
    spec = filled({"limits": {"cpu": "4"}}, {"requests": {"cpu": "1"}}, first={"requests": {"cpu": "2500m"}})
    assert spec["resources"]["requests"] == {"cpu": "2500m"}


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        (None, "Burstable"),
        ({}, "BestEffort"),
        ({"requests": {"cpu": "1"}}, "Burstable"),
        ({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed"),
    ],
)
def test_the_quality_of_service_is_that_of_the_pod_as_a_whole(resources: Json | None, quality: str) -> None:
    assert quality_of_service(filled(resources, {"requests": {"cpu": "1"}})) == quality
