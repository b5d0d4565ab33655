"""What a pod's RuntimeClass asks of nodes; it is changed there only, as the API server gives it to each new pod."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Final

from attrs import evolve
from msgspec import structs

from trio_sched.errors import nearest_name
from trio_sched.explanation.analysis import Analysis
from trio_sched.explanation.trial import Trial
from trio_sched.objects.pod import Pod
from trio_sched.objects.runtime_class import KIND, RuntimeClass, Scheduling
from trio_sched.plugin_api.clauses import Change, Edit, edit_pod

_MAX_VALUES: Final = 3


def other_runtime_classes(analysis: Analysis, trial: Trial) -> Iterator[Change]:
    """The pod's runtime class with another value for a label that it asks for, or without the label."""
    found = trial.runtime_class()
    failing = {one.title for one in analysis.clauses if one.clause.reason == "NodeSelectorMismatch"}
    for key, value in (found.selector if found is not None else {}).items():
        if found is None or f"node selector {key}={value}" not in failing:
            continue
        values = {node.labels[key]: None for node in analysis.nodes if key in node.labels}
        near = nearest_name(value, values) if value not in values else None
        for other in islice(values if near is None else [near], _MAX_VALUES):
            if other != value:
                title = f"runtime class {found.name} with {key}={other} instead of {key}={value}"
                yield evolve(_changed(trial.pod, found, title, key, other), corrects=near is not None)
        yield _changed(trial.pod, found, f"runtime class {found.name} without the node selector {key}", key, None)


def _changed(pod: Pod, found: RuntimeClass, title: str, key: str, value: str | None) -> Change:
    edit = Edit(kind=KIND, name=found.name, apply=partial(_of_class, key=key, value=value))
    return Change(
        title=title,
        edits=(edit, edit_pod(pod, partial(_of_pod, key=key, value=value))),
        note=f"it holds for all new pods of the runtime class {found.name}",
    )


def _with(labels: Mapping[str, str] | None, key: str, value: str | None) -> dict[str, str] | None:
    changed = {name: one for name, one in (labels or {}).items() if name != key}
    return (changed if value is None else {**changed, key: value}) or None


def _of_class(one: RuntimeClass, key: str, value: str | None) -> RuntimeClass:
    scheduling = one.scheduling or Scheduling()
    selector = _with(scheduling.node_selector, key, value)
    return structs.replace(one, scheduling=structs.replace(scheduling, node_selector=selector))


def _of_pod(pod: Pod, key: str, value: str | None) -> Pod:
    return structs.replace(pod, spec=structs.replace(pod.spec, node_selector=_with(pod.spec.node_selector, key, value)))
