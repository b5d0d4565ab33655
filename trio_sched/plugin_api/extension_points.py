"""The extension points, in the order a pod meets them.

A plugin is a class with a ``name``, an ``__init__(self, args, handle)``, if it takes arguments an attrs class ``Args``,
and methods marked with `hookimpl` for the points it extends. A method may name a subset of the arguments below, never
others. Kinds of objects that it asks the handle about without waiting for their events it names in ``watches``, a tuple
of names like ``"Service"``.

Everything from pre_enqueue to permit answers at once; post_filter and the binding side (pre_bind, bind, post_bind) may
be ``async``. An exception costs the pod this attempt, not the process, and is reported with the plugin's name.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import pluggy

from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cluster_events import EventRegistration
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Status
from trio_sched.plugin_api.verdicts import (
    Diagnosis,
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

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a method of a plugin as its answer at the extension point of the same name."""


class ExtensionPoints:
    """The contract between scheduler and plugins."""

    # --- waiting in the queue -------------------------------------------------------------------------------------

    @hookspec
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Say whether *pod* may be tried at all.

        When: before the pod enters the active or the backoff queue; must be cheap.
        Return: None lets it in; any Status keeps it back, until one of your registered events frees it.
        """
        raise NotImplementedError

    @hookspec
    def queue_sort(self, queued: QueuedPod) -> Any:
        """Give the sort key of a pod in the active queue; the smallest is tried first.

        When: each time the pod enters a queue. Exactly one plugin of all profiles sorts.
        Return: anything that compares with the keys of other pods, a tuple for instance.
        """
        raise NotImplementedError

    @hookspec
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Name the events that may make a pod schedulable that you have turned away.

        When: once, at start. A plugin without this method that can turn pods away is asked after every event.
        Return: registrations, each with a hint function if not every such event is worth another attempt; none at all
        means that such pods wait for the periodic flush.
        """
        raise NotImplementedError

    @hookspec
    def sign(self, pod: Pod) -> Hashable | None:
        """Give a value that is equal for pods that you cannot tell apart.

        When: once per version of the pod. With ``depends_on`` it lets the scheduler keep your answers: pods with equal
        signatures get the same masks and scores, looked at again only on nodes that changed.
        Return: a hashable value; None if your answers for this pod must not be kept.
        """
        raise NotImplementedError

    # --- finding nodes --------------------------------------------------------------------------------------------

    @hookspec
    def pre_filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> PreFilterResult | Status | None:
        """Prepare what filter needs, narrow the nodes, or end the cycle.

        When: once per cycle, in the order of the profile, before any filter.
        Args: *nodes* are all nodes, whatever others have narrowed; *state* is where you leave things for later.
        Return: None to go on; a `PreFilterResult` naming the only nodes worth a look; `SKIP` if your filter has nothing
        to do for this pod; ``unresolvable`` ends the cycle at once; ``unschedulable`` ends it after the other
        pre_filters ran.
        """
        raise NotImplementedError

    @hookspec
    def filter(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Verdicts:
        """Say on which nodes *pod* cannot run.

        When: after pre_filter, on all nodes at once; on a few of them when only these have changed.
        Args: *nodes* may be any subset of the cluster; the answer for a node must not depend on which others are there.
        Return: `Verdicts` of shape ``(len(nodes),)``.
        """
        raise NotImplementedError

    @hookspec
    def filter_node(self, pod: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Say whether *pod* cannot run on one *node*; for plugins that would rather not think in columns.

        When: on every node that passed the ``filter`` of all plugins; a call per node, so slower.
        Return: None if it can, else why not.
        """
        raise NotImplementedError

    @hookspec
    def add_pod(self, pod: Pod, added: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Bring what you left in *state* up to date as if *added* ran on *node* too.

        When: while the framework tries out nominated pods; *state* is a clone. Only for plugins that keep counts in
        *state*.
        Return: None; any other Status ends this attempt.
        """
        raise NotImplementedError

    @hookspec
    def remove_pod(self, pod: Pod, removed: Pod, node: NodeView, state: CycleState) -> Status | None:
        """Bring what you left in *state* up to date as if *removed* did not run on *node*.

        When: while preemption tries out victims; *state* is a clone.
        Return: None; any other Status ends this attempt.
        """
        raise NotImplementedError

    @hookspec
    def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult | None:
        """Make room for a pod that fits nowhere. May be ``async``.

        When: no node passed; in order, until one succeeds.
        Return: None if there is nothing this plugin can do; else a `PostFilterResult` with the nomination.
        """
        raise NotImplementedError

    # --- ranking them ---------------------------------------------------------------------------------------------

    @hookspec
    def pre_score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Status | None:
        """Prepare what score needs.

        When: once per cycle, if more than one node passed.
        Args: *nodes* are those that passed.
        Return: None to go on; `SKIP` if you have no opinion on this pod; anything else ends this attempt.
        """
        raise NotImplementedError

    @hookspec
    def score(self, pod: Pod, nodes: NodeColumns, state: CycleState) -> Int64Array:
        """Rank the nodes that passed every filter.

        When: after pre_score, on all of them at once; on a few of them when only these have changed.
        Return: shape ``(len(nodes),)``, whole numbers, higher is better; 0..100, or any range that your normalize_score
        brings to 0..100.
        """
        raise NotImplementedError

    @hookspec
    def score_node(self, pod: Pod, node: NodeView, state: CycleState) -> int:
        """Rank one *node*; for plugins that would rather not think in columns.

        When: in place of ``score``, for every node that passed; a call per node, so slower.
        Return: a whole number as for score.
        """
        raise NotImplementedError

    @hookspec
    def normalize_score(self, pod: Pod, scores: Int64Array, state: CycleState) -> Int64Array:
        """Bring your scores of this cycle to 0..100.

        When: after score, with the scores of all nodes that passed.
        Args: *scores* has shape (nodes,) and is yours to change.
        Return: the same shape; a number outside of 0..100 ends this attempt.
        """
        raise NotImplementedError

    # --- the node is chosen ---------------------------------------------------------------------------------------

    @hookspec
    def reserve(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Set aside what *pod* will use on the node.

        When: the pod has just been assumed there. If anybody refuses from here on, every ``unreserve`` runs.
        Return: None once it is set aside; a rejecting Status sends the pod back.
        """
        raise NotImplementedError

    @hookspec
    def unreserve(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Give back what reserve set aside.

        When: the pod will not run on the node after all; in reverse order, also if your reserve never ran. Must not
        fail.
        """
        raise NotImplementedError

    @hookspec
    def permit(self, pod: Pod, node_name: str, state: CycleState) -> Status | Wait | None:
        """Let the pod be bound, refuse, or make it wait.

        When: last step of the scheduling cycle.
        Return: None lets it go on; a rejecting Status sends it back; `Wait` holds it until somebody allows or rejects
        it through the `Handle`, or the time is over.
        """
        raise NotImplementedError

    # --- binding --------------------------------------------------------------------------------------------------

    @hookspec
    def pre_bind_pre_flight(self, pod: Pod, node_name: str, state: CycleState) -> PreFlight | Status | None:
        """Say whether pre_bind will have something to do for this pod.

        When: first step of the binding cycle.
        Return: `SKIP` if not; None or a `PreFlight` if so.
        """
        raise NotImplementedError

    @hookspec
    def pre_bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Do what must be done before the pod can run on the node. May be ``async``.

        When: once nobody makes the pod wait any more; not for plugins whose pre_bind_pre_flight answered `SKIP`.
        Return: None when it is done; a rejecting Status sends the pod back.
        """
        raise NotImplementedError

    @hookspec
    def bind(self, pod: Pod, node_name: str, state: CycleState) -> Status | None:
        """Tell the API server. May be ``async``.

        When: in order, until one does not answer `SKIP`.
        Return: None when the API server knows; `SKIP` leaves it to the next plugin; any other Status sends the pod
        back.
        """
        raise NotImplementedError

    @hookspec
    def post_bind(self, pod: Pod, node_name: str, state: CycleState) -> None:
        """Take note that the pod is bound. May be ``async``.

        When: the API server has accepted the binding. Nothing can be refused any more; a failure is only logged.
        """
        raise NotImplementedError

    # --- beside the pods ------------------------------------------------------------------------------------------

    @hookspec
    async def run(self) -> None:
        """Work in the background for as long as the scheduler runs.

        When: started once by the supervisor, in its nursery. Raising stops the scheduler with an error that names the
        plugin.
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
    "pre_bind": "pre_bind",
    "bind": "bind",
    "post_bind": "post_bind",
}
"""Hook → the extension point in the configuration file (in snake case) that switches it on."""
