"""Checks ``sign``: whether pods with one signature get one answer, and a pod always the same signature."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from msgspec import structs

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.pod import Container, Pod, ResourceRequirements
from trio_sched.objects.taint import Toleration
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.results import Results, ask, same
from trio_sched.testing.conformance.subject import Subject, Trial
from trio_sched.testing.conformance.vocabulary import texts_of_plugin

_MAX_TEXTS: Final = 20


def signature_problems(subject: Subject) -> Iterator[str]:
    """Pairs of pods that the plugin says are the same, and treats differently."""
    trial = subject.fresh()
    columns = NodeColumns(trial.show(subject.cluster))
    seen: dict[tuple[Hashable, ...], tuple[Pod, Results | None]] = {}
    found: list[str] = []
    for waiting in subject.pods:
        try:
            signature = trial.profile.signature(waiting)
            if not signature or None in signature:
                continue
            if trial.profile.signature(waiting) != signature:
                yield (
                    f"pod {waiting.name!r}: sign returns another value each time, so that nothing is ever cached: make "
                    "it of what the hooks look at"
                )
                return
            results = ask(trial, waiting, columns, columns)
        except HookFailed:
            continue  # reported as a failure of the hook
        known = seen.setdefault(signature, (waiting, results))
        if known[0] is not waiting and not same(known[1], results):
            yield f"pods {known[0].name!r} and {waiting.name!r} have one signature but get different results"
            found.append(waiting.name)
    for signature, (waiting, results) in seen.items():
        if not found and (results is None or not results.is_random):
            found += _hidden(trial, columns, waiting, signature, results)
            yield from found


def _hidden(
    trial: Trial, columns: NodeColumns, waiting: Pod, signature: Hashable, results: Results | None
) -> Iterator[str]:
    """What of a pod the answer depends on, and the signature does not."""
    for part, change in _changes(trial).items():
        try:
            other = change(waiting)
            if trial.profile.signature(other) != signature or same(results, ask(trial, other, columns, columns)):
                continue
        except HookFailed:
            continue
        yield (
            f"pod {waiting.name!r} has the same signature with another {part}, but gets a different result: put into "
            "the signature everything of a pod that the hooks look at"
        )
        return


def _changes(trial: Trial) -> Mapping[str, Callable[[Pod], Pod]]:
    """By what is changed of a pod."""
    changes: dict[str, Callable[[Pod], Pod]] = {
        "priority": lambda one: _with_spec(one, priority=1000 if one.priority < 1000 else 0),
        "namespace": lambda one: _with_metadata(one, namespace=f"{one.namespace}-too"),
        "container": lambda one: _with_containers(one, name="another", image="registry.test/another:2"),
        "amount of what it requests": lambda one: _with_containers(
            one, resources=ResourceRequirements(requests={"cpu": "1700m", "memory": "5Gi"})
        ),
        "node selector": lambda one: _with_spec(
            one, node_selector={"disk": "ssd"} if not one.spec.node_selector else None
        ),
        "toleration": lambda one: _with_spec(
            one, tolerations=None if one.spec.tolerations else (Toleration(operator="Exists"),)
        ),
    }
    for text in texts_of_plugin(trial.plugin)[:_MAX_TEXTS]:
        changes[f"label {text!r}"] = partial(_with_label, text)
        changes[f"annotation {text!r}"] = partial(_with_annotation, text)
    return changes


def _with_label(key: str, one: Pod) -> Pod:
    return _with_metadata(one, labels=_toggled(one.metadata.labels, key))


def _with_annotation(key: str, one: Pod) -> Pod:
    return _with_metadata(one, annotations=_toggled(one.metadata.annotations, key))


def _toggled(known: Mapping[str, str] | None, key: str) -> dict[str, str] | None:
    others = {name: value for name, value in (known or {}).items() if name != key}
    return (others or None) if known and key in known else {**others, key: "true"}


def _with_spec(one: Pod, **parts: Any) -> Pod:
    return structs.replace(one, spec=structs.replace(one.spec, **parts))


def _with_metadata(one: Pod, **parts: Any) -> Pod:
    return structs.replace(one, metadata=structs.replace(one.metadata, **parts))


def _with_containers(one: Pod, **parts: Any) -> Pod:
    containers = one.spec.containers or (Container(),)
    return _with_spec(one, containers=tuple(structs.replace(each, **parts) for each in containers))
