"""Checks ``sign``: whether pods with one signature get one answer."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from trio_sched.engine.hook_failure import HookFailed
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.results import Results, ask, same
from trio_sched.testing.conformance.subject import Subject


def signature_problems(subject: Subject) -> Iterator[str]:
    """Pairs of pods that the plugin says are the same, and treats differently."""
    trial = subject.fresh()
    columns = NodeColumns(trial.show(subject.cluster))
    seen: dict[Hashable, tuple[Pod, Results | None]] = {}
    for waiting in subject.pods:
        try:
            signature = trial.profile.signature(waiting)
            if not signature or None in signature:
                continue
            results = ask(trial, waiting, columns, columns)
        except HookFailed:
            continue  # reported as a failure of the hook
        known = seen.setdefault(signature, (waiting, results))
        if known[0] is not waiting and not same(known[1], results):
            yield f"pods {known[0].name!r} and {waiting.name!r} have one signature but get different results"
