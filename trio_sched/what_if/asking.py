"""Asks what would become of a cluster: it is simulated until it rests, changed, and simulated until it rests again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.simulation.outcome import Outcome
from trio_sched.simulation.report.sections import Section
from trio_sched.simulation.simulated_run import Count, Plan, RunningCluster, run_plan
from trio_sched.simulator.storage.object_store import ObjectStore
from trio_sched.what_if.answer import Answer, counted_effects, effect_sections
from trio_sched.what_if.cluster_changes import ClusterChanges, changes_of
from trio_sched.what_if.effects import Effect, PodState, effects_of, pod_states

_ROWS: Final = 50
"""The rows that a table has at most, unless all are asked for."""


@define(eq=False, kw_only=True)
class Action(ABC):
    """A change of the cluster; what it does, and what it has to say of it."""

    question: str
    effects: Sequence[Effect] = field(factory=list, init=False)
    """What has become of pods, once it is over."""

    @abstractmethod
    async def change(self, changes: ClusterChanges) -> None:
        """Change the cluster.

        Raises:
            TrioSchedError: it cannot be changed so.
        """

    def problems(self) -> Iterator[str]:
        """Sentences that say what does not work, besides pods that lose their place."""
        yield from ()

    def remarks(self) -> Iterator[str]:
        """Sentences that say what else is to be known."""
        yield from ()

    def sections(self) -> Iterator[Section]:
        """What only answers of this kind have."""
        yield from ()

    def commands(self) -> Iterator[str]:
        """What does the same to the cluster itself."""
        yield from ()


def ask(plan: Plan, action: Action, progress: Count, *, every_pod: bool = False, all_rows: bool = False) -> Answer:
    """What would become of the cluster of *plan*.

    Args:
        plan: the cluster, and the scheduler.
        action: changes it.
        progress: is told how many pods have been decided on.
        every_pod: whether tables list each pod.
        all_rows: whether tables have all rows, however many.

    Raises:
        ManifestError: an object is refused.
        TrioSchedError: the daemon cannot run so, or the cluster cannot be changed so; possibly in an exception group.
    """
    asked = _Asked(action)
    outcome = run_plan(evolve(plan, change=asked.change, inspect=asked.inspect), progress)
    assert asked.first is not None
    action.effects = effects_of(asked.before, asked.after, outcome)
    problems = [*action.problems(), *_unrest(asked.first, outcome)]
    most_rows = None if all_rows else _ROWS
    sections = effect_sections(action.effects, asked.first, outcome, every_pod=every_pod, most_rows=most_rows)
    counted = list(counted_effects(action.effects))
    return Answer(
        question=action.question,
        works=not problems and not any(one.is_lost for one in action.effects),
        sentences=(*(counted or ["no pod would be elsewhere"]), *problems, *action.remarks()),
        sections=(*action.sections(), *sections),
        commands=tuple(action.commands()),
    )


def _unrest(before: Outcome, after: Outcome) -> Iterator[str]:
    if not before.settled:
        yield "the cluster does not come to rest by itself, before it is changed; not all of this need come of that"
    elif not after.settled:
        yield "the cluster does not come to rest afterwards"


@define(eq=False)
class _Asked:
    action: Action
    before: Mapping[str, PodState] = field(factory=dict)
    after: Mapping[str, PodState] = field(factory=dict)
    first: Outcome | None = None

    async def change(self, running: RunningCluster) -> None:
        self.first = running.outcome()
        self.before = pod_states(running.server.store)
        async with changes_of(running) as changes:
            await self.action.change(changes)

    async def inspect(self, store: ObjectStore, _assembly: Assembly, _now: datetime) -> None:
        self.after = pod_states(store)
