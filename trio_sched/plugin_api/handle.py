"""What the scheduler offers to its plugins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Literal, Protocol, TypeVar, overload

from trio_sched.errors import TrioSchedError
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.composite_pod_group import CompositePodGroup
from trio_sched.objects.pod_groups.pod_group import PodGroup
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.http import Http
from trio_sched.plugin_api.log import Log
from trio_sched.plugin_api.metrics import Metrics
from trio_sched.plugin_api.pending_pods import PendingPod
from trio_sched.plugin_api.pod_groups import PodGroupState, PodGroupTree
from trio_sched.plugin_api.preemption import DryRun, Victims
from trio_sched.plugin_api.status import Status
from trio_sched.snapshot.node_columns import NodeColumns, NodeView

T = TypeVar("T")
AnyKind = str | CustomResource[Any]
"""How a kind is named: ``Namespace``, ``Pod``; or what the plugin has declared."""


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


class ApiRequestFailed(TrioSchedError):
    """The API server refused a request, or there was no response; the text is the API server's.

    `NotLeading`, `WriteConflict`, `ObjectGone` and `OutcomeUnknown` are such errors, so ``except ApiRequestFailed``
    catches all that reading and writing objects raises in a correct plugin.
    """


class WriteConflict(ApiRequestFailed):
    """The object is not, or no longer, at the version that a write asks for; the text is the API server's."""


class ObjectGone(ApiRequestFailed, LookupError):
    """There is no such object; the text is the API server's."""


class NotLeading(ApiRequestFailed):
    """This replica does not lead, so it must not write; ``run_on_leader_only`` is for tasks that write."""


class OutcomeUnknown(ApiRequestFailed):
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
        """*plugin*, your own name, allows the pod; it is bound when no plugin is pending any more.

        That of a plugin that is not pending changes nothing.
        """
        ...

    def reject(self, plugin: str, message: str) -> bool:
        """*plugin* rejects the pod; returns False if it was allowed or rejected before."""
        ...


