"""The extension points, in the order a pod meets them.

A plugin is a class with a ``name``, an ``__init__(self, args, handle)``, if it takes arguments a class ``Args`` (of
attrs, a dataclass or a ``msgspec.Struct``), and methods marked with `hookimpl` for the points it extends. A method may
name a subset of the arguments below, never others. Kinds of objects that it reads through the handle without
registering for their events are listed in ``watches``, a tuple of names like ``"Service"``; reading any other kind
raises `KindNotWatched`. What it writes through the handle is listed in ``writes``: verbs by kind, like
``{"PersistentVolume": ("patch",)}``, or by kind and subresource, like ``"ResourceClaim/status"``. From all of these
``trio-sched rbac`` computes the roles that the scheduler needs.

Only post_filter, pre_bind, bind and post_bind may be ``async def``, and run must be. Any other hook that is ``async
def``, and any hook but events_to_register and clauses that is a generator, is refused when the plugin is loaded. A
method that has the name of a hook but is not marked is logged then; if it would be the only hook, the plugin is
refused.

All hooks run in one thread, so while one computes, or sleeps without ``await``, nothing else runs: one that takes 100
ms or more (``--plugin-blocking-budget``) is named in the log, with the line where it stood. A post_filter, bind or
post_bind that is awaited for more than 60 s is cancelled, and has failed unless it returns all the same; what it waits
for in the handle's ``bind``, ``preempt`` and ``process_preemption`` does not count. A pre_bind has 600 s, because
something may have to be made, or what the class attribute ``pre_bind_timeout_seconds`` says.

A hook that raises, or returns anything but what is listed for it, ends the attempt for this pod and nothing else: the
pod goes back to the queue, its FailedScheduling event and its condition name the plugin and what was wrong, and the log
has one line with distribution, hook, fix and traceback. Where a failure has another effect, the hook says so. A hook
that returns a Status may return `failure`: the attempt ends too, but the log has no line about the plugin. That is
``on_failure = "closed"``; a class, or ``--plugin-failure-policy``, may say ``"open"``: the call counts as if the plugin
had nothing to say (a filter lets all nodes pass, a score is 0), or ``"skip:3"``: after three failures in a row it is
not called for a minute. bind and queue_sort have no such answer, and pre_bind always fails closed.

``requires_api = "1.0"`` in a class says which `API_VERSION` it needs: that minor version or a later one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar, TypeAlias, TypeVar

import pluggy

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Clause
from trio_sched.plugin_api.cluster_events import EventRegistration
from trio_sched.plugin_api.custom_resources import CustomResource
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.pod_groups import (
    Placement,
    PlacementAssignments,
    PlacementProgress,
    PodGroupInfo,
    PodGroupPostFilterResult,
    PodGroupTrial,
)
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import (
    Diagnosis,
    Domain,
    Input,
    PostFilterResult,
    PreFilterResult,
    PreFlight,
    QueuedPod,
    Verdicts,
    Wait,
)
from trio_sched.snapshot.arrays import Int64Array
from trio_sched.snapshot.node_columns import NodeColumns, NodeView

PROJECT = "trio_sched"
"""The entry point group of plugins, and pluggy's project name."""

