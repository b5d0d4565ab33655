"""The engine in one piece: queue, cache, profiles, and the decision on one pod after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from random import Random

from attrs import define, field, frozen
from msgspec import structs

from trio_sched.engine.cache import Cache, with_device_claims
from trio_sched.engine.evaluation.decision import Decision, ScheduleResult, SchedulingFailure
from trio_sched.engine.evaluation.extender_cycle import (
    ExtenderResult,
    NodesForExtenders,
    find_feasible_nodes,
    select_host_among,
)
from trio_sched.engine.evaluation.filtering import NominatedPods
from trio_sched.engine.evaluation.group_victims import GroupVictims
from trio_sched.engine.evaluation.hook_steps import (
    HookSteps,
    PreBindPlan,
    bind_steps,
    plan_pre_bind,
    post_bind_steps,
    post_filter_steps,
)
from trio_sched.engine.evaluation.incremental_evaluation import IncrementalEvaluation
from trio_sched.engine.evaluation.node_refusal import NodeRefusals
from trio_sched.engine.evaluation.nominated_index import NominatedIndex
from trio_sched.engine.evaluation.nominated_pods import NominatedRows
from trio_sched.engine.evaluation.pod_explanation import PodExplanation, explain_pod
from trio_sched.engine.evaluation.preemption import DryRunCache, Evictable, dry_run, is_judged_by_signature
from trio_sched.engine.evaluation.reservation import PermitWait, reserve_and_permit, run_unreserve
from trio_sched.engine.evaluation.scheduling_cycle import OnScores, SchedulingCycle
from trio_sched.engine.evaluation.signatures import SIGNED_PER_ATTEMPT, Signatures
from trio_sched.engine.group_forest import GroupForest
from trio_sched.engine.hooks.attempt_trace import AttemptTrace
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.measurements import Measurements
from trio_sched.engine.hooks.plugin_failures import PluginFailures
from trio_sched.engine.object_cache import ObjectCache
from trio_sched.engine.queue.cluster_changes import ASSIGNED_POD_DELETE
from trio_sched.engine.queue.pre_enqueue import ProfileQueueing
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.scheduling_queue import AlreadyQueued, SchedulingQueue
from trio_sched.engine.registry.profile import Profile, measure
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.behaviour import Behaviour, behaviour_at
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun
from trio_sched.plugin_api.preemption_units import DisruptionRules


@frozen(eq=False)
class PreparedProfiles:
    """Profiles by schedulerName, and what the queue needs of each."""

    profiles: Mapping[str, Profile]
    queueing: Mapping[str, ProfileQueueing]

    @property
    def hooks(self) -> list[BoundHook]:
        """The bound hooks of all profiles, hint functions included."""
        hints = (entry.hint for one in self.queueing.values() for entry in one.hints.entries)
        found = [hook for profile in self.profiles.values() for hook in profile.hooks]
        return [*found, *(hint for hint in hints if hint is not None)]


@define(eq=False, kw_only=True)
class Scheduler:
    """Decides; its methods never wait. What can take time is a sequence of calls that the daemon makes (`hook_steps`).

    It owns the attempts: `SchedulingQueue.pop` and `pop_set_aside` start one, and one of `skip`, `set_aside`,
    `requeue`, `binding_starts` and `already_assigned` ends it. While it lasts, events are recorded for the pod.
    """

    cache: Cache
    queue: SchedulingQueue
    rng: Random
    object_cache: ObjectCache = field()
    """What plugins read; after a change of a kind that cached results depend on, call `invalidate_signatures`."""
    measurements: Measurements = field(factory=Measurements)
    behaviour: Behaviour = field(factory=lambda: behaviour_at((1, 36)))
    """What the version of kube-scheduler does that is emulated."""
    preempts_for_groups: bool = False
    """Whether pods are evicted for a pod group as a whole: gate WorkloadAwarePreemption, or always from 1.37 on."""
    forest: GroupForest | None = None
    """The trees of pod groups; None without the gate CompositePodGroup."""
    plugin_failures: PluginFailures = field(init=False)
    """Failures of plugins, for the daemon to log; the queue appends to the same list."""
    profiles: Mapping[str, Profile] = field(factory=dict, init=False)
    on_scores: OnScores | None = field(default=None, init=False)
    """Told of the scores of every attempt; then nothing is decided from the signature cache, which has only sums."""
    is_trial: bool = field(default=False, init=False)
    """Whether the pods that are decided on are members of a group that is being tried."""
    signatures: Signatures = field(init=False)
    _nominated_rows: NominatedRows = field(init=False)
    _nominated: NominatedIndex = field(init=False)
    _dry_runs: DryRunCache = field(factory=DryRunCache, init=False)
    _refusals: NodeRefusals = field(init=False)
    next_start_node_index: int = field(default=0, init=False)
    """Where the next search for feasible nodes begins; shared by all profiles."""

    @object_cache.default
    def _make_object_cache(self) -> ObjectCache:
        return ObjectCache(self.cache.table.devices)

    def __attrs_post_init__(self) -> None:
        self.plugin_failures = self.queue.plugin_failures
        table, dependencies = self.cache.table, self.object_cache.dependencies
        self._nominated_rows = NominatedRows(table)
        self.signatures = Signatures(table, self._nominated_rows, dependencies, self.plugin_failures)
        self._refusals = NodeRefusals(self.cache.table)
        self._nominated = NominatedIndex(self.queue, self.cache.table, self.cache.options)

    def install_profiles(self, profiles: Mapping[str, Profile], *, extenders: bool = False) -> None:
        """Schedule with *profiles*; see `prepare_profiles`. To be called before the first pod."""
        self._install(self.prepare_profiles(profiles, extenders=extenders))

    def prepare_profiles(self, profiles: Mapping[str, Profile], *, extenders: bool = False) -> PreparedProfiles:
        """Get *profiles* ready to be scheduled with; nothing changes yet.

        Args:
            profiles: by schedulerName; at least one. The first one's queue_sort orders the queue.
            extenders: whether extenders are configured.

        Raises:
            BadPlugin: a plugin's events_to_register failed.
        """
        queueing = self.queue.prepare(
            profiles, is_refused=self._is_refused_on_node, extenders=extenders, measurements=self.measurements
        )
        return PreparedProfiles(profiles, queueing)

    def exchange_profiles(self, prepared: PreparedProfiles, *, now: float) -> None:
        """Schedule with other profiles from now on; to be called between two pods.

        Attempts that have found a node go on with the profile that they began with. All pods in the queue are looked
        at again, by their profile's pre_enqueue first; the attempts under way are repeated if they fail.
        """
        self._install(prepared)
        self.invalidate_signatures()
        self.queue.requeue_all(now=now)

    def _install(self, prepared: PreparedProfiles) -> None:
        """Schedule with profiles that are prepared; nothing that was found out with former ones is forgotten here."""
        self.profiles = prepared.profiles
        self.measurements.keep_profiles(prepared.profiles)
        for name, profile in prepared.profiles.items():
            measure(name, profile, self.measurements)
        first = next(iter(prepared.profiles.values()))
        signatures = self.signatures
        signatures.install(prepared.profiles)
        self.queue.install_queueing(prepared.queueing, first.queue_sort[0], signatures.sign_queued, self.measurements)
        self._refusals = NodeRefusals(self.cache.table)

    def forget_unused(self) -> None:
        """Forget what is kept for later attempts and holds pods or devices, of which some may be gone.

        It is found out again when it is needed; what nobody needs any more would never be seen to be outdated.
        """
        self.cache.table.devices.forget_unused()
        self._refusals.clear()
        self._dry_runs.clear()
        self._nominated.catch_up()
        self._nominated_rows.clear()
        self.signatures.forget_nominated()

    def invalidate_signatures(self) -> None:
        """Something has changed that plugins read and that no signature shows."""
        self._dry_runs.clear()
        self.signatures.invalidate()

    # --- deciding ---------------------------------------------------------------------------------------------------

    def decide(self, info: QueuedPodInfo) -> Decision:
        """Find a node for a popped pod."""
        profile = self.profiles[info.pod.scheduler_name]
        if info.trace is None and not profile.measured.is_sampled():
            return self._decide(info, profile)
        with profile.measured.in_decision.timing(info.trace):
            decision = self._decide(info, profile)
        if decision.state is not None:
            decision.state.record_plugin_metrics = True
        return decision

    def _decide(self, info: QueuedPodInfo, profile: Profile) -> Decision:
        measured = profile.measured
        began = measured.clock()
        pod = info.pod
        nominated = self._nominated.for_pod(pod)
        signatures = self.signatures
        if info.signature_epoch != signatures.epoch:
            signatures.sign_queued(info)
            if info.signature_epoch == SIGNED_PER_ATTEMPT:
                info.signature = signatures.sign(pod)
        cache = signatures.caches[profile.name]
        evaluation: IncrementalEvaluation | None = None
        if info.signature is None:
            measured.unsigned_decisions += 1
        elif self.on_scores is None:
            node_name = self.queue.nominator.node_name(pod)
            decision = (
                cache.decide_on_nominated_node(pod, info.signature, nominated, node_name)
                if node_name
                else cache.decide(pod, info.signature, nominated, self.rng)
            )
            if decision is not None:
                state = decision.state
                assert state is not None  # it is a copy of the state of the cached evaluation
                is_scored = isinstance(decision, ScheduleResult) and decision.feasible_nodes > 1
                measured.decided_from_cache(
                    measured.clock() - began, state.skip_filter, state.skip_score if is_scored else None
                )
                return decision
            measured.plain_decisions += 1
            evaluation = cache.evaluation(info.signature)
        cycle = self._plain_cycle(pod, nominated, profile)
        cycle.evaluation = evaluation
        decision = cycle.decide(self.rng)
        if isinstance(decision, ScheduleResult):
            self.next_start_node_index += decision.evaluated_nodes
        elif info.signature is not None and decision.diagnosis is not None and not nominated:
            cache.remember_fit_error(info.signature, decision)
        return decision

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is decided in the block, where nothing may wait, is a part of an attempt of a pod group."""
        self.is_trial = True
        try:
            with self.signatures.trial():
                yield
        finally:
            self.is_trial = False

    def decide_in_placement(self, info: QueuedPodInfo, placement: frozenset[str] | None) -> Decision:
        """Find a node for a member of a group, among those with the names *placement*, or among all; see `decide`."""
        if placement is None:
            return self.decide(info)
        pod = info.pod
        cycle = self._plain_cycle(pod, self._nominated.for_pod(pod), self.profiles[pod.scheduler_name], placement)
        with self._tracing(info):
            return cycle.decide(self.rng)

    def find_feasible_nodes(
        self, info: QueuedPodInfo, *, nominated_first: bool = True, placement: frozenset[str] | None = None
    ) -> NodesForExtenders | SchedulingFailure:
        """The nodes that extenders are to be asked about before it is decided about a popped pod."""
        pod = info.pod
        cycle = self._plain_cycle(pod, self._nominated.for_pod(pod), self.profiles[pod.scheduler_name], placement)
        with self._tracing(info):
            found = find_feasible_nodes(cycle, nominated_first=nominated_first)
        if isinstance(found, NodesForExtenders):
            self.next_start_node_index += found.evaluated
        return found

    def select_host_among(
        self,
        info: QueuedPodInfo,
        feasible: NodesForExtenders,
        result: ExtenderResult,
        *,
        placement: frozenset[str] | None = None,
    ) -> Decision:
        """Find a node for a popped pod among those that extenders have left."""
        pod = info.pod
        cycle = self._plain_cycle(pod, self._nominated.for_pod(pod), self.profiles[pod.scheduler_name], placement)
        with self._tracing(info):
            decision = select_host_among(cycle, feasible, result, self.rng)
        if info.trace is not None and decision.state is not None:
            decision.state.record_plugin_metrics = True
        return decision

    def _tracing(self, info: QueuedPodInfo) -> AbstractContextManager[None]:
        """Time the hooks that are called in the block if the attempt is traced."""
        if info.trace is None:
            return nullcontext()
        return self.profiles[info.pod.scheduler_name].measured.in_decision.timing(info.trace)

    def explain(self, pod: Pod, *, scores_of: Collection[str] = ()) -> PodExplanation:
        """What the plugins say about *pod* as things stand, on the nodes without it; see `explain_pod`.

        Args:
            pod: of a scheduler that has a profile; it may be on a node.
            scores_of: names of nodes whose scores are told besides those of the best.
        """
        as_pending = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
        with self.without(pod):
            profile, nominated = self.profiles[pod.scheduler_name], self._nominated.for_pod(as_pending)
            return explain_pod(profile, self.cache.table, as_pending, nominated, scores_of=scores_of)

    @contextmanager
    def without(self, pod: Pod) -> Iterator[None]:
        """*pod* is on no node for as long as the block runs, where nothing may wait; it stays a member of its group."""
        cached = self.cache.get(pod.uid)
        if cached is None:
            yield
            return
        known, node_name, assumed = cached.pod, cached.node_name, cached.assumed
        if assumed:
            self.cache.forget(pod.uid)
        else:
            self.cache.remove(pod.uid)
        try:
            yield
        finally:
            if assumed:
                self.cache.assume(known, node_name)
            else:
                self.cache.add(known)

    def try_pod(self, pod: Pod) -> Decision:
        """The decision on *pod*, which has a profile and no node, as things stand; nothing comes of it.

        Among the best nodes the choice is always the same.
        """
        return self.trial_cycle(pod).decide(Random(0))

    def trial_cycle(self, pod: Pod) -> SchedulingCycle:
        """The steps of a decision on *pod*, which has a profile and no node, as things stand; nothing comes of it."""
        return SchedulingCycle(
            self.profiles[pod.scheduler_name],
            self.cache.table,
            pod,
            self._nominated.for_pod(pod),
            CycleState(),
            nominated_node=self.queue.nominator.node_name(pod),
            nominated_rows=self._nominated_rows,
        )

    def nominated_before(self, pod: Pod) -> NominatedPods:
        """The pods that are nominated to nodes and have at least the priority of *pod*, by node."""
        return self._nominated.for_pod(pod)

    def post_filter(self, info: QueuedPodInfo, unplaced: SchedulingFailure) -> HookSteps[SchedulingFailure] | None:
        """The calls of post_filter after *unplaced*; None if there is nothing to call."""
        hooks = self._post_filters_of(info.pod)
        if unplaced.diagnosis is None or not hooks:
            return None
        self.measurements.post_filters += 1
        return post_filter_steps(hooks, info.pod, unplaced, self.plugin_failures)

    def _post_filters_of(self, pod: Pod) -> tuple[BoundHook, ...]:
        return self.profiles[pod.scheduler_name].post_filter

    def dry_run_preemption(
        self,
        pod: Pod,
        state: CycleState,
        node_names: Sequence[str],
        num_candidates: int,
        budgets: BudgetsByNamespace,
        *,
        evictable: Evictable | None = None,
    ) -> DryRun:
        """Find the victims of *pod* on some nodes; see `trio_sched.engine.evaluation.preemption`."""
        profile, nominated = self.profiles[pod.scheduler_name], self._nominated.for_pod(pod)
        signature = self.signatures.sign(pod)
        kept = None
        if evictable is None and signature is not None and is_judged_by_signature(profile, signature, state):
            kept = self._dry_runs.of(profile.name, signature, pod.priority, budgets)
        found = dry_run(
            profile,
            self.cache.table,
            pod,
            state,
            nominated,
            node_names,
            budgets=budgets,
            num_candidates=num_candidates,
            kept=kept,
            evictable=evictable,
            groups=self._group_victims() if evictable is None else None,
        )
        self.plugin_failures.add_status(found.error, pod.key)
        return found

    @property
    def disruption_rules(self) -> DisruptionRules | None:
        """What a pod that preempts evicts together; None if every pod is evicted by itself."""
        kinds = self.object_cache.kinds
        if not (self.behaviour.groups_are_victims_of_pods and len(self.cache.groups) and "PodGroup" in kinds):
            return None
        return DisruptionRules(
            find_group=self.object_cache.get,
            has_trees=self.forest is not None and "CompositePodGroup" in kinds,
            group_priority_counts=True,
        )

    def _group_victims(self) -> GroupVictims | None:
        rules = self.disruption_rules
        return None if rules is None else GroupVictims(self.cache, rules, self.forest)

    def _plain_cycle(
        self, pod: Pod, nominated: NominatedPods, profile: Profile, placement: frozenset[str] | None = None
    ) -> SchedulingCycle:
        return SchedulingCycle(
            profile,
            self.cache.table,
            pod,
            nominated,
            CycleState(is_trial=self.is_trial),
            self.next_start_node_index,
            self.queue.nominator.node_name(pod),
            self._nominated_rows,
            on_scores=self.on_scores,
            placement=placement,
        )

    def _is_refused_on_node(self, info: QueuedPodInfo, plugin: str, node_name: str) -> bool:
        pod = info.pod
        if self.queue.nominator.node_of(pod.uid) == node_name:  # if it does not fit there, it is to look for another
            return False
        profile, nominated = self.profiles[pod.scheduler_name], self._nominated.for_pod(pod)
        return self._refusals.is_refused(profile, plugin, info, node_name, nominated)

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """The pods that are nominated to *node_name*."""
        return self._nominated.on_node(node_name)

    # --- from the decision to the bind ------------------------------------------------------------------------------

    def assume_and_reserve(
        self, pod: Pod, placed: ScheduleResult, *, now: float, trace: AttemptTrace | None = None
    ) -> PermitWait | SchedulingFailure | None:
        """Assume *pod* on the node that was chosen, run reserve and permit.

        Returns:
            None: bind it. PermitWait: bind it when these plugins have allowed it. SchedulingFailure: nothing is
            reserved any more.

        Raises:
            CacheError: the pod is on a node already.
        """
        self.assume(pod, placed)
        nominated = self.queue.nominator.delete(pod.uid)
        if nominated and nominated != placed.node_name:
            self.queue.nomination_ended(pod, nominated, now=now)
        outcome = reserve_and_permit(placed.profile, pod, placed, trace)
        if isinstance(outcome, SchedulingFailure):
            self.unreserve_and_forget(pod, placed, trace)
        return outcome

    def assume(self, pod: Pod, placed: ScheduleResult) -> None:
        """Assume *pod* on the node that was chosen, with what its devices there take of the node.

        Raises:
            CacheError: the pod is on a node already.
        """
        if self.cache.options.device_claims:
            found = placed.state.node_allocatable_claims
            pod = with_device_claims(pod, None if found is None else found.get(placed.node_name))
        self.cache.assume(pod, placed.node_name)

    def plan_pre_bind(
        self, pod: Pod, placed: ScheduleResult, trace: AttemptTrace | None = None
    ) -> PreBindPlan | SchedulingFailure:
        """Run pre_bind_pre_flight; see `trio_sched.engine.evaluation.hook_steps.plan_pre_bind`."""
        return plan_pre_bind(placed.profile, pod, placed, trace)

    def bind_steps(self, pod: Pod, placed: ScheduleResult) -> HookSteps[SchedulingFailure | None]:
        """The calls of bind; see `trio_sched.engine.evaluation.hook_steps.bind_steps`."""
        return bind_steps(placed.profile, pod, placed)

    def post_bind_steps(self, pod: Pod, placed: ScheduleResult) -> HookSteps[None] | None:
        """The calls of post_bind; None if there is nothing to call."""
        profile = placed.profile
        return post_bind_steps(profile, pod, placed, self.plugin_failures) if profile.post_bind else None

    def unreserve_and_forget(self, pod: Pod, placed: ScheduleResult, trace: AttemptTrace | None = None) -> None:
        """The pod will not run there after all: run unreserve and forget it.

        Raises:
            CacheError: the API server has confirmed it already.
        """
        profile = placed.profile
        is_sampled = placed.state.record_plugin_metrics
        with (
            profile.measured.point("Unreserve"),
            profile.measured.after_decision.timing(trace) if is_sampled else nullcontext(),
        ):
            run_unreserve(profile, pod, placed.node_name, placed.state, self.plugin_failures)
        self.cache.forget(pod.uid)

    def activate_collected(self, placed: ScheduleResult, *, now: float) -> bool:
        """Activate the pods that plugins have put into ``pods_to_activate``; whether there were any."""
        collected = placed.state.pods_to_activate
        if not collected:
            return False
        placed.state.pods_to_activate = {}
        if isinstance(collected, dict):  # plugins fill it, with whatever they like
            self.queue.activate([pod for pod in collected.values() if isinstance(pod, Pod)], now=now)
        return True

    # --- how an attempt ends ----------------------------------------------------------------------------------------

    def skip(self, info: QueuedPodInfo) -> None:
        """There is no point in scheduling the pod."""
        self.queue.done(info.uid)

    def set_aside(self, info: QueuedPodInfo) -> None:
        """The attempt will be made later; `SchedulingQueue.pop_set_aside` starts it."""
        self.queue.put_aside(info)

    def binding_starts(self, info: QueuedPodInfo) -> None:
        """Permit is granted: from here on only errors can send the pod back, for which no event matters."""
        self.queue.done(info.uid)

    def already_assigned(self, info: QueuedPodInfo) -> None:
        """The attempt failed, but the API server has the pod on a node: there is nothing to requeue."""
        self.queue.done(info.uid)

    def requeue(
        self,
        info: QueuedPodInfo,
        outcome: SchedulingFailure,
        known: Pod | None,
        *,
        now: float,
        assumed_pod: Pod | None = None,
    ) -> AlreadyQueued | None:
        """Put a pod that was not scheduled back into the queue; failures of plugins go to the list.

        Args:
            info: the pod of the attempt.
            outcome: why it was not scheduled.
            known: the newest version of the pod, None if it is gone or has a node.
            now: the time.
            assumed_pod: the pod as it was assumed on a node, if it was: pods that wait for its room move.

        Returns:
            What was wrong if the pod was in the queue already; else None.
        """
        self.plugin_failures.add_status(outcome.status, info.key)
        rejected = outcome.status.is_rejected
        if assumed_pod is not None and not rejected:
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed_pod, None, now=now)
        try:
            problem = self._requeue(info, outcome, known, now)
        finally:
            self.queue.done(info.uid)
        if assumed_pod is not None and rejected:  # its own room is no reason to try the pod again
            uid = info.uid
            self.queue.move_all(ASSIGNED_POD_DELETE, assumed_pod, None, now=now, only=lambda pod: pod.uid != uid)
        return problem

    def _requeue(
        self, info: QueuedPodInfo, outcome: SchedulingFailure, known: Pod | None, now: float
    ) -> AlreadyQueued | None:
        diagnosis = outcome.diagnosis
        info.unschedulable_plugins = set(diagnosis.unschedulable_plugins) if diagnosis is not None else set()
        info.pending_plugins = set(diagnosis.pending_plugins) if diagnosis is not None else set()
        info.gating_plugin = ""
        if known is None or known.uid != info.uid:
            return None
        shows_the_same = known.nominated_node_name == info.pod.nominated_node_name
        if known is not info.pod:
            info.replace_pod(known)
        problem: AlreadyQueued | None = None
        try:
            self.queue.add_unschedulable(info, now=now)
        except AlreadyQueued as error:
            problem = error
        nominator, nominated = self.queue.nominator, outcome.nominated_node_name
        before = nominator.node_of(info.uid)
        if nominated is None and shows_the_same:  # it stands, even if the pod's status does not show it yet
            nominated = before or None
        nominator.add(info.pod, nominated)
        if before and before not in (nominated, info.pod.nominated_node_name):  # then no watch will show that it ended
            self.queue.nomination_ended(info.pod, before, now=now)
        return problem
