"""What the scheduler offers to its plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Literal, Protocol

from trio_sched.errors import TrioSchedError
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_group import PodGroup
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import PodGroupState
from trio_sched.plugin_api.preemption import DryRun, Victims
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns


class KindNotWatched(TrioSchedError, LookupError):
    """A plugin reads objects of a kind that no plugin watches."""

    def __init__(self, kind: str, fix: str = "") -> None:
        super().__init__(kind, fix)
        self.kind = kind
        self.fix = fix or (
            f'write watches = ("{kind}",) in the class of the plugin that reads them, or register for its events in '
            "events_to_register"
        )

    def __str__(self) -> str:
        return f"kind {self.kind!r} is not watched, so its objects are not known; {self.fix}"


class WriteConflict(TrioSchedError):
    """The object is not, or no longer, at the version that a write asks for; the text is the API server's."""


class ObjectGone(TrioSchedError, LookupError):
    """There is no such object; the text is the API server's."""


class OutcomeUnknown(TrioSchedError):
    """A write got no response: the API server may have made it, or may still make it."""


class WaitingPod(Protocol):
    """A pod whose permit returned `Wait`."""

    @property
    def pod(self) -> Pod:
        """The pod, assumed on its node."""
        ...

    @property
    def pending_plugins(self) -> frozenset[str]:
        """The plugins that have not allowed it yet."""
        ...

    def allow(self, plugin: str) -> None:
        """*plugin* allows the pod; it is bound when no plugin is pending any more."""
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """*plugin* rejects the pod; returns False if it was allowed or rejected before."""
        ...


