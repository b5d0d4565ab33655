"""What a change does to pods: who is elsewhere afterwards, who has no node, who is gone, who has come."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import frozen

from trio_sched.simulation.outcome import Outcome
from trio_sched.simulator.controllers.workloads.controlled_objects import controller_of
from trio_sched.simulator.pods.pod_phase import is_finished
from trio_sched.simulator.storage.object_store import ObjectStore, StoredObject
from trio_sched.what_if.cluster_changes import stays_on_node

_BETWEEN: Final = {"ReplicaSet": "replicasets.apps", "Job": "jobs.batch"}
"""Kinds of which a workload makes objects that make the pods → their collection."""


@frozen(kw_only=True)
class PodState:
    """One pod at one moment."""

    key: str
    """``namespace/name``."""
    uid: str
    workload: str
    """``Deployment shop/web``; ``Pod shop/web`` if nothing controls it, with what its ``generateName`` says."""
    owner: str
    """The uid of its controller; empty if nothing controls it."""
    is_of_node: bool
    """Whether it is a DaemonSet's or a static one, which come and go with their node."""
    node: str
    """Empty while it is pending."""


@frozen(kw_only=True)
class Effect:
    """What becomes of one pod, or of the pod that its workload makes in its place."""

    pod: str
    workload: str
    was_on: str
    """Empty if it was pending, or was not there."""
    replacement: str
    """The pod in its place, which can be itself; empty if there is none."""
    node: str
    """The node of the replacement; empty while that is pending."""
    existed: bool = True
    preempted_by: str = ""
    why: str = ""
    """Why the replacement is pending."""

    @property
    def is_lost(self) -> bool:
        """Whether there was a pod on a node, and is none now."""
        return bool(self.was_on) and not self.node

    @property
    def is_gone(self) -> bool:
        """Whether nothing is in its place."""
        return not self.replacement


def pod_states(store: ObjectStore) -> dict[str, PodState]:
    """The pods that have not finished, by uid."""
    found: dict[str, PodState] = {}
    for stored in store.collection("pods").in_order():
        fields = stored.fields
        if is_finished(fields):
            continue
        owner = controller_of(fields)
        uid = fields["metadata"]["uid"]
        found[uid] = PodState(
            key=stored.key,
            uid=uid,
            workload=workload_of(store, stored),
            owner=owner["uid"] if owner is not None else "",
            is_of_node=stays_on_node(stored),
            node=fields["spec"].get("nodeName") or "",
        )
    return found


def workload_of(store: ObjectStore, pod: StoredObject) -> str:
    """The workload that *pod* belongs to, as ``Deployment shop/web``."""
    metadata = pod.fields["metadata"]
    namespace = metadata.get("namespace") or ""
    owner = controller_of(pod.fields)
    if owner is None:
        return f"Pod {namespace}/{metadata['generateName']}*" if metadata.get("generateName") else f"Pod {pod.key}"
    between = _BETWEEN.get(owner["kind"])
    made = store.get(between, f"{namespace}/{owner['name']}") if between else None
    above = controller_of(made.fields) if made is not None else None
    top = above or owner
    return f"{top['kind']} {namespace}/{top['name']}"


def effects_of(before: Mapping[str, PodState], after: Mapping[str, PodState], outcome: Outcome) -> list[Effect]:
    """What has become of every pod that is not as it was, those that have lost their node first.

    Args:
        before: the pods before the change, by uid.
        after: those after it.
        outcome: after it.
    """
    why = {pod: one.message or one.reason for one in outcome.waiting for pod in one.pods}
    preemptors = {one.pod: one.by for one in outcome.evictions}
    found = list(_effects(before, after, why, preemptors))
    return sorted(found, key=lambda one: (not one.is_lost, one.workload, one.pod))


def _effects(
    before: Mapping[str, PodState], after: Mapping[str, PodState], why: Mapping[str, str], preemptors: Mapping[str, str]
) -> Iterator[Effect]:
    for uid, then in before.items():
        now = after.get(uid)
        if now is not None and now.node != then.node:
            yield _effect(then, now, why)
    replacements = _Replacements(one for uid, one in after.items() if uid not in before)
    gone = [one for uid, one in before.items() if uid not in after and not one.is_of_node]
    for then in sorted(gone, key=lambda one: (not one.node, one.key)):
        yield _effect(then, replacements.take(then), why, preemptors.get(then.key, ""))
    for now in replacements.rest():
        if not now.is_of_node:
            yield Effect(
                pod=now.key,
                workload=now.workload,
                was_on="",
                replacement=now.key,
                node=now.node,
                existed=False,
                why=why.get(now.key, "") if not now.node else "",
            )


def _effect(then: PodState, now: PodState | None, why: Mapping[str, str], preempted_by: str = "") -> Effect:
    return Effect(
        pod=then.key,
        workload=then.workload,
        was_on=then.node,
        replacement=now.key if now is not None else "",
        node=now.node if now is not None else "",
        preempted_by=preempted_by,
        why=why.get(now.key, "") if now is not None and not now.node else "",
    )


class _Replacements:
    """New pods, by what makes them; those with a node first."""

    def __init__(self, pods: Iterable[PodState]) -> None:
        self._by_owner: dict[str, list[PodState]] = defaultdict(list)
        in_order = sorted(pods, key=lambda one: one.key, reverse=True)
        for pod in sorted(in_order, key=lambda one: bool(one.node)):  # the last one is taken first
            self._by_owner[pod.owner or pod.key].append(pod)

    def take(self, gone: PodState) -> PodState | None:
        """The pod in place of *gone*: of the same name if its workload keeps names; None if there is none."""
        same_maker = self._by_owner.get(gone.owner or gone.key)
        if not same_maker:
            return None
        place = next((place for place, one in enumerate(same_maker) if one.key == gone.key), -1)
        return same_maker.pop(place)

    def rest(self) -> list[PodState]:
        """Those that are in nobody's place."""
        return sorted((one for many in self._by_owner.values() for one in many), key=lambda one: one.key)
