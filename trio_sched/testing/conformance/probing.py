"""Finds out which labels, annotations, taints and conditions a plugin reacts to, by trying the texts in its code.

Random changes of just these make it change its mind often enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product
from typing import Any, Final

from trio_sched.engine.hook_failure import HookFailed
from trio_sched.objects.pod import Pod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.changes import Changes, Edit
from trio_sched.testing.conformance.judgement import judge
from trio_sched.testing.conformance.results import ask, comparable
from trio_sched.testing.conformance.subject import Trial
from trio_sched.testing.conformance.world import NODE, RUNNING, WAITING, Change, World, key_of

_MAX_KEYS: Final = 16
_MAX_VALUES: Final = 10
_MAX_PODS: Final = 3
_VALUES: Final = ("true", "1", "100")
_STATUSES: Final = ("True", "False", "Unknown")
_MAX_EFFECTIVE: Final = 40


def find_effective(trial: Trial, changes: Changes) -> list[Edit]:
    """The edits to which the plugin of *trial* reacts in a small cluster."""
    world = _world(changes)
    before = _answers(trial, world)
    found = (edit for edit in _edits(changes, world) if _answers(trial, _edited(world, edit)) != before)
    return list(islice(found, _MAX_EFFECTIVE))


def _world(changes: Changes) -> World:
    """Two nodes with a pod, a few pending pods, and all other objects."""
    nodes = list(changes.nodes)[:2]
    running = [one for one in changes.running if one.node_name in {node.name for node in nodes}][:2]
    step = max(1, len(changes.waiting) // _MAX_PODS)
    kinds: dict[str, list[Any]] = {NODE: nodes, RUNNING: running, WAITING: list(changes.waiting)[::step][:_MAX_PODS]}
    kinds.update({kind: list(ones) for kind, ones in changes.objects.items()})
    return World({kind: {key_of(kind, one): one for one in ones} for kind, ones in kinds.items()})


def _edits(changes: Changes, world: World) -> Iterator[Edit]:
    keys = list(changes.own_texts)[:_MAX_KEYS]
    values = [*list(changes.own_texts)[:_MAX_VALUES], *_VALUES]
    for key in keys:
        for status in _STATUSES:
            yield Edit(NODE, "condition", key, status)
    facets = [(kind, facet) for kind in world.objects for facet in ("label", "annotation")]
    for (kind, facet), key, value in product([(NODE, "taint"), *facets], keys, values):
        yield Edit(kind, facet, key, value)


def _edited(world: World, edit: Edit) -> World:
    """Every object of the kind with the edit."""
    for one in list(world.objects[edit.kind].values()):
        if hasattr(one, "__struct_fields__"):
            world = world.after(Change(edit.kind, one, edit.apply(one)))
    return world


def _answers(trial: Trial, world: World) -> list[object]:
    columns = NodeColumns(world.show(trial))
    return [_answer(trial, columns, pod) for pod in world.waiting.values()]


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
