"""Turns required and preferred labels of nodes into the ``addedAffinity`` of NodeAffinity."""

from collections.abc import Sequence
from typing import Any, Final

from trio_sched.config.legacy.profile_draft import ProfileDraft

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_MAX_WEIGHT: Final = 100


def require_labels(draft: ProfileDraft, present: Sequence[str], absent: Sequence[str]) -> None:
    """Let only nodes pass that have the labels *present* and lack those *absent*, with whatever value."""
    expressions = [*(_expression(label, "Exists") for label in present)]
    expressions += [_expression(label, "DoesNotExist") for label in absent]
    if not expressions:
        return
    affinity = draft.arguments_of("NodeAffinity").setdefault("addedAffinity", {})
    terms = affinity.setdefault(_REQUIRED, {}).setdefault("nodeSelectorTerms", [])
    terms[:] = [term or {} for term in terms] or [{}]
    # Terms are alternatives, so every one of them has to require the labels.
    for term in terms:
        known = term.setdefault("matchExpressions", [])
        known += [expression for expression in expressions if expression not in known]


def prefer_labels(draft: ProfileDraft, present: Sequence[str], absent: Sequence[str], weight: int) -> None:
    """Prefer nodes that have the labels *present* and lack those *absent*, each of them for *weight*."""
    wishes = [*(_expression(label, "Exists") for label in present)]
    wishes += [_expression(label, "DoesNotExist") for label in absent]
    if not wishes:
        return
    affinity = draft.arguments_of("NodeAffinity").setdefault("addedAffinity", {})
    terms = affinity.setdefault(_PREFERRED, [])
    terms += [
        {"weight": min(max(weight, 1), _MAX_WEIGHT), "preference": {"matchExpressions": [wish]}} for wish in wishes
    ]


def _expression(label: str, operator: str) -> dict[str, Any]:
    return {"key": label, "operator": operator}
