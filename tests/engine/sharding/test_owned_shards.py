"""Which nodes and pods are this process's own, and what it says that it has seen."""

from trio_sched.engine.sharding.owned_shards import OwnedShards, all_have_seen
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.objects.pod import Pod
from trio_sched.testing import pod, pod_anti_affinity, pod_term

SHARDS = 4


def node_of(owned: OwnedShards, shard: int) -> str:
    return next(f"n{n}" for n in range(1000) if owned.of_node(f"n{n}") == shard)


def local_pod(owned: OwnedShards, shard: int, **details: str) -> Pod:
    pods = (pod(f"p{n}", uid=f"u{n}", **details) for n in range(1000))  # type: ignore[arg-type]
    return next(one for one in pods if owned.decider(one) == shard)


def test_a_process_wants_pods_of_its_shards_and_pods_that_are_nominated_to_its_nodes() -> None:
    owned = OwnedShards(shards=SHARDS)
    own, other = local_pod(owned, 1), local_pod(owned, 2)
    assert not owned.wants(own)
    owned.ready = frozenset({1})
    assert owned.wants(own)
    assert owned.decides_on(own)
    assert not owned.wants(other)
    nominated = local_pod(owned, 2, nominated_node_name=node_of(owned, 1))
    assert owned.wants(nominated)
    assert owned.is_proposed(nominated)
    assert not owned.wants(local_pod(owned, 2, nominated_node_name=node_of(owned, 3)))
    assert not owned.is_proposed(local_pod(owned, 1, nominated_node_name=node_of(owned, 1)))


def test_a_pod_that_repels_others_is_wanted_once_all_have_seen_what() -> None:
    owned = OwnedShards(shards=SHARDS, ready=frozenset({LANE}))
    one = pod("one", affinity=pod_anti_affinity(pod_term("app=b")))
    owned.terms.add(one, 3)
    assert not owned.wants(one)
    owned.terms.agree(owned.terms.open().items())
    assert owned.wants(one)


def test_what_is_acknowledged_was_seen_by_every_decision_without_an_end() -> None:
    owned = OwnedShards(shards=SHARDS, ready=frozenset({1, 2}), seen=10)
    first, second = local_pod(owned, 1), local_pod(owned, 2)
    owned.began(first, node_of(owned, 2))
    owned.seen = 20
    owned.began(second, node_of(owned, 3))
    owned.seen = 30
    assert owned.acknowledged == 10
    assert not owned.is_drained(1)
    assert not owned.is_drained(2)
    assert owned.is_drained(3)  # the node of another process
    owned.ended(first.uid)
    assert owned.acknowledged == 20
    assert owned.is_drained(1)
    owned.ended(second.uid)
    assert owned.acknowledged == 30


def test_all_have_seen_what_the_holder_of_every_shard_has_acknowledged() -> None:
    assert all_have_seen(5, [5, 6])
    assert not all_have_seen(5, [4, 6])
    assert not all_have_seen(5, [5, None])


def test_a_nomination_is_taken_back_until_that_is_seen_and_by_the_last_of_several_writes() -> None:
    owned = OwnedShards(shards=2, seen=10)
    owned.takes_back("p")
    owned.takes_back("p")
    owned.has_taken_back("p", 12)
    assert owned.is_taken_back("p", 13)  # the other write may still do so
    owned.has_taken_back("p", 0)
    assert [owned.is_taken_back("p", revision) for revision in (11, 12)] == [True, False]
    owned.forget_seen()
    assert owned.is_taken_back("p", 11)
    owned.seen = 12
    owned.forget_seen()
    assert not owned.is_taken_back("p", 11)
