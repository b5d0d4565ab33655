"""Whether a plugin, alone, lets a pod be scheduled in a cluster, and which hook says no."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from attrs import frozen

from trio_sched.engine.evaluation.filtering import run_filters, run_pre_filters
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_calls import call_permit, call_status_hook, call_unreserve
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, Status
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.subject import Trial


@frozen
class Rejection:
    """Which hook has rejected a pod, and why."""

    hook: str
    reasons: tuple[str, ...]
    is_pending: bool = False
    """Whether its code is Pending."""

    def __str__(self) -> str:
        return f"{self.hook} ({', '.join(self.reasons) or 'no reason given'})"


def judge(trial: Trial, columns: NodeColumns, pod: Pod) -> Rejection | None:
    """None if the pod may be bound to any node.

    Raises:
        HookFailed: a hook failed.
    """
    profile, state = trial.profile, CycleState()
    trial.reset_random()
    rejection = _first_rejection(profile.pre_enqueue, pod)
    if rejection is not None:
        return rejection
    prepared = run_pre_filters(profile.pre_filter, pod, columns, state)
    if prepared.rejected is not None:
        return _rejection("pre_filter", prepared.rejected)
    if prepared.node_names is not None:
        kept = [i for i, name in enumerate(columns.names) if name in prepared.node_names]
        if not kept:
            return Rejection("pre_filter", ("none of the nodes that it names is there",))
        columns = columns.take(np.array(kept, dtype=np.intp))
    outcome = run_filters(profile.filter, pod, columns, state)
    if not outcome.passes.any():
        statuses = {outcome.status(position) for position in range(len(columns))} - {None}
        reasons = sorted({reason for status in statuses if status is not None for reason in status.all_reasons})
        return Rejection("filter", tuple(reasons), any(status.code == Code.PENDING for status in statuses if status))
    feasible = [columns.name(position) for position in np.flatnonzero(outcome.passes).tolist()]
    rejections = [_reserved(trial, pod, name, state) for name in feasible]
    return None if None in rejections else rejections[0]


def _reserved(trial: Trial, pod: Pod, name: str, state: CycleState) -> Rejection | None:
    """Whether the pod may be bound to a node on which it can run; what was reserved is released again.

    Raises:
        HookFailed: a hook failed.
    """
    profile, rejection = trial.profile, None
    try:
        rejection = _first_rejection(profile.reserve, pod, name, state)
        for hook in profile.permit if rejection is None else ():
            answer = call_permit(hook, pod, name, state)
            if isinstance(answer, Status):
                rejection = _rejection("permit", answer)
    finally:
        for hook in profile.unreserve:
            call_unreserve(hook, pod, name, state)
    return rejection


def _first_rejection(hooks: Iterable[BoundHook], *args: object) -> Rejection | None:
    for hook in hooks:
        status = call_status_hook(hook, *args)
        if status is not None:
            return _rejection(hook.hook, status)
    return None


def _rejection(hook: str, status: Status) -> Rejection:
    return Rejection(hook, tuple(status.all_reasons), status.code == Code.PENDING)
