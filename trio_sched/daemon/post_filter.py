"""Asks the post_filter plugins to make room for a pod that fits nowhere."""

from __future__ import annotations

import inspect

from attrs import frozen

from trio_sched.engine.profile import Profile
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.status import Code, failure
from trio_sched.plugin_api.verdicts import Diagnosis, PostFilterResult


@frozen
class PostFilterOutcome:
    """What came of it."""

    message: str = ""
    """What is added to the pod's message."""
    nominated_node_name: str | None = None
    """None leaves the pod's nomination as it is, "" clears it."""


async def run_post_filters(profile: Profile, pod: Pod, diagnosis: Diagnosis, state: CycleState) -> PostFilterOutcome:
    """Ask one plugin after the other, until one has the last word."""
    reasons: list[str] = []
    nomination: str | None = None
    for caller in profile.post_filter:
        try:
            answer = caller.call(pod, diagnosis, state)
            result: PostFilterResult | None = await answer if inspect.isawaitable(answer) else answer
        except Exception as exc:
            result = PostFilterResult(failure(exc))
        if result is None:
            continue
        status = result.status
        if status is not None and status.code in (Code.UNSCHEDULABLE, Code.PENDING):
            reasons.extend(status.all_reasons)
            if result.nominated_node_name is not None:
                nomination = result.nominated_node_name
            continue
        # Success, a firm no, or a failure: this plugin has the last word.
        failed = status is not None and status.code == Code.ERROR
        return PostFilterOutcome(
            "" if status is None else status.message, None if failed else result.nominated_node_name
        )
    return PostFilterOutcome(", ".join(reasons), nomination)
