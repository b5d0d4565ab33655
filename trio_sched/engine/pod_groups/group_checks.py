"""What is checked about the pods of a group before it is tried: what makes scheduling it as one impossible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from trio_sched.engine.group_forest import AnyGroup
from trio_sched.go.text import quote
from trio_sched.objects.pod import Pod

_DEFAULT_POLICY: Final = "PreemptLowerPriority"


@frozen
class GroupCheck:
    """One way to check a group, and what follows."""

    problem: Callable[[AnyGroup | None, Sequence[Pod], Sequence[Pod]], str]
    """What keeps a group from being tried, empty if nothing does.

    Of the group, or the root of its tree, the pods of the attempt and those that have a node.
    """
    is_told_in_condition: bool
    """Whether the condition of the group says so, too."""


def _other_scheduler(_group: AnyGroup | None, pods: Sequence[Pod], _placed: Sequence[Pod]) -> str:
    first = pods[0].scheduler_name
    other = next((pod.scheduler_name for pod in pods if pod.scheduler_name != first), None)
    return "" if other is None else _different("the same .spec.schedulerName set, got:", quote(first), quote(other))


def _is_not_uniform(
    group: AnyGroup | None, pods: Sequence[Pod], placed: Sequence[Pod], *, has_policy: bool = False
) -> str:
    """With *has_policy* the preemption policy of the group counts, else that of the first pod."""
    if group is None:
        name = (pods[0].group_key or "").partition("/")[2]
        return f"podgroup.scheduling.k8s.io {quote(name)} not found"
    scheduler, priority = pods[0].scheduler_name, group.spec.priority or 0
    policy = _policy_of(group) if has_policy else _policy_of(pods[0])
    same_policy = "the same preemption policy"
    if has_policy:
        same_policy += " as the pod group's preemption policy"
    for pod in (*pods, *placed):
        if pod.scheduler_name != scheduler:
            return _different("the same .spec.schedulerName set, got:", quote(pod.scheduler_name), quote(scheduler))
        if pod.priority != priority:
            return _different("the same priority as the pod group's priority, got", pod.priority, priority)
        if _policy_of(pod) != policy:
            return _different(f"{same_policy}, got", _policy_of(pod), policy)
    return ""


def _policy_of(one: Pod | AnyGroup) -> str:
    return one.spec.preemption_policy or _DEFAULT_POLICY


def _different(what: str, one: object, other: object) -> str:
    return f"all pods in a single pod group should have {what} {one} and {other}"


SAME_SCHEDULER: Final = GroupCheck(_other_scheduler, is_told_in_condition=False)
"""All pods of the attempt have one scheduler; as kube-scheduler 1.36."""
UNIFORM: Final = GroupCheck(_is_not_uniform, is_told_in_condition=True)
"""All pods of the group have one scheduler, the priority of the group and one preemption policy; as 1.37."""
UNIFORM_WITH_POLICY: Final = GroupCheck(partial(_is_not_uniform, has_policy=True), is_told_in_condition=True)
"""The same, and the preemption policy is that of the group; as 1.37 with the gate PodGroupPreemptionPolicy."""
