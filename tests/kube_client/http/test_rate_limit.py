from random import Random

import pytest
import trio
from trio.testing import MockClock

from trio_sched.kube_client.http.rate_limit import TokenBucket


async def test_a_burst_is_free_and_the_rest_is_spread_in_order(autojump_clock: MockClock) -> None:
    bucket = TokenBucket(qps=10, burst=3)
    start = trio.current_time()
    spent: list[tuple[int, float]] = []

    async def spend(number: int) -> None:
        await bucket.take()
        spent.append((number, round(trio.current_time() - start, 3)))

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(spend, number)
            await trio.lowlevel.checkpoint()
    assert [time for _, time in sorted(spent)] == [0, 0, 0, 0.1, 0.2, 0.3]


async def test_the_bucket_fills_up_but_not_over(autojump_clock: MockClock) -> None:
    bucket = TokenBucket(qps=10, burst=2)
    await bucket.take()
    await bucket.take()
    await trio.sleep(60)
    assert [round(bucket.reserve(trio.current_time()), 3) for _ in range(3)] == [0, 0, 0.1]


async def test_a_cancelled_wait_leaves_its_token_to_others(autojump_clock: MockClock) -> None:
    bucket = TokenBucket(qps=1, burst=1)
    bucket.reserve(trio.current_time())
    with trio.move_on_after(0.5):
        await bucket.take()
    assert await bucket.take() == pytest.approx(0.5)


def test_a_negative_rate_is_no_limit() -> None:
    bucket = TokenBucket(qps=-1, burst=1)
    assert {bucket.reserve(0.0) for _ in range(1000)} == {0.0}


@pytest.mark.parametrize("cancelled", [{0}, {1}, {0, 1, 2}, {4, 5}, {5}])
async def test_cancelled_waits_delay_nobody(autojump_clock: MockClock, cancelled: set[int]) -> None:
    """One task has the timer of all that wait: it hands that over, however it ends."""
    bucket = TokenBucket(qps=10, burst=1)
    bucket.reserve(trio.current_time())
    start = trio.current_time()
    spent: dict[int, float] = {}

    async def spend(number: int) -> None:
        with trio.move_on_after(0.05 if number in cancelled else 60):
            await bucket.take()
            spent[number] = round(trio.current_time() - start, 3)

    async with trio.open_nursery() as nursery:
        for number in range(6):
            nursery.start_soon(spend, number)
            await trio.lowlevel.checkpoint()
    assert spent == {number: round((number + 1) / 10, 3) for number in range(6) if number not in cancelled}


@pytest.mark.parametrize("seed", range(5))
async def test_every_wait_ends_when_its_token_is_there(autojump_clock: MockClock, seed: int) -> None:
    rng = Random(seed)
    bucket = TokenBucket(qps=10, burst=1)
    late: list[float] = []
    given_up = 0

    async def spend(arrival: float, patience: float) -> None:
        nonlocal given_up
        await trio.sleep(arrival)
        now = trio.current_time()
        due = now + bucket.reserve(now)
        with trio.move_on_after(patience) as scope:
            await bucket.wait_until(due)
            late.append(trio.current_time() - due)
        given_up += scope.cancelled_caught

    async with trio.open_nursery() as nursery:
        for _ in range(200):
            nursery.start_soon(spend, rng.uniform(0, 15), rng.choice([0.5, 2.0, 5.0, 60.0]))
    assert len(late) + given_up == 200
    assert given_up
    assert min(late) > -1e-9
    assert max(late) <= given_up / bucket.qps  # tokens that were returned make later waits shorter than earlier ones
