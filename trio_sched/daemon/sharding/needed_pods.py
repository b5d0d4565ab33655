"""Pods that the place of another one depends on, and whose own places are not certain yet.

A pod with a required affinity, or one that is spread, is placed as if the pods were there that other replicas are asked
to bind, or keep a place for. It is bound once they are, or certainly will be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio
from attrs import define, field

from trio_sched.daemon.sharding.proposals import ANSWER_SECONDS
from trio_sched.daemon.watching.object_waits import ObjectWaits
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.reserved_places import is_kept_for_group
from trio_sched.engine.sharding.sharded_event_handlers import ShardedEventHandlers
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, unschedulable
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm, affinity_terms
from trio_sched.snapshot.labels.label_selection import NOTHING, LabelMatcher, SelectorError, compile_selector


@define(eq=False, kw_only=True)
class NeededPods:
    """Those of the pods that this process is about to bind."""

    owned: OwnedShards
    scheduler: Scheduler
    handlers: Callable[[], ShardedEventHandlers]
    object_waits: ObjectWaits
    shown: Callable[[], Mapping[tuple[str, str], Pod]]
    """The pods as the watch has shown them last, by namespace and name."""
    _of: dict[str, list[tuple[Pod, str]]] = field(factory=dict, init=False)
    """By UID: the pods, and the nodes of other processes, that the place of a pod depends on."""

    def note(self, pod: Pod) -> None:
        """*pod* was placed by what is known now."""
        terms, selectors = affinity_terms(pod).required_affinity, _spread(pod)
        if not terms and not selectors:
            return
        found: list[tuple[Pod, str]] = []
        for uid in (*self.owned.under_way, *self.handlers().elsewhere):
            cached = self.scheduler.cache.get(uid)
            if cached is None or not cached.assumed or uid == pod.uid or self.owned.owns_node(cached.node_name):
                continue
            if any(_is_about(term, cached.pod) for term in terms) or (
                cached.pod.namespace == pod.namespace
                and any(one.matches(cached.pod.metadata.labels or {}) for one in selectors)
            ):
                found.append((cached.pod, cached.node_name))
        if found:
            self._of[pod.uid] = found

    def has_some(self, uid: str) -> bool:
        """Whether the place of a pod depends on others that may not come."""
        return uid in self._of

    def forget(self, uid: str) -> None:
        """The pod is not about to be bound any more, or it is certain that it can be."""
        self._of.pop(uid, None)

    async def wait(self, uid: str) -> Status | None:
        """Wait until all that the place of a pod depends on are certain to be where they were; else why not."""
        deadline = trio.current_time() + ANSWER_SECONDS
        for needed, node_name in self._of.get(uid, ()):
            while not self._is_certain(needed, node_name):
                cached, remaining = self.scheduler.cache.get(needed.uid), deadline - trio.current_time()
                if cached is None or cached.node_name != node_name or remaining <= 0:
                    return unschedulable(f"pod {needed.key}, which it needs there, may not get to node {node_name}")
                await self.object_waits.wait("Pod", needed.name, needed.namespace, remaining)
        self.forget(uid)
        return None

    def _is_certain(self, pod: Pod, node_name: str) -> bool:
        shown = self.shown().get((pod.namespace, pod.name))
        if shown is None or shown.uid != pod.uid:
            return False
        is_kept = shown.nominated_node_name == node_name and is_kept_for_group(shown)
        return shown.node_name == node_name or (is_kept and not shown.node_name)


def _spread(pod: Pod) -> list[LabelMatcher]:
    """What the required spread constraints of *pod* count."""
    found: list[LabelMatcher] = []
    for one in pod.spec.topology_spread_constraints or ():
        if one.when_unsatisfiable != "ScheduleAnyway":
            try:
                found.append(compile_selector(one.label_selector))
            except SelectorError:  # such a pod is placed nowhere
                continue
    return found


def _is_about(term: AffinityTerm, pod: Pod) -> bool:
    """Whether *term* may be about *pod*: of which namespaces it selects by labels is not looked up."""
    is_in_namespace = pod.namespace in term.namespaces or term.namespace_selector != NOTHING
    return is_in_namespace and term.labels.matches(pod.metadata.labels or {})