class Handle(Protocol):
    """The scheduler as plugins see it. Methods that are not ``async`` return at once.

    Each plugin of each profile has one of its own. Arguments that cannot be meant raise TypeError, ValueError or
    LookupError; outside of a ``try`` that is a failure of the plugin, as is any other exception.
    """

    @property
    def profile_name(self) -> str:
        """The schedulerName of the profile this plugin instance belongs to."""
        ...

    @property
    def plugin_name(self) -> str:
        """The name of the plugin."""
        ...

    @property
    def nodes(self) -> NodeColumns:
        """All nodes as they are now, with assumed pods; in every hook and in ``run``. Ask again after an ``await``."""
        ...

    @property
    def emulated_version(self) -> tuple[int, int]:
        """The minor version of Kubernetes that the scheduler acts as, by ``--emulated-version``: ``(1, 36)``."""
        ...

    def feature_enabled(self, gate: str) -> bool:
        """Whether the feature gate *gate* is on."""
        ...

    def now(self) -> float:
        """The time of the scheduler's clock, in seconds; simulated in tests and simulations."""
        ...

    # --- objects as the watches show them ---------------------------------------------------------------------------

    @overload
    def objects(self, kind: Literal["Pod"]) -> Iterable[Pod]: ...
    @overload
    def objects(self, kind: Literal["Node"]) -> Iterable[Node]: ...
    @overload
    def objects(self, kind: CustomResource[T]) -> Iterable[T]: ...
    @overload
    def objects(self, kind: str) -> Iterable[Any]: ...
    def objects(self, kind: AnyKind) -> Iterable[Any]:
        """All objects of *kind* in the caches: ``"Namespace"``, or a `CustomResource`.

        ``"Pod"`` and ``"Node"`` are always watched: all pods that have not finished, of all schedulers, each with the
        node that the API server knows of; `nodes` has those that are only assumed on one, too. Any other kind is
        watched if a plugin has registered for its events, or lists it in its ``watches``. There are none in
        ``__init__``, before the watches have begun, and of a kind that the API server does not serve yet. An object of
        a custom resource that does not fit its type is left out, or stays as it was, and the log names it.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    @overload
    def object(self, kind: Literal["Pod"], name: str, namespace: str = "") -> Pod | None: ...
    @overload
    def object(self, kind: Literal["Node"], name: str, namespace: str = "") -> Node | None: ...
    @overload
    def object(self, kind: CustomResource[T], name: str, namespace: str = "") -> T | None: ...
    @overload
    def object(self, kind: str, name: str, namespace: str = "") -> Any | None: ...
    def object(self, kind: AnyKind, name: str, namespace: str = "") -> Any | None:
        """One object of *kind* as a watch last showed it, or None.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    def version(self, kind: AnyKind) -> int:
        """Grows whenever an object of *kind* is added, changed or deleted; for plugins that cache what they computed.

        A change of nothing but ``metadata.resourceVersion`` and ``metadata.generation`` does not count, except of pods
        and nodes.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...

    # --- what the plugin has besides its hooks ----------------------------------------------------------------------

    @property
    def log(self) -> Log:
        """A logger for this plugin, shown from INFO on, in simulations too; *plugin* and *profile* are in each line."""
        ...

    @property
    def metrics(self) -> Metrics:
        """Makes metrics of this plugin, which are shown on ``/metrics``."""
        ...

    @property
    def http(self) -> Http:
        """Makes requests to other servers, in hooks that may be ``async``; in tests to pretend endpoints."""
        ...

    def shared(self, factory: Callable[[], T]) -> T:
        """The one object that all instances of this plugin share, one instance per profile.

        It is what the first call's *factory* returned; later ones are not called. A reload of the configuration makes
        new instances, which share a new object.
        """
        ...

    @property
    def rng(self) -> Random:
        """The scheduler's random number generator; seeded in tests and simulations."""
        ...

    def nominated_node(self, pod: Pod) -> str:
        """The node that *pod* is nominated to, "" if there is none; the status of the pod can be older."""
        ...

    def invalidate(self) -> None:
        """Say that this plugin may return other values now, for a reason that neither pods, nodes nor objects show.

        For data of other sources, which ``run`` fetches: results that were cached because of ``sign`` and
        ``depends_on`` are computed again, in all profiles. Pods that it has rejected are not tried again by that alone:
        see `activate`.
        Called from a hook whose result is just being computed to be cached, it takes effect after that pod.
        """
        ...

    def sort_queue(self) -> None:
        """Have queue_sort asked again about all pods that wait their turn, because its keys may be others now.

        For keys that follow from more than the pod and the time, what each team uses now for instance. Takes effect
        when the hook or the task that calls it has returned or waits; several calls until then count as one. queue_sort
        is called for each pod in the active queue and in backoff.
        """
        ...

    # --- pods without a node ----------------------------------------------------------------------------------------

    def pending_pods(self) -> list[PendingPod]:
        """All pods of this scheduler, of all profiles, that have no node; takes as long as there are pods."""
        ...

    def pending_pod(self, namespace: str, name: str) -> PendingPod | None:
        """A pod that has no node, or None if it has one by now or is gone."""
        ...

    def retry_after(self, pod: Pod, seconds: float) -> None:
        """Have *pod* tried again in *seconds*, if it is unschedulable or gated then; from any hook, at any time.

        It is moved as by an event (``PluginRetry`` in metrics and logs): a gated pod through pre_enqueue again, a pod
        in backoff when that is over; one that is being tried goes on, and is tried once more if that fails. Of several
        calls of one plugin for one pod the earliest time counts. Once it is over, or the pod is gone or bound, nothing
        is left of it; a call for such a pod does nothing. In a new configuration what was asked for still counts. With
        0 it is tried at once, but then not again by the same plugin within a second: pods that move each other would
        keep the scheduler busy for ever.

        Raises:
            ValueError: *seconds* is negative.
        """
        ...

    def waiting_pods(self) -> Mapping[str, WaitingPod]:
        """Waiting pods, by UID: those whose permit returned `Wait`."""
        ...

    def pod_group_state(self, namespace: str, name: str) -> PodGroupState | None:
        """The pods of a pod group; None if none of its pods is known, or without the gate GenericWorkload.

        In an attempt to schedule the group, its pods for which a node was found count as assumed.
        """
        ...

    def pod_group_tree(self, namespace: str, name: str) -> PodGroupTree | Status:
        """The tree that a pod group is in, from its root; with the gate CompositePodGroup there can be others in it.

        A status says why there is none: a group is missing, or the tree cannot be scheduled.
        """
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Have *pods* tried next, whatever they wait for.

        That may be an event, the end of their backoff, or pre_enqueue, which is asked again; one that is being tried
        is tried once more if that fails. Only after something has changed: pods that activate each other keep the
        scheduler busy for ever.
        """
        ...

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        *,
        evictable: Callable[[NodeView], Iterable[Pod]] | None = None,
    ) -> DryRun:
        """Find on each of some nodes the pods to evict so that *pod* fits there: as few as possible.

        Args:
            pod: the preemptor.
            state: the state of its cycle.
            node_names: the nodes to evaluate, in this order.
            num_candidates: how many candidates end the dry run, once one of them violates no disruption budget.
            evictable: gives the pods on a node that may be evicted, whatever their priority; by default those of lower
                priority than *pod*. Of these, pods that a budget protects are spared first, then the more important
                ones: by priority, then by how long they have been running. From 1.37 on the default is that pods of
                groups have the priority of the group, and those of a group that is evicted as a whole leave all nodes.
        """
        ...

    async def process_preemption(self, pod: Pod, candidates: Mapping[str, Victims]) -> Mapping[str, Victims]:
        """Call the extenders that support preemption; returns what they leave of *candidates* (by node name).

        Raises:
            Exception: an extender that is not ignorable failed.
        """
        ...

    async def preempt(
        self,
        preemptor: Pod,
        victims: Sequence[Pod],
        node_name: str,
        plugin: str,
        *,
        in_background: bool,
        pdb_violations: int = 0,
        group_disruptions: int = 0,
    ) -> Status | None:
        """Delete *victims* to make room for *preemptor* on *node_name*.

        Args:
            preemptor: the pod that needs the room.
            victims: the pods to delete. They are on *node_name*, but for those whose ``spec.nodeName`` is another node:
                of a group that is evicted as a whole.
            node_name: where room is made.
            plugin: is named in the status of victims that wait on permit or are in pre_bind.
            in_background: whether not to wait for it.
            pdb_violations: how many of the evictions violate a PodDisruptionBudget, for metrics.
            group_disruptions: how many victims are in pod groups, the pods of a group that is evicted as a whole being
                one, for metrics.

        Returns:
            None once it is done, or at once with *in_background*; else why it failed.
        """
        ...

    def is_preempting_for(self, preemptor: Pod | PodGroup | CompositePodGroup) -> bool:
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

    def record_event(self, about: Any, type: Literal["Normal", "Warning"], reason: str, action: str, note: str) -> None:
        """Record an event about a pod, a node, or another object that was read through the handle.

        It is sent later; repeated ones are counted. ``kubectl describe`` shows it.

        Raises:
            TypeError: *about* is no such object.
            ValueError: another argument is not usable.
        """
        ...

    def count(self, metric: str, *labels: str, seconds: float | None = None) -> None:
        """Count in one of kube-scheduler's metrics that plugins count in; for others, use `metrics`.

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

    @overload
    async def read(self, kind: CustomResource[T], name: str, *, namespace: str = "") -> T: ...
    @overload
    async def read(self, kind: str, name: str, *, namespace: str = "") -> Any: ...
    async def read(self, kind: AnyKind, name: str, *, namespace: str = "") -> Any:
        """An object as the API server has it now, which a watch may show later.

        Raises:
            ObjectGone: there is none.
            ApiRequestFailed: the API server refused, with its text, or did not respond.
        """
        ...

    @overload
    async def create(self, kind: CustomResource[T], body: Mapping[str, Any] | T, *, namespace: str = "") -> T: ...
    @overload
    async def create(self, kind: str, body: Mapping[str, Any], *, namespace: str = "") -> Any: ...
    async def create(self, kind: AnyKind, body: Any, *, namespace: str = "") -> Any:
        """Create an object; returns it as the API server stored it.

        Args:
            kind: as in `objects`.
            body: the object as in JSON, without ``apiVersion`` and ``kind``; or an instance of the type of a custom
                resource.
            namespace: of the object; without it that of its metadata.

        Raises:
            NotLeading: this replica does not lead.
            WriteConflict: the name is taken.
            OutcomeUnknown: there was no response.
            ApiRequestFailed: the API server refused, with its text.
        """
        ...

    @overload
    async def patch(
        self,
        kind: CustomResource[T],
        name: str,
        patch: Mapping[str, Any],
        *,
        namespace: str = "",
        subresource: str = "",
    ) -> T: ...
    @overload
    async def patch(
        self, kind: str, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any: ...
    async def patch(
        self, kind: AnyKind, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* (JSON merge patch) into an object; returns it as the API server stored it.

        ``metadata.resourceVersion`` and ``metadata.uid`` in *patch* are preconditions: the object must still be at that
        version, and be that object.

        Args:
            kind: as in `objects`.
            name: of the object.
            patch: what to merge.
            namespace: of the object.
            subresource: ``status``, for instance; in ``writes`` that is ``ResourceClaim/status``, or
                ``QUOTA.status`` if *kind* is a `CustomResource` called ``QUOTA``.

        Raises:
            NotLeading: this replica does not lead.
            WriteConflict: a precondition does not hold.
            ObjectGone: there is no such object.
            OutcomeUnknown: there was no response.
            ApiRequestFailed: the API server refused, with its text.
        """
        ...

    async def delete(self, kind: AnyKind, name: str, *, namespace: str = "", uid: str = "") -> None:
        """Delete an object, with *uid* only if it has that one.

        Raises:
            NotLeading: this replica does not lead.
            WriteConflict: it has another UID.
            ObjectGone: there is no such object.
            OutcomeUnknown: there was no response.
            ApiRequestFailed: the API server refused, with its text.
        """
        ...

    async def evict(self, pod: Pod) -> None:
        """Delete *pod* by the eviction API, which respects disruption budgets; ``"Pod/eviction": ("create",)``.

        Raises:
            NotLeading: this replica does not lead.
            WriteConflict: a disruption budget protects it now, or it is another pod by that name.
            ObjectGone: there is no such pod.
            OutcomeUnknown: there was no response.
            ApiRequestFailed: the API server refused, with its text.
        """
        ...

    async def changed(self, kind: AnyKind, name: str = "", *, timeout_seconds: float, namespace: str = "") -> bool:
        """Wait until a watch shows that an object has changed or was deleted; False after *timeout_seconds*.

        Without *name*, any object of *kind* that was added, changed or deleted.

        Raises:
            KindNotWatched: no plugin watches it.
        """
        ...
