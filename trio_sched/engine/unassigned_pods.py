"""The pods without a node, as the watch shows them."""

from __future__ import annotations

from attrs import define, field

from trio_sched.objects.pod import Pod


@define(eq=False)
class UnassignedPods:
    """The pods without a node whose schedulerName is one of the profiles, by ``namespace/name``; newest versions.

    The queue has copies of its own, which are older while a pod is in flight.
    """

    _pods: dict[str, Pod] = field(factory=dict)

    def get(self, key: str) -> Pod | None:
        """The pod called *key*, if it exists and still has no node."""
        return self._pods.get(key)

    def put(self, pod: Pod) -> None:
        """A new pod, or a new version of one."""
        self._pods[pod.key] = pod

    def drop(self, pod: Pod) -> None:
        """The pod is gone or has a node."""
        key = pod.key
        known = self._pods.get(key)
        if known is not None and known.uid == pod.uid:
            del self._pods[key]

    @property
    def by_key(self) -> dict[str, Pod]:
        """All of them by ``namespace/name``, the newest at the end; read-only."""
        return self._pods

    def pods(self) -> list[Pod]:
        """All of them."""
        return list(self._pods.values())

    def __len__(self) -> int:
        return len(self._pods)
