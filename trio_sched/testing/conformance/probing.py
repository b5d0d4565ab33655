"""Finds out which labels, annotations, taints and conditions a plugin reacts to, by trying the texts in its code.

Random changes of just these make it change its mind often enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product
from typing import Any, Final

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing.conformance.changes import Changes, Edit, fields_of
from trio_sched.testing.conformance.cluster_state import (
    NODE,
    RUNNING,
    WAITING,
    Change,
    ClusterState,
    Kind,
    key_of,
    plain_of,
)
from trio_sched.testing.conformance.judgement import judge
from trio_sched.testing.conformance.results import ask, comparable
from trio_sched.testing.conformance.subject import Trial

_MAX_KEYS: Final = 12
_MAX_VALUES: Final = 8
_MAX_PODS: Final = 3
_MAX_EXAMPLES: Final = 3
_VALUES: Final = ("true", "1", "100")
_AMOUNTS: Final = ("0", "1Ti")
_STATUSES: Final = ("True", "False", "Unknown")
_MAX_EFFECTIVE: Final = 60
_TEXTUAL: Final = ("label", "annotation", "taint")
_MAX_FIRST: Final = 4


def find_effective(trial: Trial, changes: Changes) -> list[Edit]:
    """The edits to which the plugin of *trial* reacts in a small cluster."""
    cluster_state = _small_cluster_state(changes)
    table = cluster_state.table()
    before = _answers(trial, cluster_state, table)
    found = (
        edit for edit in _edits(changes, cluster_state) if _answers_after(trial, edit, cluster_state, table) != before
    )
    effective = list(islice(found, _MAX_EFFECTIVE))
    effective += _joint(trial, changes, cluster_state, effective)
    paths = {(edit.kind, edit.key) for edit in effective if edit.facet == "field"}
    back = [edit for edit in _edits(changes, cluster_state) if (edit.kind, edit.key) in paths and edit not in effective]
    return [*effective, *back]


def _joint(trial: Trial, changes: Changes, cluster_state: ClusterState, effective: Sequence[Edit]) -> Iterator[Edit]:
    """The edits to which it reacts only beside another one: labels of nodes that pods name, for instance."""
    firsts = {(edit.kind, edit.facet, edit.key): edit for edit in effective if edit.facet in _TEXTUAL}
    for first in list(firsts.values())[:_MAX_FIRST]:
        beside = _edited(cluster_state, _changes(cluster_state, first))
        table = beside.table()
        before = _answers(trial, beside, table)
        for edit in _edits(changes, cluster_state):
            is_other = edit.facet in _TEXTUAL and (edit.kind, edit.facet) != (first.kind, first.facet)
            is_untried = is_other and edit.value == first.value and edit not in effective
            if is_untried and _answers_after(trial, edit, beside, table) != before:
                yield edit


def _small_cluster_state(changes: Changes) -> ClusterState:
    """Two nodes with a pod, a few pending pods, and all other objects."""
    nodes = list(changes.nodes)[:2]
    running = [one for one in changes.running if one.node_name in {node.name for node in nodes}][:2]
    step = max(1, len(changes.waiting) // _MAX_PODS)
    kinds: dict[Kind, list[Any]] = {NODE: nodes, RUNNING: running, WAITING: list(changes.waiting)[::step][:_MAX_PODS]}
    kinds.update({kind: list(ones) for kind, ones in changes.objects.items()})
    return ClusterState({kind: {key_of(kind, one): one for one in ones} for kind, ones in kinds.items()})


def _edits(changes: Changes, cluster_state: ClusterState) -> Iterator[Edit]:
    keys = list(changes.own_texts)[:_MAX_KEYS]
    values = [*list(changes.own_texts)[:_MAX_VALUES], *_VALUES]
    for key in keys:
        for status in _STATUSES:
            yield Edit(NODE, "condition", key, status)
    for name, amount in product(changes.resources, _AMOUNTS):
        yield Edit(NODE, "amount", name, amount)
    for kind, examples in changes.objects.items():
        yield from _field_edits(kind, examples, values)
    facets = [(kind, facet) for kind in cluster_state.objects for facet in ("label", "annotation")]
    facets.remove((RUNNING, "annotation"))  # a change of these is no event
    for (kind, facet), key, value in product([(NODE, "taint"), *facets], keys, values):
        yield Edit(kind, facet, key, value)


def _field_edits(kind: Kind, examples: Sequence[Any], values: Sequence[str]) -> Iterator[Edit]:
    """Other values for the fields of *examples*, and those that they have, so that a change can be taken back."""
    seen: set[tuple[str, Any]] = set()
    for example in examples[:_MAX_EXAMPLES]:
        for path, value in fields_of(plain_of(example)):
            if isinstance(value, bool):
                others: list[Any] = [not value]
            elif isinstance(value, str):
                others = list(values)
            else:
                others = [type(value)(other) for other in (0, 1, value + 1, value * 2)]
            for other in [value, *others]:
                if (path, other) not in seen:
                    seen.add((path, other))
                    yield Edit(kind, "field", path, other)


def _changes(cluster_state: ClusterState, edit: Edit) -> list[Change]:
    """What the edit does to the objects of the kind, leaving out those that it cannot be made in."""
    edited = ((one, edit.apply(one)) for one in cluster_state.objects[edit.kind].values())
    return [Change(edit.kind, old, new) for old, new in edited if new is not old]


def _edited(cluster_state: ClusterState, changes: Iterable[Change]) -> ClusterState:
    """The cluster after *changes*."""
    for change in changes:
        cluster_state = cluster_state.after(change)
    return cluster_state


def _answers_after(trial: Trial, edit: Edit, cluster_state: ClusterState, table: NodeTable) -> list[object]:
    """The answers in *cluster_state*, whose columns are in *table*, with the edit."""
    changes = _changes(cluster_state, edit)
    for change in changes:
        change.make_in(table)
    try:
        return _answers(trial, _edited(cluster_state, changes), table)
    finally:  # making the columns again for each of hundreds of edits takes longer than asking
        for change in changes:
            Change(change.kind, change.new, change.old).make_in(table)


def _answers(trial: Trial, cluster_state: ClusterState, table: NodeTable) -> list[object]:
    cluster_state.show(trial, table)
    columns = NodeColumns(table)
    return [_answer(trial, columns, pod) for pod in cluster_state.waiting.values()]


def _answer(trial: Trial, columns: NodeColumns, pod: Pod) -> object:
    try:
        if not trial.profile.score:
            return judge(trial, columns, pod)
        found = ask(trial, pod, columns, columns)
    except HookFailed as failed:
        return failed.problem
    if found is None:
        return None
    scores = () if found.scores is None else tuple(found.scores.tolist())
    return scores, tuple(map(comparable, found.statuses or ()))
