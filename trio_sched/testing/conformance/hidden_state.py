"""Checks that answers depend on nothing but what the hooks are given: no wall clock, chance, or former calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import msgspec
import numpy as np
from attrs import evolve

from trio_sched.engine.evaluation.filtering import run_pre_filters
from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.engine.hooks.plugin_calls import call_normalize_score, call_queue_sort, call_status_hook
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.cycle_state import CycleState
from trio_sched.plugin_api.verdicts import QueuedPod
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing.conformance.results import ask, comparable
from trio_sched.testing.conformance.shifted_time import namespaces_of, shifted_time
from trio_sched.testing.conformance.subject import Cluster, Subject, Trial

_SHIFTS: Final = (1, 61, 5 * 3600 + 61, 13 * 3600 + 1, 86_400 * 3 + 7, 86_400 * 200 + 7 * 3600)
"""Seconds; another minute, hour, day of the week and season, each odd or even."""

S = TypeVar("S", bound=msgspec.Struct)
Answers = dict[str, tuple[object, ...]]
"""By pod: what every hook has answered, to be compared."""


def hidden_state_problems(subject: Subject) -> Iterator[str]:
    """On what else the answers depend."""
    trial = subject.fresh()
    namespaces = namespaces_of(trial.plugin)

    def answers(
        shift: float = 0.0, seed: int = 0, order: int = 1, *, again: Trial | None = None, of: Subject = subject
    ) -> Answers:
        with shifted_time(shift, namespaces) as clock, _random_state_kept():

            def start() -> None:
                """What a pod is told depends on nothing that was asked before."""
                clock.reset()
                random.seed(seed)
                np.random.seed(seed)

            return _answers(of.fresh() if again is None else again, of, of.pods[::order], start)

    first = answers(again=trial)
    other = _differing(first, answers(again=trial)) or _differing(first, answers(order=-1, again=trial))
    if not subject.is_instance and (found := _differing(first, answers(of=_copied(subject)))):
        yield (
            f"{found}: another instance of the plugin answers otherwise, though everything is the same: results must "
            "follow from the arguments of the hook, the handle and the state of the cycle"
        )
        return
    if other:
        yield (
            f"{other}: asked again, the same instance answers otherwise, though everything is the same: what a hook "
            "keeps for later belongs into the CycleState, or must follow from nodes, pods and objects"
        )
        return
    if found := _differing(first, answers(seed=1, again=trial)):
        yield f"{found}: the answer depends on the module random, or numpy's: take handle.rng, which tests can seed"
    for shift in _SHIFTS:
        if found := _differing(first, answers(shift=shift, again=trial)):
            yield (
                f"{found}: the answer depends on the time of day or another clock of Python, which tests cannot set: "
                "take handle.now() or, to compare with times in objects, handle.wall_seconds()"
            )
            return


def _copied(subject: Subject) -> Subject:
    """*subject* with equal pods and nodes that are other objects."""
    pods = tuple(_copy(one) for one in subject.pods)
    nodes = tuple(_copy(one) for one in subject.cluster.nodes)
    return evolve(subject, pods=pods, cluster=Cluster(nodes, tuple(_copy(one) for one in subject.cluster.running)))


def _copy(one: S) -> S:
    """An equal object."""
    return msgspec.json.decode(msgspec.json.encode(one), type=type(one))


def _answers(trial: Trial, subject: Subject, pods: Sequence[Pod], start: Callable[[], None]) -> Answers:
    columns = NodeColumns(trial.show(subject.cluster))
    found: Answers = {}
    for pod in pods:
        start()
        try:
            found[pod.key] = _answers_about(trial, columns, pod)
        except HookFailed as failed:
            found[pod.key] = ("failed", failed.hook.hook, failed.problem)
    return found


def _answers_about(trial: Trial, columns: NodeColumns, pod: Pod) -> tuple[object, ...]:
    profile = trial.profile
    trial.reset_random()
    gates = tuple(comparable(call_status_hook(hook, pod)) for hook in profile.pre_enqueue)
    keys = tuple(repr(call_queue_sort(hook, QueuedPod(pod, 0.0))) for hook in profile.queue_sort)
    results = ask(trial, pod, columns, columns)
    if results is None:
        state = CycleState()
        trial.reset_random()
        rejected = run_pre_filters(profile.pre_filter, pod, columns, state).rejected
        return gates, keys, comparable(rejected)
    statuses = tuple(comparable(status) for status in results.statuses or ())
    if results.scores is None:
        return gates, keys, statuses
    scores = results.scores.copy()
    (scorer,) = profile.score
    if scorer.normalize is not None:
        state = CycleState()
        trial.reset_random()
        run_pre_filters(profile.pre_filter, pod, columns, state)
        scores = call_normalize_score(scorer, pod, scores, state)
    return gates, keys, statuses, tuple(results.scores.tolist()), tuple(scores.tolist())


def _differing(a: Answers, b: Answers) -> str:
    """The first pod about which the answers differ, empty if there is none."""
    return next((f"pod {key!r}" for key in a if a[key] != b.get(key)), "")


@contextmanager
def _random_state_kept() -> Iterator[None]:
    """What is done in the block to the modules for random numbers does not last."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)
