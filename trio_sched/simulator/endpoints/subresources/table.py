"""The subresources: which requests each one takes, of which kind it is, and which function serves it.

Routing, discovery and the server all read `SUBRESOURCES`. A new subresource is a row there, its function, and its name
in the table of `resource_types` at the resources that have it.
"""

from collections.abc import Callable, Mapping
from typing import Final

from attrs import frozen

from trio_sched.simulator.endpoints.messages import Request, Response
from trio_sched.simulator.endpoints.subresources.pod_subresources import serve_binding, serve_eviction
from trio_sched.simulator.endpoints.subresources.scaling import serve_scale
from trio_sched.simulator.endpoints.subresources.unsupported_subresources import serve_token, serve_without_container
from trio_sched.simulator.errors.targets import Target
from trio_sched.simulator.storage.cluster_state import ClusterState
from trio_sched.simulator.storage.resource_types import ResourceType

_READ_WRITE: Final = {"GET": "get", "PUT": "update", "PATCH": "patch"}
_DISCOVERY_VERBS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


@frozen(kw_only=True)
class Subresource:
    """One subresource.

    Attributes:
        verbs: HTTP method → the verb of the `Target`.
        kind: the group, version and kind of the objects that it takes and returns; ``None``: those of its resource.
        serve: carries out a request; ``None``: `reading` and `writing` do, as for the object itself.
    """

    verbs: Mapping[str, str]
    kind: tuple[str, str, str] | None = None
    serve: Callable[[ClusterState, Target, Request], Response] | None = None

    def kind_of(self, resource: ResourceType) -> tuple[str, str, str]:
        """Group, version and kind of this subresource of *resource*."""
        return self.kind or (resource.group, resource.version, resource.kind)

    @property
    def discovery_verbs(self) -> list[str]:
        """The verbs as discovery lists them."""
        return sorted(_DISCOVERY_VERBS[method] for method in self.verbs)


SUBRESOURCES: Final[Mapping[str, Subresource]] = {
    "status": Subresource(verbs=_READ_WRITE),
    "scale": Subresource(verbs=_READ_WRITE, kind=("autoscaling", "v1", "Scale"), serve=serve_scale),
    "finalize": Subresource(verbs={"PUT": "update"}),
    "resize": Subresource(verbs=_READ_WRITE),
    "binding": Subresource(verbs={"POST": "bind"}, kind=("", "v1", "Binding"), serve=serve_binding),
    "eviction": Subresource(verbs={"POST": "evict"}, kind=("policy", "v1", "Eviction"), serve=serve_eviction),
    "token": Subresource(
        verbs={"POST": "create"}, kind=("authentication.k8s.io", "v1", "TokenRequest"), serve=serve_token
    ),
    "log": Subresource(verbs={"GET": "get"}, serve=serve_without_container),
    "ephemeralcontainers": Subresource(verbs=_READ_WRITE, serve=serve_without_container),
    **{
        name: Subresource(verbs={"GET": "get", "POST": "create"}, serve=serve_without_container)
        for name in ("exec", "attach", "portforward", "proxy")
    },
}
"""Every subresource by its name in paths."""
