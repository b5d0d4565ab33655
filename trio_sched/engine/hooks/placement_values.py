"""Reads what the hooks about pod groups returned; see `trio_sched.engine.hooks.return_values`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice
from typing import Any, Final

from trio_sched.engine.hooks.bound_hooks import BoundHook, ScoreHook
from trio_sched.engine.hooks.hook_failure import HookFailed, describe_value, plain_text, wrong_return_value
from trio_sched.go.text import quote
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.pod_groups import Placement, PodGroupPostFilterResult
from trio_sched.plugin_api.verdicts import MAX_SCORE
from trio_sched.snapshot.arrays import Int64Array

MAX_PLACEMENTS: Final = 100_000
MAX_VICTIMS: Final = 1_000_000


def read_placements(hook: BoundHook, elements: Sequence[Any], nodes: Collection[str]) -> tuple[Placement, ...]:
    """What placement_generate returned; a placement with the names of all *nodes* becomes one without names.

    Raises:
        HookFailed: it is something else.
    """
    if len(elements) > MAX_PLACEMENTS:
        raise wrong_return_value(hook, elements, f"more than {MAX_PLACEMENTS} placements")
    placements = []
    for element in elements:
        if type(element) is not Placement:
            raise wrong_return_value(hook, elements, f"{describe_value(element)} among its placements")
        try:
            name, node_names = element.name, element.node_names
        except AttributeError:
            raise wrong_return_value(hook, elements, "a Placement without name or node_names") from None
        if type(name) is not str or plain_text(name) != name:
            raise wrong_return_value(hook, elements, "a Placement whose name is no text that can be sent")
        if node_names is not None and (
            type(node_names) is not frozenset or not node_names or any(type(one) is not str for one in node_names)
        ):
            problem = f"a Placement whose node_names are {describe_value(node_names)}"
            raise wrong_return_value(hook, elements, problem, "give a frozenset of names that is not empty, or None")
        has_all = node_names is not None and len(node_names) >= len(nodes) and node_names.issuperset(nodes)
        placements.append(Placement(name) if has_all else element)
    return tuple(placements)


def read_victims(hook: BoundHook, victims: Sequence[Any]) -> tuple[Pod, ...]:
    """What pod_group_post_filter returned.

    Raises:
        HookFailed: it is something else than pods.
    """
    if len(victims) > MAX_VICTIMS:
        raise wrong_return_value(hook, victims, f"more than {MAX_VICTIMS} victims")
    pods = []
    for victim in victims:
        if not isinstance(victim, Pod):
            raise wrong_return_value(hook, victims, f"{describe_value(victim)} among its victims")
        pods.append(victim)
    return tuple(pods)


def read_pod_group_post_filter(hook: BoundHook, returned: PodGroupPostFilterResult) -> PodGroupPostFilterResult:
    """*returned* with its fields as they have to be.

    Raises:
        HookFailed: they are something else.
    """
    try:
        victims, message = list(islice(returned.victims, MAX_VICTIMS + 1)), returned.message
    except (AttributeError, TypeError):
        raise wrong_return_value(hook, returned, "a PodGroupPostFilterResult without victims or message") from None
    if not issubclass(type(message), str):
        problem = f"a PodGroupPostFilterResult whose message is {describe_value(message)}"
        raise wrong_return_value(hook, returned, problem, "give a text, or none")
    counts = []
    for name in ("pdb_violations", "group_disruptions"):
        count = getattr(returned, name)
        if type(count) is not int or not 0 <= count <= MAX_VICTIMS:
            problem = f"a PodGroupPostFilterResult whose {name} is {describe_value(count)}"
            raise wrong_return_value(hook, returned, problem, f"give a number from 0 to {MAX_VICTIMS}")
        counts.append(count)
    return PodGroupPostFilterResult(read_victims(hook, victims), plain_text(message), *counts)


def check_placement_score_range(hook: ScoreHook, scores: Int64Array) -> None:
    """Scores are 0..100 once normalised.

    Raises:
        HookFailed: one is not.
    """
    for score in scores.tolist():
        if not 0 <= score <= MAX_SCORE:
            raise HookFailed(
                hook,
                f"plugin {quote(hook.plugin)} returns an invalid score {score}, "
                f"it should in the range of [0, {MAX_SCORE}] after normalizing",
                prefix="applying score defaultWeights on PlacementScore plugins: ",
            )
