"""Checks that hooks change nothing that belongs to others: columns, objects, former answers, the state of the cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from inspect import isawaitable
from typing import Any, Final

import attrs
import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import as_json
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.verdicts import Verdicts
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.testing.conformance.description import differences
from trio_sched.testing.conformance.hooks import drive
from trio_sched.testing.conformance.subject import Subject, Trial

_FOREIGN_KEY: Final = ("another plugin", "value")
_FOREIGN_VALUE: Final = ("of another plugin",)


def mutation_problems(subject: Subject) -> Iterator[str]:
    """What a hook has changed that it does not own."""
    trial = subject.fresh()
    table = trial.show(subject.cluster)
    watch = _Watch(trial, table)
    for hook in trial.profile.hooks:
        hook.function = partial(watch.call, hook, hook.function)
    for waiting in subject.pods:
        watch.waiting = waiting
        drive(trial, NodeColumns(table), waiting)
        watch.look("one of its hooks")
    yield from watch.problems


@define(eq=False)
class _Watch:
    """Compares everything before and after each call of a hook."""

    trial: Trial
    table: NodeTable
    problems: dict[str, None] = field(factory=dict, init=False)
    """Sentences, in the order in which they were found."""
    waiting: Pod | None = field(default=None, init=False)
    _columns: dict[str, NDArray[Any]] = field(factory=dict, init=False)
    _objects: dict[str, tuple[Any, bytes]] = field(factory=dict, init=False)
    _answers: dict[str, tuple[NDArray[Any], NDArray[Any]]] = field(factory=dict, init=False)
    """By hook: the array that it returned last, and a copy of it."""

    def call(self, hook: BoundHook, function: Callable[..., Any], *args: Any) -> Any:
        """Call *hook*, and note what it has changed."""
        self._remember(args)
        states = [one for one in args if isinstance(one, CycleState)]
        before = [_of_scheduler(state) for state in states]
        for state in states:
            if state.get(_FOREIGN_KEY) is None:
                state.write(_FOREIGN_KEY, list(_FOREIGN_VALUE))
        answer = function(*args)
        if isawaitable(answer):
            return answer  # looked at when the pod is done
        self.look(hook.hook)
        for state, was in zip(states, before, strict=True):
            self._look_at_state(hook, state, was)
        array = answer.codes if isinstance(answer, Verdicts) else answer
        if isinstance(array, np.ndarray):
            self._answers[hook.hook] = array, array.copy()
        return answer

    def _remember(self, args: tuple[Any, ...]) -> None:
        views = self.table.views
        self._columns = {a.name: getattr(views, a.name).copy() for a in attrs.fields(type(views))}
        named: dict[str, Any] = {f"node {node.name!r}": node for node in self.table.nodes}
        for pods in self.table.pods:
            named.update({f"pod {info.pod.key!r}": info.pod for info in pods.values()})
        for kind, objects in self.trial.handle.known_objects.items():
            named.update({f"{kind} {_name(one)!r}": one for one in objects})
        named.update({f"pod {one.key!r}": one for one in args if isinstance(one, Pod)})
        if self.waiting is not None:
            named[f"pod {self.waiting.key!r}"] = self.waiting
        self._objects = {name: (one, as_json(one)) for name, one in named.items()}

    def look(self, who: str) -> None:
        """Compare with what was remembered; *who* may have changed it."""
        views = self.table.views
        changed = [name for name, was in self._columns.items() if not np.array_equal(getattr(views, name), was)]
        if changed:
            self._note(f"{who} wrote to the columns {', '.join(changed)}, which belong to everybody: work on a copy")
        for name, (one, was) in self._objects.items():
            if as_json(one) != was:
                self._note(
                    f"{who} changed {name}, which everybody shares: {_first(differences(was, as_json(one)))}; "
                    "objects are read-only, replace_fields() makes a changed copy"
                )
        for hook, (array, copied) in self._answers.items():
            if not np.array_equal(array, copied):
                self._note(f"{who} overwrote the array that {hook} had returned before: return a new one every time")
        self._answers = {hook: (array, array.copy()) for hook, (array, _was) in self._answers.items()}
        self._remember(())

    def _look_at_state(self, hook: BoundHook, state: CycleState, was: tuple[frozenset[str], ...]) -> None:
        if state.get(_FOREIGN_KEY) != list(_FOREIGN_VALUE):
            self._note(f"{hook.hook} changed a value of another plugin in the CycleState: write under keys of your own")
        now = _of_scheduler(state)
        if now[:2] != was[:2] or (now[2] ^ was[2]) - {hook.plugin}:
            self._note(
                f"{hook.hook} changed skip_filter, skip_score or zero_scores of the CycleState: return SKIP, "
                "or add your own name to zero_scores"
            )

    def _note(self, problem: str) -> None:
        where = "" if self.waiting is None else f"pod {self.waiting.name!r}: "
        if not any(known.endswith(problem) for known in self.problems):
            self.problems[where + problem] = None


def _of_scheduler(state: CycleState) -> tuple[frozenset[str], ...]:
    return state.skip_filter, state.skip_score, state.zero_scores


def _name(one: Any) -> str:
    metadata = getattr(one, "metadata", None)
    return str(getattr(metadata, "name", type(one).__name__))


def _first(found: list[str]) -> str:
    return found[0] if found else "it is written in another order"
