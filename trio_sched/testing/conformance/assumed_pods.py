"""Checks what is said of a node while pods are assumed to be there or gone, as for preemption and nominated pods.

Then pre_filter is not called again: add_pod and remove_pod change a clone of what it has written, and filter must say
what it would say in a cluster in which that is so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen
from msgspec import structs

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.evaluation.what_if_filters import WhatIfFilters, WhatIfNode
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import clone_state
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.subject import Cluster, Subject, Trial

_MAX_RUNNING: Final = 12
_MAX_NEW: Final = 12
_HOOKS: Final = ("add_pod", "remove_pod")


@frozen(eq=False)
class _Case:
    """A cluster with a pod on a node, and the same without it."""

    pod: Pod
    with_it: NodeColumns
    without_it: NodeColumns


def assumption_problems(subject: Subject) -> Iterator[str]:
    """The first pod of each example that add_pod or remove_pod does not take into account as pre_filter does."""
    trial = subject.fresh()
    profile = trial.profile
    if not profile.filter or not profile.pre_filter:
        return
    cases = list(_cases(subject))
    reported: set[str] = set()
    for waiting in subject.pods:
        for hook in _HOOKS:
            found = (_problem(trial, waiting, case, hook) for case in cases if case.pod.uid != waiting.uid)
            problem = next((one for one in found if one), "")
            if problem and hook not in reported:
                reported.add(hook)
                yield f"pod {waiting.name!r}: {problem}"


def _cases(subject: Subject) -> Iterator[_Case]:
    nodes, running = subject.cluster.nodes, subject.cluster.running
    names = [node.name for node in nodes]
    as_it_is = _columns(nodes, running)  # made once: every pod asks about every case, and none of them writes
    for one in [one for one in running if one.node_name in names][:_MAX_RUNNING]:
        yield _Case(one, as_it_is, _columns(nodes, [pod for pod in running if pod is not one]))
    for i, one in enumerate([one for one in subject.pods if not one.node_name][:_MAX_NEW] if names else ()):
        placed = structs.replace(one, spec=structs.replace(one.spec, node_name=names[i % len(names)]))
        yield _Case(placed, _columns(nodes, (*running, placed)), as_it_is)


def _columns(nodes: Iterable[Node], running: Iterable[Pod]) -> NodeColumns:
    return NodeColumns(Cluster(tuple(nodes), tuple(running)).table())


def _problem(trial: Trial, waiting: Pod, case: _Case, hook: str) -> str:
    """What is wrong about *waiting* when the pod of *case* is added or removed; empty if nothing is."""
    before, after = (case.without_it, case.with_it) if hook == "add_pod" else (case.with_it, case.without_it)
    name = case.pod.node_name
    try:
        real = _prepared(trial, waiting, after)
        expected = None if real is None else _code(trial, waiting, after, real, name)
    except HookFailed:
        return ""  # reported where answers are checked
    used = trial.handle.rng.getstate()
    trial.reset_random()
    if used != trial.handle.rng.getstate() or real is None:
        return ""  # then equal questions get different answers
    try:
        state = _prepared(trial, waiting, before)
        if state is None or state.skip_filter != real.skip_filter:
            return ""  # then add_pod and remove_pod are not called
        found = _code(trial, waiting, after, clone_state(state), name, case.pod, hook)
    except HookFailed as failed:
        return str(failed) if failed.hook.hook == hook else ""
    if found == expected:
        return ""
    there = "on" if hook == "add_pod" else "no longer on"
    is_written = bool(trial.profile.add_pod if hook == "add_pod" else trial.profile.remove_pod)
    fix = (
        f"{hook} must leave in the state what pre_filter would have written"
        if is_written
        else f"write {hook}, which changes in the state what pre_filter has written"
    )
    return (
        f"if pod {case.pod.name!r} were {there} node {name!r}, filter would say {_named(expected)} of it after "
        f"pre_filter, but {'after' if is_written else 'without'} {hook} it says {_named(found)}: {fix}"
    )


def _prepared(trial: Trial, waiting: Pod, columns: NodeColumns) -> CycleState | None:
    """What pre_filter has written in the cluster of *columns*; None if it ends the cycle, or names nodes that count."""
    state = CycleState()
    trial.reset_random()
    trial.handle.nodes = columns
    prepared = run_pre_filters(trial.profile.pre_filter, waiting, columns, state)
    return None if prepared.rejected is not None or prepared.node_names is not None else state


def _code(
    trial: Trial,
    waiting: Pod,
    columns: NodeColumns,
    state: CycleState,
    name: str,
    assumed: Pod | None = None,
    hook: str = "",
) -> Code | None:
    """What filter says of the node *name*; None if it passes.

    Raises:
        HookFailed: it failed, or the hook that is told of *assumed*.
    """
    node = WhatIfNode(columns.names.index(name), name, state)
    filters = WhatIfFilters(trial.profile, waiting, state)
    if assumed is not None:
        tell = filters.add_pod if hook == "add_pod" else filters.remove_pod
        tell(columns, node, assumed)
    filters.run(columns, [node])
    return None if node.status is None else node.status.code


def _named(code: Code | None) -> str:
    return "Success" if code is None else code.label
