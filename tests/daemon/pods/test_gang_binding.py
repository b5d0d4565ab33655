from collections.abc import Callable

import pytest
import trio
from gangs import member
from trio.testing import MockClock, wait_all_tasks_blocked

from trio_sched.daemon.pods.gang_binding import OTHERS_FAILED, GangBinding
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api import Code, Status

PODS = [member(name, "g") for name in ("a", "b", "c")]


class Case:
    """A gang that needs *needed* more pods; its outcome per pod."""

    def __init__(self, needed: int = 3) -> None:
        self.needed = needed
        self.nominated: list[str] = []
        self.rejected: list[str] = []
        self.gone: set[str] = set()
        self.problem: Callable[[Pod], KubeClientError | None] = lambda _pod: None
        self.outcomes: dict[str, Status | None] = {}
        self.gang = GangBinding(
            may_bind=lambda left: left if len(left) >= self.needed else frozenset(),
            is_assumed=lambda uid: uid not in self.gone,
            nominate=self.nominate,
            reject=lambda uid, _message: self.rejected.append(uid),
        )
        for one in PODS:
            self.gang.expect(one.uid)

    async def nominate(self, one: Pod, node_name: str) -> None:
        await trio.sleep(1)
        problem = self.problem(one)
        if problem is not None:
            raise problem
        self.nominated.append(f"{one.name} {node_name}")

    async def arrive(self, one: Pod) -> None:
        self.outcomes[one.name] = await self.gang.ready(one, "n")

    async def all_arrive(self, *pods: Pod) -> None:
        async with trio.open_nursery() as nursery:
            for one in pods:
                nursery.start_soon(self.arrive, one)


def not_found() -> NotFound:
    return NotFound(code=404, reason="NotFound", message="no such pod")


async def test_none_goes_before_the_last_one_is_ready_and_all_are_nominated(autojump_clock: MockClock) -> None:
    case = Case()
    async with trio.open_nursery() as nursery:
        for one in PODS[:2]:
            nursery.start_soon(case.arrive, one)
        await wait_all_tasks_blocked()
        assert (case.outcomes, case.nominated) == ({}, [])
        await case.arrive(PODS[2])
    assert case.outcomes == {"a": None, "b": None, "c": None}
    assert sorted(case.nominated) == ["a n", "b n", "c n"]


async def test_if_too_few_are_left_none_goes(autojump_clock: MockClock) -> None:
    case = Case()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(case.arrive, PODS[0])
        await wait_all_tasks_blocked()
        case.gang.failed(PODS[1].uid)
        assert case.rejected == [PODS[2].uid]  # it may wait on permit
        case.gang.failed(PODS[2].uid)
    refused = case.outcomes["a"]
    assert refused is not None
    assert refused.code == Code.UNSCHEDULABLE
    assert refused.message == f"pod group is unschedulable, {OTHERS_FAILED}"
    assert case.nominated == []


async def test_if_enough_are_left_they_go(autojump_clock: MockClock) -> None:
    case = Case(needed=2)
    case.gang.failed(PODS[2].uid)
    await case.all_arrive(*PODS[:2])
    assert case.outcomes == {"a": None, "b": None}
    assert case.rejected == []


@pytest.mark.parametrize("when", ["before", "while nominating"])
async def test_a_pod_that_was_deleted_does_not_count(when: str, autojump_clock: MockClock) -> None:
    case = Case()
    if when == "before":
        case.gone.add(PODS[1].uid)
    else:
        case.problem = lambda one: not_found() if one.name == "b" else None
    await case.all_arrive(*PODS)
    assert all(outcome is not None for outcome in case.outcomes.values())


async def test_if_a_nomination_cannot_be_written_none_goes(autojump_clock: MockClock) -> None:
    case = Case()
    case.problem = lambda one: KubeClientError("no answer") if one.name == "b" else None
    await case.all_arrive(*PODS)
    outcome = case.outcomes["a"]
    assert outcome is not None
    assert (outcome.code, outcome.message) == (Code.ERROR, "no answer")


async def test_if_the_one_that_decides_is_cancelled_the_others_are_refused(autojump_clock: MockClock) -> None:
    case = Case()
    scopes: dict[trio.lowlevel.Task, trio.CancelScope] = {}

    async def nominate(one: Pod, node_name: str) -> None:
        nursery = trio.lowlevel.current_task().parent_nursery
        assert nursery is not None
        scopes[nursery.parent_task].cancel()
        await trio.sleep_forever()

    async def arrive(one: Pod) -> None:
        with trio.CancelScope() as scope:
            scopes[trio.lowlevel.current_task()] = scope
            await case.arrive(one)

    case.gang.nominate = nominate
    async with trio.open_nursery() as nursery:
        for one in PODS:
            nursery.start_soon(arrive, one)
    messages = [outcome.message for outcome in case.outcomes.values() if outcome is not None]
    assert messages == ["pod group is unschedulable, binding was given up"] * 2
