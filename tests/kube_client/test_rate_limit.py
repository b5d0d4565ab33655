import pytest
import trio
from trio.testing import MockClock

from trio_sched.kube_client.rate_limit import TokenBucket


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
    assert [round(bucket.reserve(), 3) for _ in range(3)] == [0, 0, 0.1]


async def test_a_cancelled_wait_leaves_its_token_to_others(autojump_clock: MockClock) -> None:
    bucket = TokenBucket(qps=1, burst=1)
    bucket.reserve()
    with trio.move_on_after(0.5):
        await bucket.take()
    assert await bucket.take() == pytest.approx(0.5)


def test_a_negative_rate_is_no_limit() -> None:
    bucket = TokenBucket(qps=-1, burst=1, clock=lambda: 0.0)
    assert {bucket.reserve() for _ in range(1000)} == {0.0}
