"""Converts a scheduling policy: predicates, priorities and extenders."""

from collections.abc import Mapping, Sequence
from typing import Any

from trio_sched.config.legacy.changes import Changes
from trio_sched.config.legacy.policy_shape import read_policy
from trio_sched.config.legacy.predicates import apply_predicates
from trio_sched.config.legacy.priorities import apply_priorities
from trio_sched.config.legacy.profile_draft import ESSENTIAL, ProfileDraft
from trio_sched.config.legacy.values import values_of


def policy_into(drafts: Sequence[ProfileDraft], text: str, changes: Changes) -> list[dict[str, Any]]:
    """Apply the policy in *text* to every one of *drafts*, and return its extenders in v1.

    Raises:
        ConfigError: *text* is no policy. What cannot be converted is a problem in *changes*.
    """
    policy = read_policy(text)
    for draft in drafts:
        for point, plugin in ESSENTIAL.items():
            draft.enable(point, plugin)
        apply_predicates(policy.get("predicates"), draft, changes)
        apply_priorities(policy.get("priorities"), draft, changes)
        draft.follow_points()
        draft.sort_points()
        if weight := policy.get("hardPodAffinitySymmetricWeight", 0):
            draft.arguments_of("InterPodAffinity")["hardPodAffinityWeight"] = weight
            changes.note("hardPodAffinitySymmetricWeight", "now hardPodAffinityWeight of InterPodAffinityArgs")
    if policy.get("alwaysCheckAllPredicates"):
        what = "gone: a node is told why by the first plugin that refuses it; which nodes fit is the same"
        changes.note("alwaysCheckAllPredicates", what)
    extenders = [_extender(extender or {}) for extender in policy.get("extenders") or ()]
    if extenders:
        changes.note("extenders", "now with the field names of v1, and httpTimeout as a duration like 5s")
    return extenders


def _extender(given: Mapping[str, Any]) -> dict[str, Any]:
    extender = dict(given)
    if "managedResources" in extender:
        extender["managedResources"] = list(extender["managedResources"])
    if "tlsConfig" in extender:
        extender["tlsConfig"] = values_of(extender["tlsConfig"])
    return extender
