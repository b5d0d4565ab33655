"""The API server: objects that are changed only by whoever names the version that is stored, and a log of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import define, evolve, field

from contrib.sharding.objects import Change, Claim, Lease, Listing, Node, PodGroup, Reply, ShardedPod, Stored


@define(eq=False)
class Server:
    """Stores pods, claims, pod groups and leases. Names of different kinds differ."""

    nodes: Mapping[str, Node]
    about_to_bind: Callable[[ShardedPod, str], None]
    """Sees every pod and its node before it is bound."""
    about_to_evict: Callable[[ShardedPod, str], None]
    """Sees every pod that is to terminate, and the name of the pod that it makes room for."""
    about_to_allocate: Callable[[Claim], None]
    """Sees every claim with the device that it is to get."""
    about_to_hold: Callable[[str, Lease], None]
    """Sees the name of every lease, and it as it is to be."""
    pods: dict[str, ShardedPod] = field(factory=dict, init=False)
    claims: dict[str, Claim] = field(factory=dict, init=False)
    groups: dict[str, PodGroup] = field(factory=dict, init=False)
    leases: dict[str, Lease] = field(factory=dict, init=False)
    log: list[Change] = field(factory=list, init=False)
    revision: int = field(default=0, init=False)
    followers: list[Callable[[], None]] = field(factory=list, init=False)
    """Are called after each change of anything but leases."""

    def list(self) -> Listing:
        """Return all that is stored but leases."""
        return Listing(self.revision, len(self.log), dict(self.pods), dict(self.claims), dict(self.groups))

    def create(self, stored: Stored) -> None:
        """Store something new."""
        self._store(stored)

    def delete(self, name: str) -> None:
        """Delete a pod, if it exists, and its claim if it was the last one that uses it."""
        pod = self.pods.pop(name, None)
        if pod is None:
            return
        self._append(name, None)
        if pod.claim in self.claims and not any(one.claim == pod.claim for one in self.pods.values()):
            del self.claims[pod.claim]
            self._append(pod.claim, None)

    def bind(self, name: str, node: str, version: int | None) -> Reply:
        """Bind a pod, if it has this version, or any if that is None."""
        pod = self.pods.get(name)
        if pod is None or pod.node or (version is not None and pod.version != version):
            return Reply(is_done=pod is not None and pod.node == node, value=pod)
        self.about_to_bind(pod, node)
        return self._store(evolve(pod, node=node, nominated="", preempts=False, is_reserved=False))

    def nominate(
        self, name: str, node: str, version: int, *, preempts: bool = False, is_reserved: bool = False
    ) -> Reply:
        """Nominate a pod to *node*; empty: to none any more."""
        pod = self.pods.get(name)
        if pod is None or pod.node or pod.version != version:
            return Reply(is_done=False, value=pod)
        return self._store(evolve(pod, nominated=node, preempts=preempts, is_reserved=is_reserved))

    def evict(self, name: str, version: int, preemptor: str) -> Reply:
        """Have a pod terminate that has this version."""
        pod = self.pods.get(name)
        if pod is None or pod.is_terminating or pod.version != version:
            return Reply(is_done=pod is None or pod.is_terminating, value=pod)
        self.about_to_evict(pod, preemptor)
        return self._store(evolve(pod, is_terminating=True))

    def allocate(self, name: str, version: int, node: str, device: int) -> Reply:
        """Allocate a device to a claim that has this version; no node: none any more."""
        claim = self.claims.get(name)
        if claim is None or claim.version != version:
            return Reply(is_done=False, value=claim)
        claim = evolve(claim, node=node, device=device)
        self.about_to_allocate(claim)
        return self._store(claim)

    def schedule_group(self, name: str, version: int) -> Reply:
        """Note that enough pods of a group have reserved places."""
        group = self.groups.get(name)
        if group is None or group.version != version:
            return Reply(is_done=False, value=group)
        return self._store(evolve(group, is_scheduled=True))

    def touch(self, name: str, version: int) -> Reply:
        """Give something another version."""
        stored: Stored | None = self.pods.get(name) or self.claims.get(name) or self.groups.get(name)
        if stored is None or stored.version != version:
            return Reply(is_done=False, value=stored)
        return self._store(evolve(stored, touched=stored.touched + 1))

    def put_lease(self, name: str, lease: Lease) -> Reply:
        """Replace a lease of the version that *lease* has; 0: it must not exist."""
        stored = self.leases.get(name)
        if (0 if stored is None else stored.version) != lease.version:
            return Reply(is_done=False, value=stored)
        self.about_to_hold(name, lease)
        self.revision += 1
        written = self.leases[name] = evolve(lease, version=self.revision)
        return Reply(is_done=True, value=written)

    def _store(self, stored: Stored) -> Reply:
        stored = evolve(stored, version=self.revision + 1)
        if isinstance(stored, ShardedPod):
            self.pods[stored.name] = stored
        elif isinstance(stored, Claim):
            self.claims[stored.name] = stored
        else:
            self.groups[stored.name] = stored
        self._append(stored.name, stored)
        return Reply(is_done=True, value=stored)

    def _append(self, name: str, stored: Stored | None) -> None:
        self.revision += 1
        self.log.append(Change(self.revision, name, stored))
        for follower in self.followers:
            follower()
