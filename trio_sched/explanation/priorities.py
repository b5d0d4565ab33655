"""Higher priorities for the pod: the lowest of the priority classes with which it would evict others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field, structs

from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.trial import Trial
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, edit_pod

KIND = "PriorityClass"
_OF_THE_SYSTEM = "system-"
_PREEMPTS = "PreemptLowerPriority"


class PriorityClass(Struct, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``scheduling.k8s.io/v1`` PriorityClass."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    value: int = 0
    preemption_policy: str | None = None


def higher_priorities(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """Changes with which it would evict others: its preemption policy, or the lowest priority class that will do."""
    known = trial.scheduler.object_cache
    if trial.pod.spec.preemption_policy == "Never":
        change = Change(title=f"preemption policy {_PREEMPTS}", edits=(edit_pod(trial.pod, _preempting),))
        if trial.would_help(change, preempt=True):
            yield change
    if KIND not in known.kinds:
        return
    classes: list[Any] = sorted(known.objects(KIND), key=lambda one: one.value)
    for one in classes:
        if one.value > trial.pod.priority and not one.metadata.name.startswith(_OF_THE_SYSTEM):
            change = _with_class(trial.pod, one)
            if trial.would_help(change, preempt=True):
                yield change
                return


def _preempting(pod: Pod) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, preemption_policy=_PREEMPTS))


def _with_class(pod: Pod, one: PriorityClass) -> Change:
    def changed(before: Pod) -> Pod:
        spec = structs.replace(
            before.spec,
            priority=one.value,
            priority_class_name=one.metadata.name,
            preemption_policy=one.preemption_policy,
        )
        return structs.replace(before, spec=spec)

    title = f"priority class {one.metadata.name} ({one.value})"
    return Change(title=title, edits=(edit_pod(pod, changed),))
