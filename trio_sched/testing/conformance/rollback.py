"""Checks that what is undone leaves nothing behind: reservations that are taken back, and what is assumed on clones."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from trio_sched.engine.evaluation.filtering import run_filters, run_pre_filters
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_status_hook, call_unreserve, clone_state
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.builders import pod
from trio_sched.testing.conformance.results import ask, comparable, same
from trio_sched.testing.conformance.subject import Subject, Trial

_TIMES: Final = 50
"""How often something is done before it shows."""


def undone_problems(subject: Subject) -> Iterator[str]:
    """What is left of reservations and assumptions."""
    trial = subject.fresh()
    columns = NodeColumns(trial.show(subject.cluster))
    if not len(columns):
        return
    for waiting in subject.pods:
        try:
            yield from _clone_problems(trial, columns, waiting, [*subject.cluster.running, *subject.pods])
            yield from _reservation_problems(trial, columns, waiting, subject.pods)
        except HookFailed:
            continue  # reported as a failure of the hook


def _clone_problems(trial: Trial, columns: NodeColumns, waiting: Pod, pods: list[Pod]) -> Iterator[str]:
    """Whether add_pod and remove_pod change what filters say about the cluster as it is."""
    profile = trial.profile
    for extension in [*profile.add_pod.values(), *profile.remove_pod.values()]:
        state = CycleState()
        trial.reset_random()
        rejected = run_pre_filters(profile.pre_filter, waiting, columns, state).rejected
        if rejected is not None or extension.plugin in state.skip_filter:
            return
        before = _statuses(trial, columns, waiting, state)
        clone = clone_state(state)
        for times in (1, _TIMES):  # taking away what is not there may be a failure
            with suppress(HookFailed):
                for other in [pod("other", labels={"app": "web"}), *pods]:
                    row = columns.names.index(other.node_name) if other.node_name in columns.names else 0
                    for _ in range(times):
                        call_status_hook(extension, waiting, other, columns.node(row), clone)
        if _statuses(trial, columns, waiting, state) != before:
            name = extension.hook
            yield (
                f"pod {waiting.name!r}: {name} on a clone of the state changes what filter says with the original: "
                f"what is stored there needs a clone() that copies all that {name} changes"
            )
            return


def _statuses(trial: Trial, columns: NodeColumns, waiting: Pod, state: CycleState) -> list[object]:
    trial.reset_random()
    outcome = run_filters(trial.profile.filter, waiting, columns, state)
    return [comparable(outcome.status(position)) for position in range(len(columns))]


def _reservation_problems(trial: Trial, columns: NodeColumns, waiting: Pod, pods: tuple[Pod, ...]) -> Iterator[str]:
    """Whether a reservation that is taken back changes the answers about pods that have nothing to do with it."""
    profile = trial.profile
    others = [one for one in pods if one.labels != waiting.labels and one.namespace == waiting.namespace]
    if not profile.reserve or not others:
        return
    before = [ask(trial, one, columns, columns) for one in others]
    for _ in range(_TIMES):
        state = CycleState()
        trial.reset_random()
        if run_pre_filters(profile.pre_filter, waiting, columns, state).rejected is not None:
            return
        for hook in profile.reserve:
            call_status_hook(hook, waiting, columns.name(0), state)
        for hook in profile.unreserve:
            call_unreserve(hook, waiting, columns.name(0), state)
    for one, known in zip(others, before, strict=True):
        now = ask(trial, one, columns, columns)
        if (known is None or not known.is_random) and not same(known, now):
            yield (
                f"pod {waiting.name!r}: after reserve and unreserve, pod {one.name!r} gets a different result: "
                "unreserve has to take back what reserve has done"
            )
            return
