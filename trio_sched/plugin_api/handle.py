"""What a plugin may ask of the scheduler it runs in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any, Protocol

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import DryRun, Victims
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns


class WaitingPod(Protocol):
    """A pod that permit made wait."""

    @property
    def pod(self) -> Pod:
        """The pod, assumed on its node."""
        ...

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """*plugin* has no objection any more; when the last one says so, the pod is bound."""
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """The pod is not to be bound; returns False if that was decided already."""
        ...


class Handle(Protocol):
    """The scheduler, seen from a plugin. What is not ``async`` answers at once."""

    @property
    def profile_name(self) -> str:
        """The schedulerName of the profile this plugin instance belongs to."""
        ...

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are in this scheduling cycle; not to be kept beyond it."""
        ...

    def feature_enabled(self, gate: str) -> bool:
        """Whether the feature gate *gate* is on."""
        ...

    def now(self) -> float:
        """The scheduler's clock, in seconds; simulated in tests and simulations."""
        ...

    def objects(self, kind: str) -> Iterable[Any]:
        """All objects of *kind* (``DeviceClass``, ``Namespace``) that are known; none if nobody watches it.

        A kind is watched if some plugin has registered for its events, or names it in its ``watches``.
        """
        ...

    def object(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """One object of *kind* as a watch last showed it, or None."""
        ...

    def version(self, kind: str) -> int:
        """Grows whenever an object of *kind* comes, goes or changes; for plugins that keep what they made of them.

        A change of ``metadata.resourceVersion`` alone does not count.
        """
        ...

    @property
    def rng(self) -> Random:
        """Where chance comes from; seeded in tests and simulations."""
        ...

    def nominated_node(self, pod: Pod) -> str:
        """The node that *pod* is nominated to, "" if it is none; its status may not have heard of it yet."""
        ...

    def pending_pod(self, namespace: str, name: str) -> Pod | None:
        """The newest version of a pod that has no node, or None if it has one by now or is gone."""
        ...

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Pods that wait for permission, by UID."""
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move *pods*, if they wait in the queue, to where they are tried next."""
        ...

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], enough: int) -> DryRun:
        """Try which less important pods would have to go for *pod* to fit on each of some nodes.

        Args:
            pod: the one to make room for.
            state: of its cycle.
            node_names: the nodes worth a try, in this order.
            enough: candidates after which no more nodes are tried, once one of them violates no disruption budget.
        """
        ...

    async def ask_extenders_about_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims]
    ) -> Mapping[str, Victims]:
        """What the extenders leave of *candidates* (by node name).

        Raises:
            Exception: an extender that cannot be ignored failed.
        """
        ...

    async def evict(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Have *victims* leave *node_name* to make room for *preemptor*, in the name of *plugin*.

        Returns:
            None once it is done, or at once if it is to happen *in_background*; else why it failed.
        """
        ...

    def is_evicting_for(self, pod: Pod) -> bool:
        """Whether pods that were evicted for *pod* have not yet been seen to be going."""
        ...

    def is_evicting_from(self, node_name: str) -> bool:
        """Whether pods that were evicted from *node_name*, for whomever, have not yet been seen to be going."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Tell the API server that *pod* runs on *node_name*."""
        ...

    async def patch(self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "") -> Any:
        """Merge *patch* (JSON merge patch) into an object; returns it as the API server has it then.

        A ``metadata.resourceVersion`` in *patch* is a condition: the object must still be at that version.

        Raises:
            Exception: the API server refused, in its words, or did not answer.
        """
        ...

    async def changed(self, kind: str, name: str, *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait until a watch shows another version of an object, or that it is gone; False if that took too long."""
        ...
