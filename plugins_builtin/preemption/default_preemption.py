"""DefaultPreemption: evicts pods of lower priority for a pod that fits on no node; which nodes the dry run tries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from attrs import evolve

from plugins_builtin.preemption.group_preemption import victims_at_placement, victims_of_group
from trio_sched.plugin_api import (
    Action,
    Code,
    CompositePodGroup,
    CycleState,
    DefaultPreemptionArgs,
    Diagnosis,
    DryRun,
    EventRegistration,
    Handle,
    Hint,
    NodeStatuses,
    Pod,
    PodGroup,
    PodGroupInfo,
    PodGroupPostFilterResult,
    PodGroupTrial,
    PostFilterResult,
    Resource,
    Status,
    failure,
    fit_error,
    hookimpl,
    on,
    quote,
    unresolvable,
    unschedulable,
)
from trio_sched.plugin_api.behaviour import Behaviour
from trio_sched.plugin_api.features import Features
from trio_sched.plugin_api.preemption import best_candidates
from trio_sched.plugin_api.preemption_units import DisruptionRules

NAME = "DefaultPreemption"
PREEMPTION_UNFINISHED = "waiting for the preemption for this pod to be finished"
GROUP_PREEMPTION_UNFINISHED = "waiting for the preemption for this pod group to be finished"
NEVER = "not eligible due to preemptionPolicy=Never."
NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")


class DefaultPreemption:
    """Selects the node whose victims matter least, and evicts these.

    Source: preemption of kube-scheduler 1.36: eligibility, candidates, tie-breaks and texts.
    """

    name: ClassVar[str] = NAME
    Args: ClassVar[type[DefaultPreemptionArgs]] = DefaultPreemptionArgs
    writes: ClassVar[Mapping[str, tuple[str, ...]]] = {"Pod": ("delete",)}

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        behaviour = Behaviour.of(handle)
        self._tells_success = behaviour.success_of_preemption_is_told
        self._preempts_for_group = self._once_for_group if behaviour.groups_preempt_as_one else self._victims_of_group
        features = Features.of(handle.feature_enabled)
        self._is_async = features.scheduler_async_preemption
        self._by_topology = features.topology_aware_workload_scheduling
        self._by_group = features.workload_aware_preemption
        self._groups_have_policies = features.pod_group_preemption_policy
        self._rules = DisruptionRules(
            find_group=handle.object,
            has_trees=features.composite_pod_group,
            group_priority_counts=self._by_group and behaviour.groups_are_victims_of_pods,
        )
        groups = ("PodGroup", "CompositePodGroup") if features.composite_pod_group else ("PodGroup",)
        needs_groups = self._by_topology or self._by_group
        self.watches = ("PodDisruptionBudget", *(groups if needs_groups else ()))

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Gate the pod while its victims, or those of its group, are being evicted."""
        if not self._is_async:
            return None
        scheduling_group = pod.spec.scheduling_group
        if scheduling_group is None or not self._by_group:
            return unresolvable(PREEMPTION_UNFINISHED) if self._handle.is_preempting_for(pod) else None
        group = self._handle.object("PodGroup", scheduling_group.pod_group_name or "", pod.namespace)
        if group is None or not self._handle.is_preempting_for(self._rules.with_parents(group)[-1]):
            return None
        return unresolvable(GROUP_PREEMPTION_UNFINISHED)

    @hookimpl
    async def post_filter(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        """Find victims, evict them, and nominate the pod to their node."""
        refusal = self._refused_in_group(pod)
        if refusal:
            return PostFilterResult(unschedulable(f"preemption: {refusal}"))
        result = await self._preempt(pod, diagnosis, state)
        status = result.status
        if status is None:
            return result
        text = f"preemption: {status.message}"
        if status.code == Code.SUCCESS:
            reported = Status(Code.SUCCESS, (text,))
        else:
            reported = failure(text) if status.code == Code.ERROR else unschedulable(text)
        return PostFilterResult(reported, result.nominated_node_name)

    async def _preempt(self, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterResult:
        pending = self._handle.pending_pod(pod.namespace, pod.name)
        if pending is None:
            return PostFilterResult(failure(f"pod {quote(pod.name)} not found"))
        current = pending.pod
        statuses = diagnosis.statuses.by_node()
        absent = diagnosis.statuses.absent
        refusal = self._not_eligible(current, statuses, absent)
        if refusal:
            return PostFilterResult(unschedulable(refusal))
        names = self._handle.nodes.names
        if not names:
            return PostFilterResult(failure("no nodes available"))
        potential = [name for name in names if statuses.get(name, absent).code == Code.UNSCHEDULABLE]
        dry_run = DryRun({}, {})
        if potential:
            in_order, num_candidates = self._from_random_offset(potential), self.num_candidates(potential)
            dry_run = self._handle.dry_run_preemption(pod, state, in_order, num_candidates)
        candidates = dry_run.candidates
        if not candidates:
            if dry_run.error is not None:
                return PostFilterResult(dry_run.error)
            why = Diagnosis(NodeStatuses.of(dry_run.statuses, NOT_HELPFUL), total_nodes=len(names))
            return PostFilterResult(unschedulable(fit_error(why)), "")
        try:
            candidates = await self._handle.process_preemption(pod, candidates)
        except Exception as problem:  # of an extender that is not ignorable
            return PostFilterResult(failure(problem))
        if not candidates:
            return PostFilterResult(unschedulable("no candidate node for preemption"))
        node_name = best_candidates(candidates)[0]
        victims = candidates[node_name]
        problem_status = await self._handle.preempt(
            current,
            victims.pods,
            node_name,
            NAME,
            in_background=self._is_async,
            pdb_violations=victims.pdb_violations,
            group_disruptions=self._group_disruptions(victims.pods),
        )
        if problem_status is not None:
            return PostFilterResult(problem_status)
        if not self._tells_success:
            return PostFilterResult(None, node_name)
        text = f"found a potential placement for pod on node {node_name}, preempting {len(victims.pods)} victims"
        return PostFilterResult(Status(Code.SUCCESS, (text,)), node_name)

    def _refused_in_group(self, pod: Pod) -> str:
        """Why no pods are evicted for *pod* because it is in a pod group; empty if that is no reason."""
        scheduling_group = pod.spec.scheduling_group
        if scheduling_group is None or not (self._by_topology or self._by_group):
            return ""
        if self._by_topology:
            group = self._handle.object("PodGroup", scheduling_group.pod_group_name or "", pod.namespace)
            if group is None:
                return "pod group for pod not found"
            if group.spec.scheduling_constraints is not None:
                return "not eligible due to placement-based pod group scheduling limitation"
        return "not eligible due to workload aware preemption enabled" if self._by_group else ""

    @hookimpl
    def pod_group_post_filter(self, group: PodGroupInfo, trial: PodGroupTrial) -> PodGroupPostFilterResult | Status:
        """Find the pods of lower priority without which the whole group fits."""
        return self._preempts_for_group(group, trial)

    def _victims_of_group(self, group: PodGroupInfo, trial: PodGroupTrial) -> PodGroupPostFilterResult | Status:
        """As in 1.36."""
        known = self._handle.object("PodGroup", group.name, group.namespace)
        if known is None:
            return failure(f"failed to get pod group object: podgroup.scheduling.k8s.io {quote(group.name)} not found")
        constraints = known.spec.scheduling_constraints
        if constraints is not None and constraints.topology:
            text = "workload aware preemption is not supported for pod groups with scheduling constraints"
            return unschedulable(text)
        if any(pod.spec.preemption_policy == "Never" for pod in group.pods):
            return unschedulable(NEVER)
        budgets = self._handle.objects("PodDisruptionBudget")
        return victims_of_group(known, trial, budgets, self._rules)

    def _once_for_group(self, group: PodGroupInfo, trial: PodGroupTrial) -> PodGroupPostFilterResult | Status:
        """As in 1.37; whatever it comes to says that it is about preemption for the group."""
        found = self._evictions(group, trial)
        text = f"pod group preemption: {found.message}"
        if isinstance(found, Status):
            return failure(text) if found.code == Code.ERROR else Status(found.code, (text,))
        return evolve(found, message=text, group_disruptions=self._group_disruptions(found.victims))

    def _evictions(self, group: PodGroupInfo, trial: PodGroupTrial) -> PodGroupPostFilterResult | Status:
        known = self._handle.object(group.kind, group.name, group.namespace)
        if known is None:
            missing = f"{group.kind.lower()}.scheduling.k8s.io {quote(group.name)} not found"
            return failure(f"failed to get pod group object: {missing}")
        if self._never_preempts(known, group):
            return unschedulable(NEVER)
        if self._has_terminating_victims(group, known.spec.priority or 0):
            return PodGroupPostFilterResult(message="ongoing preemption on nominated nodes")
        budgets = self._handle.objects("PodDisruptionBudget")
        found = victims_at_placement(known, trial, budgets, self._rules)
        if isinstance(found, Status):
            return found
        return evolve(found, message=f"found a placement for podgroup, preempting {len(found.victims)} victims")

    def _never_preempts(self, known: PodGroup | CompositePodGroup, group: PodGroupInfo) -> bool:
        """Whether the policy of the group, or without the gate for such policies that of a pod, keeps it from that."""
        if self._groups_have_policies:
            return known.spec.preemption_policy == "Never"
        return any(pod.spec.preemption_policy == "Never" for pod in group.pods)

    def _has_terminating_victims(self, group: PodGroupInfo, priority: int) -> bool:
        """Whether pods of a lower priority are leaving a node that a pod of *group* is nominated to."""
        nominated = (self._handle.nominated_node(pod) for pod in group.pods)
        positions = (self._handle.nodes.position(name) for name in {name for name in nominated if name})
        return any(
            _is_terminating_by_preemption(other) and self._rules.priority(other) < priority
            for position in positions
            if position is not None
            for other in self._handle.nodes.node(position).pods
        )

    def _group_disruptions(self, victims: Iterable[Pod]) -> int:
        """How many of *victims* are in groups; those that leave together are one."""
        if not self._by_group:
            return 0
        together = self._rules.disrupted_together
        grouped = [(pod, together(pod)) for pod in victims if pod.spec.scheduling_group is not None]
        return len({pod.uid if group is None else group.metadata.uid for pod, group in grouped})

    # --- eligibility ------------------------------------------------------------------------------------------------

    def _not_eligible(self, pod: Pod, statuses: Mapping[str, Status], absent: Status) -> str:
        """Why *pod* may not preempt; empty if it may."""
        if pod.spec.preemption_policy == "Never":
            return NEVER
        nominated = self._handle.nominated_node(pod)
        if not nominated or statuses.get(nominated, absent).code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            return ""
        position = self._handle.nodes.position(nominated)
        if position is None:
            return ""
        on_node = self._handle.nodes.node(position).pods
        # A watch may not yet show that pods evicted by this scheduler are terminating.
        if self._handle.is_preempting_on(nominated) or any(
            _is_terminating_by_preemption(other) and self._rules.priority(other) < pod.priority for other in on_node
        ):
            return "not eligible due to a terminating pod on the nominated node."
        return ""

    # --- candidates -------------------------------------------------------------------------------------------------

    def num_candidates(self, potential: Sequence[str]) -> int:
        """After how many candidates the dry run ends."""
        share = len(potential) * self._args.min_candidate_nodes_percentage // 100
        return min(max(share, self._args.min_candidate_nodes_absolute), len(potential))

    def _from_random_offset(self, potential: Sequence[str]) -> Sequence[str]:
        """The same nodes from a random one on, so that the dry run does not always begin with the same nodes."""
        start = self._handle.rng.randrange(len(potential))
        return [*potential[start:], *potential[:start]]

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        """Deleted pods call pre_enqueue again for gated pods; they are queued by the hints of other plugins."""
        return [on(Resource.POD, Action.DELETE, Hint.SKIP)] if self._is_async else []


def _is_terminating_by_preemption(pod: Pod) -> bool:
    if pod.metadata.deletion_timestamp is None:
        return False
    for condition in pod.status.conditions or ():
        if condition.type == "DisruptionTarget":
            return condition.status == "True" and condition.reason == "PreemptionByScheduler"
    return False
