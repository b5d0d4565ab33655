"""The engine in one piece: queue, cache, profiles, and the decision on one pod after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from attrs import define, field

from trio_sched.engine.asked_kinds import AskedKinds
from trio_sched.engine.cache import Cache
from trio_sched.engine.decision import Decision, Placed, Unplaced
from trio_sched.engine.feasible_nodes import ExtenderResult, FeasibleNodes, decide_among, find_feasible_nodes
from trio_sched.engine.filtering import NominatedPods
from trio_sched.engine.kept_answers import KeptAnswers
from trio_sched.engine.nominated_pass import NominatedRows
from trio_sched.engine.preemption import dry_run
from trio_sched.engine.profile import Profile
from trio_sched.engine.queue import SchedulingQueue
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.reservation import Waits, run_permit, run_reserve, run_unreserve
from trio_sched.engine.scheduling_cycle import SchedulingCycle
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_usage
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.preemption import BudgetsByNamespace, DryRun
from trio_sched.snapshot.placed_pod import PlacedPod


@define(eq=False)
class Scheduler:
    """Decides; everything it does is over when the call returns."""

    profiles: Mapping[str, Profile]
    cache: Cache
    queue: SchedulingQueue
    rng: Random
    asked: AskedKinds = field(factory=AskedKinds)
    """What plugins look at besides pods and nodes; when that changes, call `forget_kept_answers`."""
    sign_errors: list[tuple[str, str, BaseException]] = field(factory=list)
    """(profile, pod, error) of signatures that failed, for the daemon to log and clear."""
    unreserve_errors: list[tuple[str, str, BaseException]] = field(factory=list)
    """(plugin, pod, error) of plugins that failed to give back, likewise."""
    signing: int = 0
    """Counts how often signatures became worthless; those made before are made anew."""
    _kept: dict[str, KeptAnswers] = field(init=False)
    _nominated_rows: NominatedRows = field(init=False)
    _promised: dict[str, PlacedPod] = field(factory=dict)
    """Nominated pods by UID, with what they will take."""
    _start: int = 0
    """Where the next search for enough nodes begins; shared by all profiles."""

    def __attrs_post_init__(self) -> None:
        table = self.cache.table
        self._nominated_rows = NominatedRows(table)
        self._kept = {
            name: KeptAnswers(profile, table, self.asked, self._nominated_rows)
            for name, profile in self.profiles.items()
        }

    def sign(self, pod: Pod) -> tuple[Any, ...] | None:
        """The signature under which answers about *pod* are kept; None if there is none."""
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None:
            return None
        try:
            with self.asked.recording():
                signature = profile.signature(pod)
            hash(signature)  # it will be looked up; a part that cannot be is better found here
            return signature
        except Exception as exc:  # then nothing is kept for this pod, which is only slower
            self.sign_errors.append((profile.name, pod.key, exc))
            return None

    def sign_queued(self, info: QueuedPodInfo) -> None:
        """Note the signature of this version of the pod, and when it was made."""
        info.signature, info.signed_at = self.sign(info.pod), self.signing

    def decide(self, info: QueuedPodInfo) -> Decision:
        """Find a node for a popped pod."""
        pod = info.pod
        profile = self.profiles[pod.scheduler_name]
        nominated = self._nominated_beside(pod)
        if info.signed_at != self.signing:
            self.sign_queued(info)
        cycle = self._plain_cycle(pod, nominated)
        if info.signature is not None and not cycle.promised_node:
            decision = self._kept[profile.name].decide(pod, info.signature, nominated, self.rng)
            if decision is not None:
                return decision
        decision = cycle.decide(self.rng)
        if isinstance(decision, Placed):
            self._start += decision.evaluated_nodes
        elif info.signature is not None and decision.diagnosis is not None and not nominated:
            self._kept[profile.name].remember_unfit(info.signature, decision)
        return decision

    def find_feasible_nodes(self, info: QueuedPodInfo, *, nominated_first: bool = True) -> FeasibleNodes | Unplaced:
        """The nodes that extenders are to be asked about before it is decided about a popped pod."""
        cycle = self._plain_cycle(info.pod, self._nominated_beside(info.pod))
        found = find_feasible_nodes(cycle, nominated_first=nominated_first)
        if isinstance(found, FeasibleNodes):
            self._start += found.evaluated
        return found

    def decide_among(self, info: QueuedPodInfo, feasible: FeasibleNodes, result: ExtenderResult) -> Decision:
        """Find a node for a popped pod among those that extenders have left."""
        cycle = self._plain_cycle(info.pod, self._nominated_beside(info.pod))
        return decide_among(cycle, feasible, result, self.rng)

    def _plain_cycle(self, pod: Pod, nominated: NominatedPods) -> SchedulingCycle:
        # The pod's status hears of a promise later than we do.
        promised = self.queue.nominator.node_of(pod.uid)
        return SchedulingCycle(
            self.profiles[pod.scheduler_name],
            self.cache.table,
            pod,
            nominated,
            CycleState(),
            self._start,
            promised,
            self._nominated_rows,
        )

    def forget_kept_answers(self) -> None:
        """Something has changed that plugins ask about and that no signature shows."""
        self.signing += 1
        for kept in self._kept.values():
            kept.forget()

    def _nominated_beside(self, pod: Pod) -> NominatedPods:
        """Pods that are promised a place and are at least as important as *pod*, by node."""
        queue = self.queue
        if not queue.nominator:
            return {}
        found: dict[str, list[PlacedPod]] = {}
        for node_name in queue.nominator.nodes:
            if node_name not in self.cache.table.row_of:
                continue
            for other in self.nominated_pods(node_name):
                if other.uid != pod.uid and other.priority >= pod.priority:
                    found.setdefault(node_name, []).append(self._as_placed(other))
        return found

    def _as_placed(self, pod: Pod) -> PlacedPod:
        known = self._promised.get(pod.uid)
        if known is None or known.pod is not pod:
            if len(self._promised) > 2 * len(self.queue.nominator) + 64:
                self._promised.clear()
            known = self._promised[pod.uid] = PlacedPod(pod, pod_usage(pod, self.cache.options))
        return known

    def nominated_pods(self, node_name: str) -> list[Pod]:
        """The pods that are promised a place on *node_name*."""
        return [
            queued.pod if isinstance(queued, QueuedPodInfo) else queued
            for queued in self.queue.nominated_pods(node_name)
        ]

    def dry_run_preemption(
        self, pod: Pod, state: CycleState, node_names: Sequence[str], enough: int, budgets: BudgetsByNamespace
    ) -> DryRun:
        """Try which less important pods would have to go; see `trio_sched.engine.preemption`."""
        profile, nominated = self.profiles[pod.scheduler_name], self._nominated_beside(pod)
        return dry_run(profile, self.cache.table, pod, state, nominated, node_names, budgets=budgets, enough=enough)

    def settle(self, pod: Pod, placed: Placed) -> Waits | Unplaced | None:
        """Assume *pod* on the node that was chosen, reserve, and ask for permission.

        Returns:
            None: bind it. Waits: bind it when these plugins have allowed it. Unplaced: nothing of it remains.

        Raises:
            CacheError: the pod is on a node already.
        """
        profile = self.profiles[pod.scheduler_name]
        self.cache.assume(pod, placed.node_name)
        self.queue.nominator.delete(pod.uid)
        refused = run_reserve(profile, pod, placed.node_name, placed.state)
        if refused is None:
            permitted = run_permit(profile, pod, placed.node_name, placed.state)
            if not isinstance(permitted, Unplaced):
                return permitted
            refused = permitted
        failures = self.give_back(pod, placed)
        self.unreserve_errors.extend((plugin, pod.key, problem) for plugin, problem in failures)
        return refused

    def give_back(self, pod: Pod, placed: Placed) -> list[tuple[str, BaseException]]:
        """The pod will not run there after all; returns the plugins that failed to give back.

        Raises:
            CacheError: the API server has confirmed it already.
        """
        failures = run_unreserve(self.profiles[pod.scheduler_name], pod, placed.node_name, placed.state)
        self.cache.forget(pod.uid)
        return failures