T = TypeVar("T")
MaybeAwaitable: TypeAlias = T | Awaitable[T]
"""What a hook returns that may be ``async``."""

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a method of a plugin as its implementation of the hook of the same name."""


class ExtensionPoints:
    """The contract between scheduler and plugins, as the types of hooks and of what a class declares.

    A plugin may inherit from it, for mypy and pyright to compare its hooks with these; they then have to name all
    arguments. Nothing else changes: a hook counts if it is marked with `hookimpl`.
    """

    name: ClassVar[str]
    watches: ClassVar[Sequence[str | CustomResource[Any]]]
    writes: ClassVar[Mapping[Any, Sequence[str]]]
    """By kind: its name, with a subresource or without, or a CustomResource."""
    depends_on: ClassVar[AbstractSet[Input | Domain] | None]
    on_failure: ClassVar[str]
    requires_api: ClassVar[str]
    pre_bind_timeout_seconds: ClassVar[float]
    run_once_per_process: ClassVar[bool]
    run_on_leader_only: ClassVar[bool]

    # --- in the queue ---------------------------------------------------------------------------------------------

    @hookspec
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Say whether *pod* may be scheduled at all.

        When: before the pod enters the active or the backoff queue; must be fast.
        Return: None lets it in; any Status but success gates it, until one of your registered events moves it. A
        failure gates it too. Which Status does not matter, and the API server is not told: the pod gets neither a
        condition nor an event, as in kube-scheduler. `Handle.record_event` tells its owner why it waits.
        """
        raise NotImplementedError

    @hookspec
    def queue_sort(self, queued: QueuedPod) -> Any:
        """Give the sort key of a pod in the active queue; the pod with the smallest key is scheduled first.

        When: each time the pod enters a queue. All profiles must have the same queue_sort plugin,
        and one only: disable PrioritySort at ``queueSort``. From 1.37 on, the pods of a group are one entity: they have
        the time of their group, and here its priority, too.
        Return: anything that compares with itself and with the keys of other pods, a tuple for instance. After a
        failure the pod is ordered by priority and time, behind all pods with a key; so are all pods of the queue if two
        of their keys do not compare.
        """
        raise NotImplementedError

    @hookspec
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Name the events that may make a pod schedulable that you have rejected.

        When: once, at start. Pods that were rejected by a plugin without this method are queued again after every
        event.
        Return: an iterable of registrations, each with a hint function if not every such event is worth another
        attempt; without registrations such pods wait for the periodic flush. A failure stops the start. A hint function
        that fails counts as QUEUE. If your filter judges a node by what is on it, register for deleted pods with
        ``node_local=True``: then only those pods are queued that it lets pass on the node of the deleted one.
        """
        raise NotImplementedError

    @hookspec
    def sign(self, pod: Pod) -> Hashable | None:
        """Give a value that is equal for pods for which your hooks return the same.

        When: once per version of the pod, and again when objects that you read have changed. With ``depends_on`` it
        lets the scheduler cache your results: pods with equal signatures share masks and scores, which are computed
        again only for nodes that changed. pre_filter and pre_score are then called once for all of them, unless they
        store values and you have hooks after the scores: then these get the values of their own pod.
        Return: a hashable value; None if your results for this pod must not be cached. After a failure nothing is
        cached for this pod.
        """
        raise NotImplementedError

    # --- finding nodes --------------------------------------------------------------------------------------------

    @hookspec
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterResult | Status | None:
        """Prepare what filter needs, narrow the nodes, or end the cycle.

        When: once per cycle, in the order of the profile, before any filter.
        Args: *nodes* are all nodes, also those that other plugins have excluded; *state* holds what you write to it for
        the later hooks of this cycle.
        Return: None to go on; a `PreFilterResult` with the names of the only nodes to evaluate; `SKIP` if your filter
        has nothing to do for this pod; ``unresolvable`` ends the cycle at once; ``unschedulable`` ends it after the
        other pre_filters ran. Any other code is a failure.
        """
        raise NotImplementedError

    @hookspec
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Say on which nodes *pod* cannot run.

        When: after pre_filter, on all nodes at once; with cached results on the nodes that changed.
        Args: *nodes* may be any subset of the cluster; the result for a node must not depend on which others are in it.
        Return: `Verdicts` with codes of shape ``(len(nodes),)`` and an integer or boolean dtype, whose *explain*
        returns a rejecting Status for every code but 0 (or Error, with ``may_fail=True``).
        """
        raise NotImplementedError

    @hookspec
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Say whether *pod* cannot run on one *node*; simpler to write than filter, but a call per node, so slower.

        When: in place of ``filter``, for every node that passed the ``filter`` of all plugins.
        Return: None if it can run there, else a rejecting Status with the reason.
        """
        raise NotImplementedError

    @hookspec
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Update what you have written to *state* as if *added* ran on *node* too.

        When: in the filter pass with nominated pods, and when preemption puts victims back; *state* is a clone. Only
        for plugins that write counts of pods to *state*.
        Return: None; any other Status is a failure.
        """
        raise NotImplementedError

    @hookspec
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Update what you have written to *state* as if *removed* did not run on *node*.

        When: in the dry run of preemption, for every potential victim; *state* is a clone.
        Return: None; any other Status is a failure.
        """
        raise NotImplementedError

    @hookspec
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> MaybeAwaitable[PostFilterResult | None]:
        """Make room for a pod that fits on no node. May be ``async``.

        When: no node passed the filters, or a pre_filter rejected the pod; in the order of the profile, until one
        plugin ends the phase.
        Return: None if there is nothing that you can do; else a `PostFilterResult`. Its status None (success),
        ``unresolvable`` and Error end the phase, ``unschedulable`` and ``pending`` go on to the next plugin.
        """
        raise NotImplementedError

    # --- scoring nodes --------------------------------------------------------------------------------------------

    @hookspec
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Prepare what score needs.

        When: once per cycle, if more than one node passed.
        Args: *nodes* are those that passed.
        Return: None to go on; `SKIP` if your score has nothing to do for this pod. Any other code is a failure.
        """
        raise NotImplementedError

    @hookspec
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """Score the nodes that passed every filter.

        When: after pre_score, on all of them at once; with cached results on the nodes that changed.
        Return: an array of shape ``(len(nodes),)`` and an integer dtype, higher is better; 0..100, or any range that
        your normalize_score maps to 0..100. Floats are refused: round them as you need.
        """
        raise NotImplementedError

    @hookspec
    def score_node(self, pod: Pod, node: NodeView, state: CycleState) -> int:
        """Score one *node*; simpler to write than score, but a call per node, so slower.

        When: in place of ``score``, for every node that passed.
        Return: an int in the range of score.
        """
        raise NotImplementedError

    @hookspec
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Map your scores of this cycle to 0..100.

        When: after score, with the scores of all nodes that passed.
        Args: *scores* is a copy of shape (nodes,), which you may overwrite.
        Return: an array of the same shape and an integer dtype; a number outside of 0..100 is a failure.
        """
        raise NotImplementedError

    # --- the node is chosen ---------------------------------------------------------------------------------------

    @hookspec
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Reserve what *pod* will use on the node.

        When: the pod has just been assumed there. If any plugin rejects the pod or fails from here on, every
        ``unreserve`` runs.
        Return: None once it is reserved; a rejecting Status ends the attempt.
        """
        raise NotImplementedError

    @hookspec
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Release what reserve has reserved.

        When: the pod will not run on the node after all; in reverse order, also if your reserve did not run, and also
        after permit has let it pass, if binding it fails. It still counts on the node. What you return does not
        matter; a failure is only logged.
        """
        raise NotImplementedError

    @hookspec
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | Wait | None:
        """Permit the binding of the pod, reject it, or make the pod wait.

        When: last step of the scheduling cycle.
        Return: None permits; a rejecting Status ends the attempt; `Wait` delays the binding until the pod is allowed or
        rejected through ``Handle.waiting_pods``, or is rejected because the time is over.
        """
        raise NotImplementedError

    # --- placing pod groups -------------------------------------------------------------------------------------------

    @hookspec
    def placement_generate(
        self, group: PodGroupInfo, nodes: NodeColumns, state: CycleState
    ) -> Iterable[Placement] | Status | None:
        """Name the sets of nodes of which a pod group needs one for all of its pods.

        When: once per attempt of a pod group, before its pods are scheduled, with the gate
        TopologyAwareWorkloadScheduling; of one plugin per profile.
        Args: *nodes* are all nodes; *state* is the one of the group, which also `placement_score` gets.
        Return: the placements, each with at least one node; the group is tried on one after the other. None: there is
        one, with all nodes. A rejecting Status, or no placement, makes the group unschedulable.
        """
        raise NotImplementedError

    @hookspec
    def placement_feasible(self, group: PodGroupInfo, progress: PlacementProgress, state: CycleState) -> Status | None:
        """Say whether enough pods of a group fit, or still can.

        When: in each placement before the first pod and after every pod of an attempt, from 1.37 on (see
        ``Handle.emulated_version``; before, permit decides that, which is now called only for pods that are about to be
        bound); of all plugins of the profile, until one rejects.
        Args: *progress* counts the pods that have a node and those that have not been tried; *state* is the one of the
        group.
        Return: None if enough pods fit; `not_yet` if more have to; ``unschedulable`` if more cannot, which ends the
        attempt. The group is scheduled if at the end all plugins return None, and at least one pod fits. Any other code
        is a failure.
        """
        raise NotImplementedError

    @hookspec
    def placement_score(self, group: PodGroupInfo, placement: PlacementAssignments, state: CycleState) -> int | Status:
        """Score a placement that the group fits in.

        When: for each of them, if there are at least two.
        Return: an int, higher is better; 0..100, or any range that your normalize_placement_score maps to 0..100. Any
        Status is a failure.
        """
        raise NotImplementedError

    @hookspec
    def normalize_placement_score(
        self, group: PodGroupInfo, scores: Int64Array, state: CycleState
    ) -> Int64Array | Status:
        """Map your scores of all placements to 0..100.

        When: after placement_score.
        Args: *scores* is a copy of shape (placements,), which you may overwrite.
        Return: an array of the same shape and an integer dtype; a number outside of 0..100 is a failure, and so is any
        Status.
        """
        raise NotImplementedError

    @hookspec
    def pod_group_post_filter(
        self, group: PodGroupInfo, trial: PodGroupTrial
    ) -> PodGroupPostFilterResult | Iterable[Pod] | Status | None:
        """Name the pods to evict so that a pod group fits.

        When: the group is unschedulable. From 1.37 on: in the order of the profile, until a plugin names victims or
        fails, instead of post_filter for its pods. Before: with the gate WorkloadAwarePreemption, of the first plugin
        that has it.
        Args: *trial* answers whether the group would fit without some pods. Use it before you return, not later.
        Return: the victims, which are evicted by the scheduler, or a `PodGroupPostFilterResult` with them; a rejecting
        Status or None if there is nothing that you can do.
        """
        raise NotImplementedError

    # --- binding --------------------------------------------------------------------------------------------------

    @hookspec
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
        """Say whether pre_bind will have something to do for this pod.

        When: first step of the binding cycle.
        Return: `SKIP` if not; None or a `PreFlight` if so. Any other code is a failure.
        """
        raise NotImplementedError

    @hookspec
    def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> MaybeAwaitable[Status | None]:
        """Do what must be done before the pod can run on the node. May be ``async``.

        After a minute a warning in the log names pod and plugin; after 600 s, or what the class attribute
        ``pre_bind_timeout_seconds`` says, it is cancelled, and the attempt has failed.

        When: when all plugins have permitted the pod; not for plugins whose pre_bind_pre_flight returned `SKIP`.
        Return: None when it is done; a rejecting Status ends the attempt.
        """
        raise NotImplementedError

    @hookspec
    def bind(self, pod: Pod, node_name: str, state: CycleState) -> MaybeAwaitable[Status | None]:
        """Bind the pod through the API server. May be ``async``.

        When: in the order of the profile, until a plugin does not return `SKIP`.
        Return: None when the pod is bound; `SKIP` leaves it to the next plugin; a rejecting Status ends the attempt.
        """
        raise NotImplementedError

    @hookspec
    def post_bind(self, pod: Pod, node_name: str, state: CycleState) -> MaybeAwaitable[None]:
        """Do what follows from the binding of the pod. May be ``async``.

        When: the API server has accepted the binding. What you return does not matter; a failure is only logged.
        """
        raise NotImplementedError

    # --- explaining a pending pod ---------------------------------------------------------------------------------

    @hookspec
    def clauses(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Iterable[Clause]:
        """Name what the pod asks for, each requirement by itself, and what would meet it.

        When: a pod is explained (``trio-sched explain``), after the pre_filters of all
        plugins; *state* is what these have left, without what a pre_filter that rejected the pod did not write. Never
        while pods are scheduled. Without this hook, each status of the filter is a clause.
        Return: an iterable of `Clause`. Where the filter passes a node, no clause of the plugin counts; nodes that the
        filter rejects and no clause does are explained by the status of the filter.
        """
        raise NotImplementedError

    # --- in the background ----------------------------------------------------------------------------------------

    @hookspec
    async def run(self) -> None:
        """Work in the background for as long as the scheduler runs. Must be ``async``.

        When: started once by the supervisor, in its nursery, also if the plugin has no other hook. An exception stops
        the scheduler with an error that names the plugin: catch `ApiRequestFailed` and `HttpFailed`, and go on. If the
        plugin does not fail closed, it is logged and the task is started again after a minute.

        Each profile has an instance of the plugin, and each of them runs, in every replica. Two attributes of the class
        change that: ``run_once_per_process = True`` has only the instance of the first profile run (`Handle.shared` is
        where the others find what it did); ``run_on_leader_only = True`` starts it when this replica begins to lead,
        without leader election at once, and cancels it when that ends. A replica that does not lead cannot write: then
        `Handle.create`, `Handle.patch` and `Handle.delete` raise `NotLeading`.
        """
        raise NotImplementedError


HOOK_NAMES = tuple(name for name in vars(ExtensionPoints) if not name.startswith("_"))
"""Every hook, in the order a pod meets them."""

ASYNC_HOOKS = ("post_filter", "pre_bind", "bind", "post_bind", "run")
"""The hooks that may be ``async``."""

POINT_OF_HOOK = {
    "pre_enqueue": "pre_enqueue",
    "queue_sort": "queue_sort",
    "pre_filter": "pre_filter",
    "filter": "filter",
    "filter_node": "filter",
    "post_filter": "post_filter",
    "pre_score": "pre_score",
    "score": "score",
    "score_node": "score",
    "reserve": "reserve",
    "unreserve": "reserve",
    "permit": "permit",
    "placement_generate": "placement_generate",
    "placement_score": "placement_score",
    "pod_group_post_filter": "pod_group_post_filter",
    "pre_bind": "pre_bind",
    "bind": "bind",
    "post_bind": "post_bind",
}
"""Hook → the extension point in the configuration file (in snake case) that switches it on."""

FORMER_POINT_OF_HOOK = {"pod_group_post_filter": "post_filter"}
"""Hook → the extension point that switches it on where the emulated version does not have its own: before 1.37."""
