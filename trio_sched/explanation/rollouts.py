"""What becomes of the other pods of a workload once one that is pending is changed, or gets its place."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Final

from msgspec import structs

from trio_sched.engine.evaluation.decision import ScheduleResult
from trio_sched.explanation.owners import controller_of, is_of, siblings_of, workload_behind
from trio_sched.explanation.patches import pod_patch
from trio_sched.explanation.side_effects import placed
from trio_sched.explanation.trial import EditedObject, Trial
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, delete_pod

_MAX_PODS: Final = 20
"""Pods of a workload that are followed."""


def left_pending(trial: Trial, edited: Sequence[EditedObject], pod: Pod, node_name: str) -> str:
    """That some pods of the workload would be pending all the same, or their rollout would stop.

    The rollout of a Deployment is one with the defaults: a quarter of the pods more while it lasts, rounded up, and a
    quarter of them missing, rounded down. Old pods keep their places until as many new ones run. Pending pods of a Job
    are changed together, and all of them are made again where the change needs another template.

    Args:
        trial: in which the change is made.
        edited: what it changes.
        pod: the pod in question, as the change leaves it.
        node_name: where that would run.

    Returns:
        Empty if none would, and if the pod is of no workload, or of one with too many pods.
    """
    owner, count = controller_of(trial.pod), trial.count
    if owner is None or owner.kind == "DaemonSet" or trial.group.is_scheduled or _has_claims_of_its_own(pod):
        return ""
    pending = siblings_of(pod, trial.scheduler.cache.unassigned.pods())
    running = [one.pod_on_node for one in trial.scheduler.cache if is_of(owner, one.pod_on_node)]
    if len(pending) + len(running) + trial.missing >= _MAX_PODS:
        return ""
    is_changed = any(
        one.kind == "Pod" and one.new is not None and not one.is_consequence and _is(one, trial.pod) for one in edited
    )
    is_made_again = owner.kind == "Job" and not pod_patch(trial.pod, pod).is_in_place
    workload = workload_behind(trial.pod)
    is_deployment = workload is not None and workload.kind == "Deployment"
    with ExitStack() as stack:
        stack.enter_context(placed(trial, pod, node_name))
        if not is_changed or not (is_deployment or is_made_again):
            later = [_another(pod, number) for number in range(1, trial.missing + 1)]
            run = 1 + sum(_is_placed(trial, one, stack) for one in (*pending, *later))
            wanted = 1 + len(pending) + trial.missing
            made = " or made after it" if trial.missing else ""
            text = f"{run} of {wanted} pods run then that are pending like this one{made}"
        elif is_deployment:
            wanted = len(running) + len(pending) + 1
            run = _rollout(trial, pod, running, wanted, stack)
            text = f"the rollout would stop: {run} of {wanted} new pods fit beside the old ones"
        else:
            wanted = len(running) + len(pending) + 1
            stack.enter_context(trial.made(Change(title="", edits=tuple(map(delete_pod, running)))))
            run = 1 + sum(_is_placed(trial, _another(pod, number), stack) for number in range(1, wanted))
            text = f"{run} of {wanted} pods fit that are made again with it"
    trial.count = count
    return "" if run == wanted else text


def _has_claims_of_its_own(pod: Pod) -> bool:
    """Whether claims are made for the pod, which no other pod can use in a trial."""
    return any(one.resource_claim_template_name for one in pod.spec.resource_claims or ()) or any(
        one.ephemeral is not None for one in pod.spec.volumes or ()
    )


def _rollout(trial: Trial, pod: Pod, old: list[Pod], wanted: int, stack: ExitStack) -> int:
    """How many new pods run in the end, of which the first is placed already."""
    new = 1
    while new < wanted:
        if new < wanted + -(-wanted // 4) - len(old) and _is_placed(trial, _another(pod, new), stack):
            new += 1
            continue
        if not old or len(old) + new <= wanted - wanted // 4:
            break
        stack.enter_context(trial.made(Change(title="", edits=(delete_pod(old.pop()),))))
    return new


def _another(pod: Pod, number: int) -> Pod:
    return structs.replace(pod, metadata=structs.replace(pod.metadata, uid=f"{pod.uid}-{number}"))


def _is_placed(trial: Trial, pod: Pod, stack: ExitStack) -> bool:
    """Whether *pod* fits a node, where it then is while *stack* is open."""
    decision = trial.scheduler.try_pod(pod)
    if not isinstance(decision, ScheduleResult):
        return False
    stack.enter_context(placed(trial, pod, decision.node_name))
    return True


def _is(one: EditedObject, pod: Pod) -> bool:
    return (one.namespace, one.name) == (pod.namespace, pod.name)
