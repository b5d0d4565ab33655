"""Who may do what."""

from random import Random
from typing import Any

import pytest
import trio
import trio.testing

from trio_sched.daemon.serving.authentication import authorization
from trio_sched.daemon.serving.authentication.authorization import AlwaysAllowed, Authorization
from trio_sched.daemon.serving.authentication.reviews import ReviewClient
from trio_sched.daemon.serving.authentication.users import ANONYMOUS, User
from trio_sched.daemon.serving.errors import ReviewFailed
from trio_sched.kube_client.connection import KubeClient, connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, allows_by_bootstrap_roles

MONITOR = User(name="m", groups=("system:monitoring",))


class Counting:
    def __init__(self) -> None:
        self.specs: list[dict[str, Any]] = []

    def __call__(self, spec: dict[str, Any]) -> bool:
        self.specs.append(spec)
        return allows_by_bootstrap_roles(spec)


@pytest.fixture
def asked() -> Counting:
    return Counting()


@pytest.fixture
async def api(asked: Counting) -> ApiServer:
    return ApiServer(allows=asked)


@pytest.fixture
async def judge(client: KubeClient) -> Authorization:
    return Authorization(
        always_allowed=AlwaysAllowed.of(["/healthz", "metrics/*"]),
        reviews=ReviewClient(client, Random(0)),
        allowed_ttl_seconds=10.0,
        denied_ttl_seconds=5.0,
    )


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/healthz", True), ("/healthz/", False), ("/healthz/x", False), ("/metrics", False), ("/metrics/slis", True)],
)
def test_always_allowed_paths_are_exact_or_prefixes(path: str, allowed: bool) -> None:
    assert (path in AlwaysAllowed.of(["/healthz", "/metrics/*"])) is allowed


def test_a_star_allows_everything() -> None:
    assert "/x" in AlwaysAllowed.of(["*"])
    assert "/x" not in AlwaysAllowed.of([])


async def test_administrators_and_allowed_paths_are_not_reviewed(
    judge: Authorization, asked: Counting, autojump_clock: object
) -> None:
    assert (await judge.judge(User(name="a", groups=("system:masters",)), "delete", "/x")).allowed
    assert (await judge.judge(ANONYMOUS, "get", "/healthz")).allowed
    assert asked.specs == []


async def test_reviews_count_for_a_while(judge: Authorization, asked: Counting, autojump_clock: object) -> None:
    for _ in range(3):
        assert (await judge.judge(MONITOR, "get", "/metrics")).allowed
        assert not (await judge.judge(MONITOR, "get", "/configz")).allowed
    assert len(asked.specs) == 2
    await trio.sleep(6)
    await judge.judge(MONITOR, "get", "/metrics")
    await judge.judge(MONITOR, "get", "/configz")
    assert len(asked.specs) == 3
    assert asked.specs[0]["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}


async def test_reviews_of_long_paths_are_not_kept(
    judge: Authorization, asked: Counting, autojump_clock: object
) -> None:
    for _ in range(2):
        await judge.judge(MONITOR, "get", "/" + "x" * 20_000)
    assert len(asked.specs) == 2


async def test_without_reviews_nothing_else_is_allowed() -> None:
    assert not (await Authorization(always_allowed=AlwaysAllowed.of([])).judge(MONITOR, "get", "/metrics")).allowed


async def test_a_server_that_cannot_be_asked_means_no(
    judge: Authorization, api: ApiServer, autojump_clock: object
) -> None:
    api.stop()
    with pytest.raises(ReviewFailed):
        await judge.judge(MONITOR, "get", "/metrics")


async def test_the_failure_has_the_text_of_kube_scheduler() -> None:
    async with connect(ConnectionSettings(server="https://127.0.0.1:1")) as client:
        judge = Authorization(always_allowed=AlwaysAllowed.of([]), reviews=ReviewClient(client, Random(0)))
        with pytest.raises(ReviewFailed) as failed:
            await judge.judge(MONITOR, "get", "/metrics")
    assert str(failed.value) == (
        'Post "https://127.0.0.1:1/apis/authorization.k8s.io/v1/subjectaccessreviews?timeout=10s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


async def test_too_many_reviews_at_once_mean_no(
    judge: Authorization, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(authorization, "MAX_REVIEWS_UNDER_WAY", 3)
    api.faults.set_latency(1.0)
    failed = 0

    async def ask(number: int) -> None:
        nonlocal failed
        try:
            await judge.judge(MONITOR, "get", f"/{number}")
        except ReviewFailed:
            failed += 1

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask, number)
    assert failed == 7


async def test_requests_without_credentials_leave_room_for_others(
    judge: Authorization, api: ApiServer, monkeypatch: pytest.MonkeyPatch, autojump_clock: object
) -> None:
    monkeypatch.setattr(authorization, "MAX_ANONYMOUS_REVIEWS", 3)
    api.faults.set_latency(1.0)
    failed = 0

    async def ask(number: int) -> None:
        nonlocal failed
        try:
            await judge.judge(ANONYMOUS, "get", f"/{number}")
        except ReviewFailed:
            failed += 1

    async with trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(ask, number)
        await trio.testing.wait_all_tasks_blocked()
        assert (await judge.judge(MONITOR, "get", "/metrics")).allowed
    assert failed == 7
