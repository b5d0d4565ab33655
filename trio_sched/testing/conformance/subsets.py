"""Checks that what is said of a node does not depend on which other nodes a hook is shown."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.results import Results, ask, differs
from trio_sched.testing.conformance.subject import Subject, Trial


def subset_problems(subject: Subject) -> Iterator[str]:
    """The first node of each pod about which something else is said in other company."""
    trial = subject.fresh()
    everything = NodeColumns(trial.show(subject.cluster))
    for waiting in subject.pods:
        try:
            whole = ask(trial, waiting, everything, everything)
            if whole is not None and not whole.is_random:
                yield from _subset_problems(trial, waiting, everything, whole, f"pod {waiting.name!r}")
        except HookFailed:
            continue  # reported where answers are checked


def _subset_problems(trial: Trial, waiting: Pod, everything: NodeColumns, whole: Results, where: str) -> Iterator[str]:
    count = len(everything)
    for positions in (np.arange(0, count, 2), np.arange(count)[::-1].copy(), np.arange(count)[-1:]):
        part = ask(trial, waiting, everything.take(positions), everything)
        if part is None:
            continue
        for i, position in enumerate(positions.tolist()):
            name = everything.name(position)
            if differs(part.statuses, i, whole.statuses, position):
                yield f"{where}: filter says something else about {name!r} when it is shown fewer nodes"
                return
            if part.scores is not None and whole.scores is not None and part.scores[i] != whole.scores[position]:
                yield (
                    f"{where}: score gives {name!r} {part.scores[i]} when it is shown {len(positions)} nodes, "
                    f"{whole.scores[position]} when it is shown all"
                )
                return
