"""What a request to a resource is about."""

from attrs import frozen

from trio_sched.simulator.resource_types import ResourceType


@frozen(slots=True)
class Target:
    """What a request is about.

    Attributes:
        verb: Kubernetes' word for it (``get``, ``list``, ``create`` …), and ``bind`` and ``evict`` for those two.
        namespace: empty for cluster-wide resources and lists across namespaces.
        name: empty for whole collections.
        subresource: empty for the object itself.
    """

    resource: ResourceType
    verb: str
    namespace: str
    name: str
    subresource: str
