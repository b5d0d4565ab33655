"""The API server: pods and leases, changed only by whoever names the version that is stored, and a log of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, evolve, field, frozen


@frozen(kw_only=True)
class Node:
    """A node."""

    name: str
    cpu: int
    """In millicores."""
    zone: str


@frozen(kw_only=True)
class ShardedPod:
    """A pod, as far as sharing the work needs it."""

    name: str
    owner: str
    """The name of what made it, which is the label that others repel it by, too."""
    cpu: int
    repels: str = ""
    """It must not be in a zone with pods of this owner: required anti-affinity."""
    version: int = 0
    node: str = ""
    nominated: str = ""
    touched: int = 0
    """Something in its status that nobody reads: a change of it makes every former version outdated."""


@frozen(kw_only=True)
class Lease:
    """A lease."""

    holder: str
    """Empty: it was released."""
    acknowledged: int = 0
    """The revision that the holder has seen before all that it decides from now on or has decided without an end."""
    version: int = 0


@frozen
class Reply:
    """What became of a request."""

    is_done: bool
    value: ShardedPod | Lease | None = None
    """As it is stored now; None: it does not exist."""


@frozen
class Change:
    """A pod was written; None: deleted."""

    revision: int
    name: str
    pod: ShardedPod | None


@define(eq=False)
class Server:
    """Stores pods and leases."""

    nodes: Mapping[str, Node]
    about_to_bind: Callable[[ShardedPod, str], None]
    """Sees every pod and its node before it is bound."""
    pods: dict[str, ShardedPod] = field(factory=dict, init=False)
    leases: dict[str, Lease] = field(factory=dict, init=False)
    log: list[Change] = field(factory=list, init=False)
    revision: int = field(default=0, init=False)
    followers: list[Callable[[], None]] = field(factory=list, init=False)
    """Are called after each change of a pod."""

    def create(self, pod: ShardedPod) -> None:
        """Store a new pod."""
        self._store(pod)

    def delete(self, name: str) -> None:
        """Delete a pod, if it exists."""
        if self.pods.pop(name, None) is not None:
            self.revision += 1
            self._append(Change(self.revision, name, None))

    def bind(self, name: str, node: str, version: int | None) -> Reply:
        """Bind a pod, if it has this version, or any if that is None."""
        pod = self.pods.get(name)
        if pod is None or pod.node or (version is not None and pod.version != version):
            return Reply(is_done=pod is not None and pod.node == node, value=pod)
        self.about_to_bind(pod, node)
        return self._store(evolve(pod, node=node, nominated=""))

    def nominate(self, name: str, node: str, version: int) -> Reply:
        """Nominate a pod to *node*; empty: to none any more."""
        pod = self.pods.get(name)
        if pod is None or pod.node or pod.version != version:
            return Reply(is_done=False, value=pod)
        return self._store(evolve(pod, nominated=node))

    def touch(self, name: str, version: int) -> Reply:
        """Give a pod another version."""
        pod = self.pods.get(name)
        if pod is None or pod.node or pod.version != version:
            return Reply(is_done=False, value=pod)
        return self._store(evolve(pod, touched=pod.touched + 1))

    def put_lease(self, name: str, lease: Lease) -> Reply:
        """Replace a lease of the version that *lease* has; 0: it must not exist."""
        stored = self.leases.get(name)
        if (0 if stored is None else stored.version) != lease.version:
            return Reply(is_done=False, value=stored)
        self.revision += 1
        written = self.leases[name] = evolve(lease, version=self.revision)
        return Reply(is_done=True, value=written)

    def _store(self, pod: ShardedPod) -> Reply:
        self.revision += 1
        stored = self.pods[pod.name] = evolve(pod, version=self.revision)
        self._append(Change(self.revision, pod.name, stored))
        return Reply(is_done=True, value=stored)

    def _append(self, change: Change) -> None:
        self.log.append(change)
        for follower in self.followers:
            follower()
