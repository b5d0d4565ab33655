"""Background jobs of plugins that fail in every way, that never end, and that are far too many."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins import plugin_jobs
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.plugin_api import Handle, NotLeading, Pod, Status, hookimpl
from trio_sched.testing import pod, virtual_cluster


async def exits() -> None:
    raise SystemExit(3)


async def keeps_a_cancellation() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        try:
            await trio.lowlevel.checkpoint()
        except trio.Cancelled as error:
            kept = error
    raise kept


async def raises_a_group() -> None:
    raise BaseExceptionGroup("several", [SystemExit(1), KeyError("x")])


async def leaves_a_nursery_open() -> None:
    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(trio.sleep_forever)


async def cancels_the_others() -> None:
    nursery = trio.lowlevel.current_task().parent_nursery
    assert nursery is not None
    nursery.cancel_scope.cancel()
    await trio.sleep(1)


def exits_at_once() -> Any:
    raise SystemExit(3)


HOSTILE = [exits, keeps_a_cancellation, raises_a_group, leaves_a_nursery_open, cancels_the_others, exits_at_once]


class Background(PluginBase):
    handle: Handle

    @hookimpl
    def filter_node(self, pod: Pod) -> Status | None:
        return None


@pytest.mark.parametrize("job", HOSTILE)
async def test_a_job_that_fails_is_logged_and_others_go_on(
    job: Callable[[], Any], autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[str] = []

    async def other() -> None:
        done.append("other")

    async with virtual_cluster(nodes=1, plugins=[Background]) as cluster:
        handle = cluster.plugin("Background").handle
        for _ in range(100):
            handle.run_in_background(job)
        await trio.sleep(5)
        handle.run_in_background(other)
        await cluster.create(pod("p"))
        await cluster.wait_scheduled("p")
        await cluster.stop_scheduler()
        cluster.scheduler.raise_failure()
    assert done == ["other"]
    assert job is cancels_the_others or "a background job of plugin Background failed: " in caplog.text


async def test_jobs_that_never_end_hold_up_those_of_their_plugin_only(
    autojump_clock: MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin_jobs, "MAX_WAITING_PLUGIN_JOBS", 100)
    jobs, done = PluginJobs(), list[int]()

    async def short(number: int = 0) -> None:
        await trio.sleep(1)
        done.append(number)

    jobs.submit("Short", "default-scheduler", short)  # before it runs
    nursery.start_soon(jobs.run)
    for _ in range(plugin_jobs.MAX_PARALLEL_PLUGIN_JOBS + 100):
        await trio.lowlevel.checkpoint()
        jobs.submit("Endless", "default-scheduler", trio.sleep_forever)
    with pytest.raises(RuntimeError, match="100 jobs of Endless wait already"):
        jobs.submit("Endless", "default-scheduler", trio.sleep_forever)
    for _ in range(50):
        jobs.submit("Short", "default-scheduler", short)
    await trio.sleep(3)
    assert len(done) == 51
    assert (jobs.waiting, jobs.unfinished, jobs.submitted) == (100, 132, 183)
    jobs.discard_waiting()
    assert jobs.unfinished == 32


async def test_they_are_awaited_until_all_are_over(autojump_clock: MockClock, nursery: trio.Nursery) -> None:
    jobs = PluginJobs()
    nursery.start_soon(jobs.run)
    for _ in range(40):
        jobs.submit("Short", "default-scheduler", partial(trio.sleep, 1))
    await jobs.drained()
    assert trio.current_time() == 2
    await jobs.drained()


@pytest.mark.parametrize("is_wrapped", [False, True])
async def test_a_job_that_may_not_write_any_more_is_no_failure(
    is_wrapped: bool, autojump_clock: MockClock, nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    async def writes() -> None:
        problem = NotLeading("the lease is not held")
        if is_wrapped:
            raise ValueError(str(problem)) from problem
        raise problem

    jobs = PluginJobs()
    nursery.start_soon(jobs.run)
    with caplog.at_level("INFO"):
        jobs.submit("Writing", "default-scheduler", writes)
        await jobs.drained()
    (record,) = [one for one in caplog.records if "background job" in one.getMessage()]
    assert (record.levelname, record.exc_info) == ("INFO", None)
    assert record.getMessage() == "a background job of plugin Writing ended: the lease is not held"
