from random import Random

import pytest

from trio_sched.kube_client.http.http1 import Reply
from trio_sched.kube_client.retry import BackoffManager, retry_after_seconds


@pytest.mark.parametrize(
    ("status", "header", "expected"),
    [
        (429, b"1", 1),
        (503, b"30", 30),
        (500, b"0", 0),
        (429, b"9" * 5_000, None),
        (429, b"999999999", 300),
        (429, None, None),
        (503, b"Wed, 21 Oct 2026 07:28:00 GMT", None),
        (409, b"1", None),
        (200, b"1", None),
    ],
)
def test_only_429_and_5xx_with_whole_seconds_are_tried_again(
    status: int, header: bytes | None, expected: int | None
) -> None:
    headers = [] if header is None else [(b"retry-after", header)]
    assert retry_after_seconds(Reply(status, headers, b"")) == expected


def test_pauses_double_up_to_the_cap_and_lie_within_their_jitter() -> None:
    backoff = BackoffManager(Random(7))
    pauses = [backoff.pause_seconds(float(now)) for now in range(8)]
    for pause, nominal in zip(pauses, [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0], strict=True):
        assert nominal <= pause < 2 * nominal


def test_two_minutes_without_failure_reset_the_backoff() -> None:
    backoff = BackoffManager(Random(7), jitter=0.0)
    assert [backoff.pause_seconds(now) for now in (0, 1, 121, 242)] == [0.8, 1.6, 3.2, 0.8]
