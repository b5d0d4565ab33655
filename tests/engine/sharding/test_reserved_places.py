"""What is noted about the place of a nominated pod, and who decides on it then."""

import pytest
from msgspec import structs

from trio_sched.engine.sharding.owned_shards import OwnedShards
from trio_sched.engine.sharding.ownership import LANE, shard_of
from trio_sched.engine.sharding.reserved_places import (
    ASKED_FOR_GROUP,
    KEPT_FOR_GROUP,
    MAY_PREEMPT,
    MAY_PREEMPT_FOR_GROUP,
    PLACE_RESERVED,
    PREEMPTING,
    PREEMPTING_FOR_GROUP,
    TAKEN_BACK,
    is_asked_for_group,
    is_kept_for_group,
    is_reserved,
    may_preempt,
)
from trio_sched.objects.pod import Pod, PodCondition
from trio_sched.testing import pod


def noted(reason: str, node: str) -> Pod:
    found = pod("p", uid="a")
    condition = PodCondition(type=PLACE_RESERVED, reason=reason)
    status = structs.replace(found.status, nominated_node_name=node, conditions=(condition,))
    return structs.replace(found, status=status)


@pytest.mark.parametrize(
    ("reason", "node", "expected"),
    [
        (MAY_PREEMPT, "n", (True, False)),
        (PREEMPTING, "n", (True, True)),
        (TAKEN_BACK, "n", (False, False)),
        (PREEMPTING, "", (False, False)),
    ],
)
def test_a_note_holds_for_a_nominated_pod(reason: str, node: str, expected: tuple[bool, bool]) -> None:
    found = noted(reason, node)
    assert (may_preempt(found), is_reserved(found)) == expected


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (ASKED_FOR_GROUP, (True, False)),
        (KEPT_FOR_GROUP, (False, True)),
        (PREEMPTING, (False, False)),
        (PREEMPTING_FOR_GROUP, (False, False)),
    ],
)
def test_a_place_for_a_group_is_asked_for_or_kept_by_the_owner_of_the_node(
    reason: str, expected: tuple[bool, bool]
) -> None:
    found = noted(reason, "n")
    assert (is_asked_for_group(found), is_kept_for_group(found)) == expected
    in_group = structs.replace(found, spec=pod("p", group="group").spec)
    owner, lane = (OwnedShards(shards=2, ready=frozenset({shard})) for shard in (1, LANE))
    there = structs.replace(in_group, status=structs.replace(found.status, nominated_node_name=_of_shard(1)))
    asked_of = [(one.is_asked_for_group(there), one.keeps_for_group(there)) for one in (owner, lane)]
    assert asked_of == [expected, (False, False)]
    assert [one.wants(there) for one in (owner, lane)] == [expected[1], True]
    owner.has_groups = False
    assert not owner.is_asked_for_group(there)


@pytest.mark.parametrize(
    ("reason", "is_asked", "is_nominated"),
    [
        (MAY_PREEMPT_FOR_GROUP, True, True),
        (PREEMPTING_FOR_GROUP, False, True),
        (ASKED_FOR_GROUP, False, True),
        (KEPT_FOR_GROUP, False, False),
        (PREEMPTING, False, False),
    ],
)
def test_a_place_that_a_group_has_once_others_are_evicted_counts_as_a_nomination(
    reason: str, is_asked: bool, is_nominated: bool
) -> None:
    found = noted(reason, _of_shard(1))
    found = structs.replace(found, spec=pod("p", group="group").spec)
    owner, lane = (OwnedShards(shards=2, ready=frozenset({shard})) for shard in (1, LANE))
    answers = [(one.is_asked_to_preempt_for_group(found), one.is_nominated_for_group(found)) for one in (owner, lane)]
    assert answers == [(is_asked, is_nominated), (False, False)]


def _of_shard(shard: int) -> str:
    return next(name for name in (f"n{number}" for number in range(20)) if shard_of(name, 2) == shard)


def test_whoever_decides_on_a_pod_leaves_it_to_the_owner_who_keeps_a_place_for_it() -> None:
    decider = shard_of("a", 2)
    names = [f"n{number}" for number in range(20)]
    own, other = (next(name for name in names if shard_of(name, 2) == shard) for shard in (decider, 1 - decider))
    owned = OwnedShards(shards=2, ready=frozenset({decider}))
    found = [
        (node == other, reason, owned.has_place_elsewhere(noted(reason, node)))
        for node in (own, other)
        for reason in (MAY_PREEMPT, PREEMPTING)
    ]
    assert found == [
        (False, MAY_PREEMPT, False),
        (False, PREEMPTING, False),
        (True, MAY_PREEMPT, False),
        (True, PREEMPTING, True),
    ]
