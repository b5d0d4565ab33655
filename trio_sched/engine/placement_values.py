"""Reads what the hooks about pod groups returned; see `trio_sched.engine.return_values`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from trio_sched.engine.bound_hooks import BoundHook, ScoreHook
from trio_sched.engine.hook_failure import HookFailed, describe_value, plain_text, wrong_return_value
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.pod_groups import Placement
from trio_sched.snapshot.arrays import Int64Array

MAX_PLACEMENTS: Final = 100_000
_MAX_SCORE: Final = 100


def read_placements(hook: BoundHook, elements: Sequence[Any], nodes: int) -> tuple[Placement, ...]:
    """What placement_generate returned; a placement with as many names as there are *nodes* has all of them.

    Raises:
        HookFailed: it is something else.
    """
    if len(elements) > MAX_PLACEMENTS:
        raise wrong_return_value(hook, elements, f"more than {MAX_PLACEMENTS} placements")
    placements = []
    for element in elements:
        if type(element) is not Placement:
            raise wrong_return_value(hook, elements, f"{describe_value(element)} among its placements")
        name, node_names = element.name, element.node_names
        if type(name) is not str or plain_text(name) != name:
            raise wrong_return_value(hook, elements, "a Placement whose name is no text that can be sent")
        if node_names is not None and (
            type(node_names) is not frozenset or not node_names or any(type(one) is not str for one in node_names)
        ):
            problem = f"a Placement whose node_names are {describe_value(node_names)}"
            raise wrong_return_value(hook, elements, problem, "give a frozenset of names that is not empty, or None")
        placements.append(element if node_names is None or len(node_names) < nodes else Placement(name))
    return tuple(placements)


def read_victims(hook: BoundHook, victims: Iterable[Any]) -> tuple[Pod, ...]:
    """What pod_group_post_filter returned.

    Raises:
        HookFailed: it is something else than pods.
    """
    pods = []
    for victim in victims:
        if not isinstance(victim, Pod):
            raise wrong_return_value(hook, victims, f"{describe_value(victim)} among its victims")
        pods.append(victim)
    return tuple(pods)


def check_placement_score_range(hook: ScoreHook, scores: Int64Array) -> None:
    """Scores are 0..100 once normalised.

    Raises:
        HookFailed: one is not.
    """
    for score in scores.tolist():
        if not 0 <= score <= _MAX_SCORE:
            raise HookFailed(
                hook,
                f'plugin "{hook.plugin}" returns an invalid score {score}, '
                f"it should in the range of [0, {_MAX_SCORE}] after normalizing",
                prefix="applying score defaultWeights on PlacementScore plugins: ",
            )