class Handle(Protocol):
    """The scheduler as plugins see it. Methods that are not ``async`` return at once."""

    @property
    def profile_name(self) -> str:
        """The schedulerName of the profile this plugin instance belongs to."""
        ...

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are in this scheduling cycle; do not use it after the cycle."""
        ...

    def feature_enabled(self, gate: str) -> bool:
        """Whether the feature gate *gate* is on."""
        ...

    def now(self) -> float:
        """The time of the scheduler's clock, in seconds; simulated in tests and simulations."""
        ...

    def objects(self, kind: str) -> Iterable[Any]:
        """All objects of *kind* (``DeviceClass``, ``Namespace``) in the caches.

        A kind is watched if a plugin has registered for its events, or lists it in its ``watches``. There are none in
        ``__init__``, before the watches have begun, and of a kind that the API server does not serve.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    def object(self, kind: str, name: str, namespace: str = "") -> Any | None:
        """One object of *kind* as a watch last showed it, or None.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    def version(self, kind: str) -> int:
        """Grows whenever an object of *kind* is added, changed or deleted; for plugins that cache what they computed.

        A change of nothing but ``metadata.resourceVersion`` and ``metadata.generation`` does not count.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    @property
    def rng(self) -> Random:
        """The scheduler's random number generator; seeded in tests and simulations."""
        ...

    def nominated_node(self, pod: Pod) -> str:
        """The node that *pod* is nominated to, "" if there is none; the status of the pod can be older."""
        ...

    def pending_pod(self, namespace: str, name: str) -> Pod | None:
        """The newest version of a pod that has no node, or None if it has one by now or is gone."""
        ...

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Waiting pods, by UID: those whose permit returned `Wait`."""
        ...

    def pod_group_state(self, namespace: str, name: str) -> PodGroupState | None:
        """The pods of a pod group; None if none of its pods is known, or without the gate GenericWorkload.

        In an attempt to schedule the group, its pods for which a node was found count as assumed.
        """
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move those of *pods* that are unschedulable or in backoff to the active queue."""
        ...

    def dry_run_preemption(self, pod: Pod, state: CycleState, node_names: Sequence[str], num_candidates: int) -> DryRun:
        """Find on each of some nodes the pods of lower priority to evict so that *pod* fits there.

        Args:
            pod: the preemptor.
            state: the state of its cycle.
            node_names: the nodes to evaluate, in this order.
            num_candidates: how many candidates end the dry run, once one of them violates no disruption budget.
        """
        ...

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Call the extenders that support preemption; returns what they leave of *candidates* (by node name).

        Raises:
            Exception: an extender that is not ignorable failed.
        """
        ...

    async def preempt(
        self, preemptor: Pod, victims: Sequence[Pod], node_name: str, plugin: str, *, in_background: bool
    ) -> Status | None:
        """Delete *victims* on *node_name* to make room for *preemptor*.

        *plugin* is named in the status of victims that wait on permit or are in pre_bind.

        Returns:
            None once it is done, or at once with *in_background*; else why it failed.
        """
        ...

    def is_preempting_for(self, preemptor: Pod | PodGroup) -> bool:
        """Whether a watch has yet to show that all victims of a pod, or of a pod group, are terminating."""
        ...

    def is_preempting_on(self, node_name: str) -> bool:
        """Whether a watch has yet to show that all victims on *node_name*, of any pod, are terminating."""
        ...

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind *pod* to *node_name* through the API server; None, or why it failed."""
        ...

    def wall_seconds(self) -> float:
        """Seconds since the beginning of 1970, to compare with times in objects; simulated in tests and simulations."""
        ...

    def record_event(self, pod: Pod, type: Literal["Normal", "Warning"], reason: str, action: str, note: str) -> None:
        """Record an event about *pod*; it is sent later, and repeated ones are counted."""
        ...

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Count in one of kube-scheduler's metrics that plugins count in; for others, use prometheus-client.

        Args:
            metric: its name without ``scheduler_``, of those in the reference of the metrics that say so.
            labels: the values of its labels, in the order of their names.
            seconds: what is observed, if it is a histogram.

        Raises:
            LookupError: there is no such metric.
        """
        ...

    def run_in_background(self, job: Callable[[], Awaitable[None]]) -> None:
        """Call *job* and await it while the scheduler goes on: for what an unreserve has to take back.

        A failure is logged. At a stop there is a while for jobs to end.
        """
        ...

    # --- writing: what a plugin writes is listed in its ``writes`` --------------------------------------------------

    async def read(self, kind: str, name: str, *, namespace: str = "") -> Any:
        """An object as the API server has it now, which a watch may show later.

        Raises:
            ObjectGone: there is none.
            Exception: the API server refused, with its text, or did not respond.
        """
        ...

    async def create(self, kind: str, body: Mapping[str, Any], *, namespace: str = "") -> Any:
        """Create an object; returns it as the API server stored it.

        Args:
            kind: as in `objects`.
            body: the object as in JSON, without ``apiVersion`` and ``kind``.
            namespace: of the object.

        Raises:
            WriteConflict: the name is taken.
            OutcomeUnknown: there was no response.
            Exception: the API server refused, with its text.
        """
        ...

    async def patch(
        self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* (JSON merge patch) into an object; returns it as the API server stored it.

        ``metadata.resourceVersion`` and ``metadata.uid`` in *patch* are preconditions: the object must still be at that
        version, and be that object.

        Args:
            kind: as in `objects`, or Pod or Node.
            name: of the object.
            patch: what to merge.
            namespace: of the object.
            subresource: ``status``, for instance; in ``writes`` that is ``ResourceClaim/status``.

        Raises:
            WriteConflict: a precondition does not hold.
            ObjectGone: there is no such object.
            OutcomeUnknown: there was no response.
            Exception: the API server refused, with its text.
        """
        ...

    async def delete(self, kind: str, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object, with *uid* only if it has that one.

        Raises:
            WriteConflict: it has another UID.
            ObjectGone: there is no such object.
            OutcomeUnknown: there was no response.
            Exception: the API server refused, with its text.
        """
        ...

    async def changed(self, kind: str, name: str, *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait until a watch shows that an object has changed or was deleted; False after *timeout_seconds*.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...
