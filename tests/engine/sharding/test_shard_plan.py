"""Which shards a replica takes and gives back."""

from trio_sched.engine.sharding.shard_plan import SeenLease, ShardPlan, plan_shards

RELEASED = SeenLease("", is_valid=False)


def held(by: str) -> SeenLease:
    return SeenLease(by, is_valid=True)


def test_a_replica_alone_takes_all_that_nobody_holds() -> None:
    plan = plan_shards({1: RELEASED, 2: SeenLease("dead", is_valid=False)}, [], "a", ["a"], 4)
    assert plan == ShardPlan(take=(0, 1, 2, 3), give_back=())


def test_what_another_holds_is_not_taken_while_its_lease_is_valid() -> None:
    assert plan_shards({0: held("b"), 1: held("b")}, [], "a", ["a", "b"], 4).take == (2, 3)


def test_a_replica_takes_its_share_at_most() -> None:
    assert plan_shards({}, [], "a", ["a", "b", "c"], 4).take == (0, 1)
    assert plan_shards({0: held("a")}, [0], "a", ["a", "b", "c"], 4).take == (1,)


def test_what_is_more_than_the_share_is_given_back_and_the_lane_last() -> None:
    leases = {shard: held("a") for shard in range(4)}
    assert plan_shards(leases, [0, 1, 2, 3], "a", ["a", "b"], 4).give_back == (2, 3)


def test_one_is_given_back_to_a_replica_that_has_two_less() -> None:
    leases = {0: held("a"), 1: held("a"), 2: held("b"), 3: held("b")}
    assert plan_shards(leases, [0, 1], "a", ["a", "b", "c"], 4) == ShardPlan(take=(), give_back=(1,))


def test_nothing_is_given_back_where_the_others_have_one_less_at_most() -> None:
    leases = {0: held("a"), 1: held("b"), 2: held("c"), 3: held("a")}
    assert plan_shards(leases, [0, 3], "a", ["a", "b", "c"], 4) == ShardPlan(take=(), give_back=())
    assert plan_shards({0: held("a")}, [0], "a", ["a", "b"], 1) == ShardPlan(take=(), give_back=())


def test_nothing_is_given_back_while_something_is_free() -> None:
    leases = {0: held("a"), 1: held("a"), 2: held("b"), 3: RELEASED}
    assert plan_shards(leases, [0, 1], "a", ["a", "b", "c"], 4).give_back == ()
