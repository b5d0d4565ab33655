"""Kinds of objects: their paths in the API, and the classes that they are decoded into."""

import re
from collections.abc import Callable
from typing import Generic, TypeVar
from urllib.parse import quote

from attrs import frozen

from trio_sched.objects.config_map import ConfigMap
from trio_sched.objects.lease import Lease
from trio_sched.objects.metadata import WireObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.sharing import share_node, share_pod

T = TypeVar("T", bound=WireObject)

_is_unreserved = re.compile(r"[A-Za-z0-9._~-]+").fullmatch


def path_segment(text: str) -> str:
    """*text*, percent-encoded where it has to be; nearly no name has to, and finding that out here is faster."""
    return text if _is_unreserved(text) else quote(text, safe="")


@frozen(kw_only=True)
class Kind(Generic[T]):
    """A resource of an API server.

    Attributes:
        group: empty for the core group.
        version: ``v1``.
        plural: as in URLs.
        namespaced: whether objects are in namespaces.
        type: the class that objects are decoded into.
        field_selector: of list and watch.
        transform: called with every object that is listed or watched, and with its version before if there is one;
            returns the object to use instead, for instance one that shares with others what is the same.
        keep_raw: called with every object and the JSON it was decoded from; returns the object to use instead, for
            instance one that keeps the JSON. With it every object is decoded one by one, which takes longer.
    """

    version: str
    plural: str
    namespaced: bool
    type: type[T]
    group: str = ""
    field_selector: str = ""
    transform: Callable[[T, T | None], T] | None = None
    keep_raw: Callable[[T, bytes], T] | None = None

    @property
    def api_version(self) -> str:
        """``apps/v1``, or just ``v1`` in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str = "") -> str:
        """The path of all objects, or of those in *namespace*."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        inside = f"/namespaces/{path_segment(namespace)}" if namespace and self.namespaced else ""
        return f"{root}{inside}/{self.plural}"

    def path(self, name: str, *, namespace: str = "", subresource: str = "") -> str:
        """The path of one object, or of a *subresource* of it."""
        path = f"{self.collection(namespace)}/{path_segment(name)}"
        return f"{path}/{subresource}" if subresource else path


POD_KIND = Kind(
    version="v1",
    plural="pods",
    namespaced=True,
    type=Pod,
    # Pods that have finished use no resources; when a pod finishes, the watch reports it as deleted.
    field_selector="status.phase!=Succeeded,status.phase!=Failed",
    transform=share_pod,
)
NODE_KIND = Kind(version="v1", plural="nodes", namespaced=False, type=Node, transform=share_node)
LEASE_KIND = Kind(group="coordination.k8s.io", version="v1", plural="leases", namespaced=True, type=Lease)
CONFIG_MAP_KIND = Kind(version="v1", plural="configmaps", namespaced=True, type=ConfigMap)
