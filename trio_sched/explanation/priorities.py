"""Higher priorities for the pod: the lowest of the priority classes with which it would evict others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve
from msgspec import structs

from trio_sched.engine.group_forest import AnyGroup
from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.group_changes import recreate_group
from trio_sched.explanation.trial import Trial
from trio_sched.objects.metadata import NamedObject, ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, Edit, edit_pod

KIND = "PriorityClass"
_OF_THE_SYSTEM = "system-"
_PREEMPTS = "PreemptLowerPriority"
_NEVER = "Never"


class PriorityClass(NamedObject, frozen=True, rename="camel", gc=False, omit_defaults=True):
    """A ``scheduling.k8s.io/v1`` PriorityClass."""

    value: int = 0
    preemption_policy: str | None = None


def higher_priorities(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """Changes with which it would evict others: the lowest priority class that will do.

    The API server takes the preemption policy of a pod from its class only, and no class gets another one.
    """
    known, groups, pod = trial.scheduler.object_cache, _groups(trial), trial.pod
    if KIND not in known.kinds:
        return
    priority = max([pod.priority, *(one.spec.priority or 0 for one in groups)])
    never = _NEVER in (pod.spec.preemption_policy, *(one.spec.preemption_policy for one in groups))
    classes: list[Any] = sorted(known.objects(KIND), key=lambda one: one.value)
    for one in classes:
        is_candidate = one.value > priority or (never and one.value == priority)
        if is_candidate and not one.metadata.name.startswith(_OF_THE_SYSTEM):
            change = _with_class(pod, groups, one)
            if trial.would_help(change, preempt=True):
                yield change
                break
    named = (pod.spec.priority_class_name, *(one.spec.priority_class_name for one in groups))
    own = next(filter(None, named), "")
    name = f"{own}-preempting"
    if never and own and known.get(KIND, name) is None:
        made = PriorityClass(metadata=ObjectMeta(name=name), value=priority, preemption_policy=_PREEMPTS)
        change = _with_class(pod, groups, made)
        create = Edit(kind=KIND, name=name, apply=lambda _none: made)
        yield evolve(change, title=f"make the {change.title}, which preempts", edits=(create, *change.edits))


def _groups(trial: Trial) -> list[AnyGroup]:
    """The group of the pod and those above it, where pods are evicted for groups: then their priority counts."""
    return list(trial.group.with_parents()) if trial.scheduler.preempts_for_groups else []


def _with_class(pod: Pod, groups: Sequence[AnyGroup], one: PriorityClass) -> Change:
    fields = {
        "priority": one.value,
        "priority_class_name": one.metadata.name,
        "preemption_policy": one.preemption_policy,
    }
    return _change(f"priority class {one.metadata.name} ({one.value})", pod, groups, fields)


def _change(title: str, pod: Pod, groups: Sequence[AnyGroup], fields: Mapping[str, Any]) -> Change:
    """The same *fields* of the pod and of *groups*; these have no policy where the API server knows none for them."""

    def changed(before: Any) -> Any:
        return structs.replace(before, spec=structs.replace(before.spec, **fields))

    def changed_group(before: Any) -> Any:
        policy = before.spec.preemption_policy and fields["preemption_policy"]
        return structs.replace(before, spec=structs.replace(before.spec, **{**fields, "preemption_policy": policy}))

    edits = [recreate_group(one, changed_group) for one in groups]
    return Change(title=title, edits=(*edits, edit_pod(pod, changed)))
