"""From "assumed on a node" to "bound there": permission, pre_bind, bind, post_bind; or everything given back.

Nearly every pod needs nothing but its bind: those go through a pool of tasks. A pod for which some plugin waits, or has
something to do first, gets a task of its own, so that it holds up nobody.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import trio
from attrs import define

from trio_sched.daemon.event_recorder import EventRecorder
from trio_sched.daemon.extender import ExtenderError
from trio_sched.daemon.extenders import Extenders
from trio_sched.daemon.failure_handler import FailureHandler
from trio_sched.daemon.pod_status import PodStatusWriter
from trio_sched.daemon.pre_binding import PreBindingPods
from trio_sched.daemon.scheduler_events import scheduled
from trio_sched.daemon.waiting_pods import WaitingPods
from trio_sched.daemon.work_pool import WorkPool
from trio_sched.engine.cache import CacheError
from trio_sched.engine.cluster_changes import ASSIGNED_POD_DELETE
from trio_sched.engine.decision import Placed, Unplaced
from trio_sched.engine.profile import Caller, Profile
from trio_sched.engine.queued_pod import QueuedPodInfo
from trio_sched.engine.reservation import Waits, rejected_after_choice
from trio_sched.engine.scheduler import Scheduler
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Code, Status, failure
from trio_sched.plugin_api.verdicts import PreFlight

log = logging.getLogger(__name__)


@define(eq=False)
class BindingCycle:
    """Binds what was decided; owns every failure on the way."""

    scheduler: Scheduler
    pool: WorkPool
    waiting: WaitingPods
    pre_binding: PreBindingPods
    recorder: EventRecorder
    status_writer: PodStatusWriter
    failures: FailureHandler
    wake: Callable[[], None]
    """Called when pods may have become ready."""
    nominate_while_binding: bool = True
    """Gate NominatedNodeNameForExpectation."""
    extenders: Extenders | None = None

    def start(self, nursery: trio.Nursery, info: QueuedPodInfo, placed: Placed, waits: Waits | None) -> None:
        """Have the pod bound; returns at once."""
        profile = self.scheduler.profiles[info.pod.scheduler_name]
        skipped, parallel, problem = self._pre_flight(profile, info.pod, placed)
        if problem is not None:
            self._fail(info, placed, problem)
            return
        has_work = len(skipped) < len(profile.pre_bind)
        if waits is None and not has_work:
            # From here on failures are nobody's verdict, so events need not be remembered for this pod.
            self.scheduler.queue.done(info.uid)
            if self.extenders is not None and self.extenders.binds(info.pod):
                nursery.start_soon(self._bind, profile, info, placed)  # a slow extender must not take up the pool
            else:
                self.pool.submit(partial(self._bind, profile, info, placed))
            return
        if waits is not None:
            self.waiting.add(info.pod, waits.timeout_seconds)
        if self.nominate_while_binding and (waits is not None or profile.pre_bind_pre_flight):
            self.status_writer.write_nomination(info.pod, placed.node_name)
        nursery.start_soon(self._whole_cycle, profile, info, placed, skipped, parallel)

    async def _whole_cycle(
        self,
        profile: Profile,
        info: QueuedPodInfo,
        placed: Placed,
        skipped: frozenset[str],
        parallel: frozenset[str],
    ) -> None:
        refused = await self.waiting.permission(info.uid)
        if refused is not None:
            self._fail(info, placed, _refused_outcome(refused, placed.node_name))
            return
        self.scheduler.queue.done(info.uid)
        problem_status = await self._pre_bind(profile, info.pod, placed, skipped, parallel)
        if problem_status is not None:
            self._fail(info, placed, Unplaced(problem_status))
            return
        await self._bind(profile, info, placed)

    # --- pre_bind ---------------------------------------------------------------------------------------------------

    def _pre_flight(
        self, profile: Profile, pod: Pod, placed: Placed
    ) -> tuple[frozenset[str], frozenset[str], Unplaced | None]:
        """Which plugins have nothing to do, and which may run side by side."""
        skipped: set[str] = set()
        parallel: set[str] = set()
        for caller in profile.pre_bind_pre_flight:
            try:
                answer: PreFlight | Status | None = caller.call(pod, placed.node_name, placed.state)
            except Exception as exc:
                answer = failure(exc)
            if isinstance(answer, PreFlight):
                if answer.allow_parallel:
                    parallel.add(caller.plugin)
            elif answer is not None and answer.code == Code.SKIP:
                skipped.add(caller.plugin)
            elif answer is not None and answer.code == Code.ERROR:
                text = f'running PreBindPreFlight "{caller.plugin}": {answer.message}'
                return frozenset(), frozenset(), Unplaced(failure(text))
            elif answer is not None and answer.code != Code.SUCCESS:
                text = (
                    f'PreBindPreFlight {caller.plugin} returned "{answer.code.label}", which is unsupported. '
                    "It is supposed to return Success, Skip, or Error status"
                )
                return frozenset(), frozenset(), Unplaced(failure(text))
        return frozenset(skipped), frozenset(parallel), None

    async def _pre_bind(
        self, profile: Profile, pod: Pod, placed: Placed, skipped: frozenset[str], parallel: frozenset[str]
    ) -> Status | None:
        under_way = self.pre_binding.add(pod.uid)
        current = ""
        try:
            with under_way.scope:
                for group in _groups(profile.pre_bind, skipped, parallel):
                    current = group[0].plugin
                    if len(group) == 1:
                        problem = await _pre_bind_one(group[0], pod, placed)
                    else:
                        problem = await _pre_bind_together(group, pod, placed)
                    if problem is not None:
                        return problem
            if under_way.scope.cancelled_caught:
                return failure(f'running PreBind plugin "{current}": {under_way.cause}').by(current)
            if under_way.cause is not None:
                return failure(under_way.cause)
            under_way.is_done = True
            return None
        finally:
            self.pre_binding.remove(pod.uid)

    # --- bind -------------------------------------------------------------------------------------------------------

    async def _bind(self, profile: Profile, info: QueuedPodInfo, placed: Placed) -> None:
        pod, node_name, state = info.pod, placed.node_name, placed.state
        await self.status_writer.withdraw(info.uid)
        if self.extenders is not None:
            try:
                is_bound = await self.extenders.bind(pod, node_name)
            except ExtenderError as problem:
                self._fail(info, placed, Unplaced(failure(problem)))
                return
            if is_bound:
                self._bound(info, placed)
                await self._post_bind(profile, info, placed)
                return
        status: Status | None = Status(Code.SKIP)
        for caller in profile.bind:
            try:
                status = await _answer(caller.call(pod, node_name, state))
            except Exception as exc:
                status = failure(exc)
            if status is None or status.code == Code.SUCCESS:
                self._bound(info, placed)
                await self._post_bind(profile, info, placed)
                return
            if status.code != Code.SKIP:
                if not status.is_rejected:
                    status = failure(f'running Bind plugin "{caller.plugin}": {status.message}')
                break
        assert status is not None
        self._fail(info, placed, Unplaced(status.by("")))

    def _bound(self, info: QueuedPodInfo, placed: Placed) -> None:
        pod = info.pod
        if info.was_flushed:
            self.scheduler.queue.counters.scheduled_after_flush += 1
            log.warning(
                "pod was scheduled only after it had been tried again for lack of any event", extra={"pod": pod.key}
            )
        self.recorder.record(scheduled(pod, placed.node_name))
        log.info(
            "Successfully bound pod to node",
            extra={
                "pod": pod.key,
                "node": placed.node_name,
                "evaluatedNodes": placed.evaluated_nodes,
                "feasibleNodes": placed.feasible_nodes,
            },
        )

    async def _post_bind(self, profile: Profile, info: QueuedPodInfo, placed: Placed) -> None:
        for caller in profile.post_bind:
            try:
                await _answer(caller.call(info.pod, placed.node_name, placed.state))
            except Exception:  # the pod is bound, whatever anybody thinks of it
                log.exception("post_bind of plugin %s failed", caller.plugin, extra={"pod": info.key})
        if placed.state.pods_to_activate:
            activate_collected(self.scheduler, placed)
            self.wake()

    # --- failure ----------------------------------------------------------------------------------------------------

    def _fail(self, info: QueuedPodInfo, placed: Placed, outcome: Unplaced) -> None:
        """Give everything back and requeue the pod."""
        queue = self.scheduler.queue
        cached = self.scheduler.cache.get(info.uid)
        try:
            for plugin, problem in self.scheduler.give_back(info.pod, placed):
                log.error("unreserve of plugin %s failed: %s", plugin, problem, extra={"pod": info.key})
        except CacheError as problem:
            # The watch was faster: the pod is on a node, so there is nothing to requeue.
            log.warning("pod failed to bind but is on a node: %s", problem, extra={"pod": info.key})
            queue.done(info.uid)
            return
        uid, now = info.uid, trio.current_time()
        old = cached.pod_on_node if cached is not None else info.pod
        if outcome.status.is_rejected:
            self.failures.handle(info, outcome)
            queue.move_all(ASSIGNED_POD_DELETE, old, None, now=now, only=lambda pod: pod.uid != uid)
        else:
            queue.done(uid)
            queue.move_all(ASSIGNED_POD_DELETE, old, None, now=now)
            self.failures.handle(info, outcome)


def activate_collected(scheduler: Scheduler, placed: Placed) -> None:
    """Move on the pods that plugins asked to be tried next."""
    if placed.state.pods_to_activate:
        pods = list(placed.state.pods_to_activate.values())
        placed.state.pods_to_activate.clear()
        scheduler.queue.activate(pods, now=trio.current_time())


def _refused_outcome(status: Status, node_name: str) -> Unplaced:
    if status.is_rejected:
        return rejected_after_choice(status, node_name)
    return Unplaced(failure(f"waiting on permit for pod: {status.message}").by(status.plugin))


async def _answer(result: Any) -> Any:
    """The answer of a hook that may or may not be ``async``."""
    return await result if inspect.isawaitable(result) else result


def _groups(callers: Sequence[Caller], skipped: frozenset[str], parallel: frozenset[str]) -> list[list[Caller]]:
    """Plugins in order; neighbours that allow it run together."""
    groups: list[list[Caller]] = []
    together: list[Caller] = []
    for caller in callers:
        if caller.plugin in parallel:
            if caller.plugin not in skipped:
                together.append(caller)
            continue
        if together:
            groups.append(together)
            together = []
        if caller.plugin not in skipped:
            groups.append([caller])
    if together:
        groups.append(together)
    return groups


async def _pre_bind_one(caller: Caller, pod: Pod, placed: Placed) -> Status | None:
    try:
        status: Status | None = await _answer(caller.call(pod, placed.node_name, placed.state))
    except Exception as exc:
        status = failure(exc)
    if status is None or status.code == Code.SUCCESS:
        return None
    if status.is_rejected:
        return status.by(caller.plugin)
    return failure(f'running PreBind plugin "{caller.plugin}": {status.message}').by(caller.plugin)


async def _pre_bind_together(group: Sequence[Caller], pod: Pod, placed: Placed) -> Status | None:
    """Run *group* side by side; the first failure cancels the others."""
    first: list[Status] = []

    async def run(caller: Caller, nursery: trio.Nursery) -> None:
        problem = await _pre_bind_one(caller, pod, placed)
        if problem is not None:
            first.append(problem)
            nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for caller in group:
            nursery.start_soon(run, caller, nursery)
    return first[0] if first else None
