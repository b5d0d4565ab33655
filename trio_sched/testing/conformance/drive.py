"""Calls every hook of a plugin for one pod, as the scheduler would."""

from __future__ import annotations

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_normalize_score
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.hooks import call_hooks
from trio_sched.testing.conformance.results import ask
from trio_sched.testing.conformance.subject import Trial


def drive(trial: Trial, columns: NodeColumns, waiting: Pod) -> None:
    """Call every hook about *waiting*; what they return is of no interest, nor whether they fail."""
    try:
        trial.profile.signature(waiting)
        results = ask(trial, waiting, columns, columns)
        if results is not None and results.scores is not None:
            (scorer,) = trial.profile.score
            if scorer.normalize is not None:
                call_normalize_score(scorer, waiting, results.scores.copy(), CycleState())
    except HookFailed:
        pass  # reported where answers are checked
    for _problem in call_hooks(trial.profile, columns, waiting):
        pass
