"""Checks clauses: that they agree with the filter, and that the changes they bring meet them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

import numpy as np
from attrs import evolve

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_clauses, call_of_clause
from trio_sched.explanation.plugin_answers import ask_plugins
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.clauses import Change, Clause, Edit
from trio_sched.plugin_api.custom_resources import as_json
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.subject import Cluster, Subject, copy_of

_MAX_CHANGES: Final = 20
"""So many changes of a clause are tried."""


def clause_problems(subject: Subject) -> Iterator[str]:
    """What is wrong with the clauses that a plugin names of pods that it rejects."""
    if not subject.fresh().profile.clauses:
        return
    for waiting in subject.pods:
        try:
            yield from _problems(_Explained(subject, subject.cluster, waiting))
        except HookFailed as failed:
            yield f"pod {waiting.name!r}: {failed}"


class _Explained:
    """A pod with the clauses that the plugin names in a cluster.

    Raises:
        HookFailed: the plugin failed.
    """

    def __init__(self, subject: Subject, cluster: Cluster, waiting: Pod) -> None:
        self.subject, self.cluster, self.waiting = subject, cluster, waiting
        trial = subject.fresh()
        self.nodes = NodeColumns(trial.show(cluster))
        (self.hook,) = trial.profile.clauses.values()
        answers = ask_plugins(trial.profile, waiting, self.nodes)
        self.rejected = np.zeros(len(self.nodes), dtype=np.bool_)
        for answer in answers.rejecting:
            self.rejected |= answer.fails
        named = call_clauses(self.hook, waiting, self.nodes, answers.state) if self.rejected.any() else []
        everywhere = np.ones(len(self.nodes), dtype=np.bool_)
        self.clauses = [(clause, everywhere if clause.fails is None else clause.fails) for clause in named]

    def refusals(self, reason: str) -> Counter[str]:
        """How many clauses with *reason* fail on each node, by its name."""
        failing = [fails & self.rejected for clause, fails in self.clauses if clause.reason == reason]
        counts = np.sum(failing, axis=0) if failing else np.zeros(len(self.nodes), dtype=np.int64)
        return Counter(dict(zip(map(str, self.nodes.names), counts.tolist(), strict=True)))


def _problems(explained: _Explained) -> Iterator[str]:
    """Clauses where the filter passes, and changes that do not meet what they are for.

    Raises:
        HookFailed: something that a clause brings along failed.
    """
    hook, where = explained.hook, f"pod {explained.waiting.name!r}"
    for clause, fails in explained.clauses:
        passed = np.flatnonzero(fails & ~explained.rejected)
        if len(passed):
            name = explained.nodes.name(int(passed[0]))
            yield f"{where}: the clause {clause.title!r} fails on {name!r}, which the plugin does not reject"
        if callable(clause.cause):
            call_of_clause(hook, clause.cause, fails & explained.rejected)
        call_of_clause(hook, lambda one: list(one.details()), clause)
        changes = call_of_clause(
            hook,
            lambda one, wanted: list(islice(one.changes(wanted), _MAX_CHANGES)),
            clause,
            fails & explained.rejected,
        )
        for change in changes:
            of_clause = f"{where}: the change {getattr(change, 'title', change)!r} of the clause {clause.title!r}"
            if not isinstance(change, Change):
                yield f"{of_clause} is no Change"
                continue
            problem = _problem_of(change, clause, explained)
            if problem:
                yield f"{of_clause} {problem}"


def _problem_of(change: Change, clause: Clause, explained: _Explained) -> str:
    """What is wrong with a change; empty if its clause fails on fewer nodes once it is made.

    Raises:
        HookFailed: one of its edits, or a hook, failed.
    """
    subject = explained.subject
    handle, cluster, waiting = copy_of(subject.handle), explained.cluster, explained.waiting
    for edit in change.edits:
        what = f"the {edit.kind} {edit.name!r}"
        others = {"Node": cluster.nodes, "Pod": (waiting, *cluster.running)}.get(
            edit.kind, tuple(handle.known_objects.get(edit.kind, ()))
        )
        old = next((one for one in others if _is_about(edit, one)), None)
        before = None if old is None else as_json(old)
        new = call_of_clause(explained.hook, edit.apply, old)
        if old is not None and as_json(old) != before:
            return f"writes to {what}, which its apply is given: make a copy with replace_fields"
        if old is not None and new is not None and type(new) is not type(old):
            return f"makes {what} a {type(new).__name__}"
        changed = tuple(one for one in (*(one for one in others if one is not old), new) if one is not None)
        if old is waiting:
            if new is None:
                return f"deletes {what}, which is to run"
            waiting = new
        elif edit.kind == "Node":
            cluster = evolve(cluster, nodes=changed)
        elif edit.kind == "Pod":
            cluster = evolve(cluster, running=changed[1:])
        else:
            handle.known_objects[edit.kind] = list(changed)
    if subject.is_instance:
        return ""  # there is no second instance to try it on
    after = _Explained(evolve(subject, handle=handle, effective_edits=[]), cluster, waiting)
    was, would_be = explained.refusals(clause.reason), after.refusals(clause.reason)
    if any(would_be[name] < was.get(name, 1) for name in would_be):
        return ""
    return f"does not meet it: {clause.reason} is said of the same nodes as before"


def _is_about(edit: Edit, one: Any) -> bool:
    metadata = one.metadata
    return bool(metadata.name == edit.name and (edit.kind == "Node" or metadata.namespace == edit.namespace))
