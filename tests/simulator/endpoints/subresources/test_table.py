from trio_sched.simulator.endpoints.subresources.table import SUBRESOURCES
from trio_sched.simulator.storage.resource_types import BUILT_IN_TYPES


def test_the_subresources_of_the_resources_are_those_of_the_table() -> None:
    assert {name for resource in BUILT_IN_TYPES for name in resource.subresources} == SUBRESOURCES.keys()


def test_discovery_lists_what_is_posted_as_created() -> None:
    assert SUBRESOURCES["eviction"].discovery_verbs == ["create"]
    assert SUBRESOURCES["scale"].discovery_verbs == ["get", "patch", "update"]


def test_a_subresource_without_a_kind_has_that_of_its_resource() -> None:
    deployments = next(resource for resource in BUILT_IN_TYPES if resource.plural == "deployments")
    assert SUBRESOURCES["status"].kind_of(deployments) == ("apps", "v1", "Deployment")
    assert SUBRESOURCES["scale"].kind_of(deployments) == ("autoscaling", "v1", "Scale")
