"""What becomes of the other pods of a Deployment once its template is changed for one that is pending."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.owners import controller_of, is_of
from trio_sched.explanation.side_effects import placed
from trio_sched.explanation.trial import EditedObject, Trial
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, delete_pod

_OF_DEPLOYMENTS: Final = "pod-template-hash"
"""The label of pods whose ReplicaSet a Deployment has made."""
_MAX_PODS: Final = 20
"""Pods of a Deployment whose rollout is followed."""


def stopped_rollout(trial: Trial, edited: Sequence[EditedObject], pod: Pod, node_name: str) -> str:
    """That the rollout of a changed template would stop before all new pods of the Deployment run.

    The rollout is one with the defaults: a quarter of the pods more while it lasts, rounded up, and a quarter of them
    missing, rounded down. Old pods keep their places until as many new ones run.

    Args:
        trial: in which the change is made.
        edited: what it changes.
        pod: the pod in question, as the change leaves it.
        node_name: where that would run.

    Returns:
        Empty if it would not, and if the template is not changed, or the pod is of no Deployment, or of one with too
        many pods.
    """
    owner = controller_of(trial.pod)
    is_changed = any(one.kind == "Pod" and one.new is not None and _is(one, trial.pod) for one in edited)
    if not is_changed or owner is None or owner.kind != "ReplicaSet" or _OF_DEPLOYMENTS not in (pod.labels or {}):
        return ""
    cache = trial.scheduler.cache
    old = [one.pod_on_node for one in cache if is_of(owner, one.pod_on_node)]
    pending = sum(is_of(owner, one) and one.uid != pod.uid for one in cache.unassigned.pods())
    wanted = len(old) + pending + 1
    if wanted > _MAX_PODS:
        return ""
    count = trial.count
    with ExitStack() as stack:
        stack.enter_context(placed(trial, pod, node_name))
        new = 1
        while new < wanted:
            if new < wanted + -(-wanted // 4) - len(old):
                another = structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"{pod.uid}-{new}"))
                decision = trial.scheduler.try_pod(another)
                if isinstance(decision, ScheduleResult):
                    stack.enter_context(placed(trial, another, decision.node_name))
                    new += 1
                    continue
            if not old or len(old) + new <= wanted - wanted // 4:
                break
            stack.enter_context(trial.made(Change(title="", edits=(delete_pod(old.pop()),))))
    trial.count = count
    return "" if new == wanted else f"the rollout would stop: {new} of {wanted} new pods fit beside the old ones"


def _is(one: EditedObject, pod: Pod) -> bool:
    return (one.namespace, one.name) == (pod.namespace, pod.name)
