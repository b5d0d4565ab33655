"""What a request to a resource is about."""

import msgspec

from trio_sched.simulator.storage.resource_types import ResourceType


class Target(msgspec.Struct, frozen=True):
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
