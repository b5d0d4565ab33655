"""Follows the cluster at a short distance, and compares every decision that the watches show with its own."""

from __future__ import annotations

import logging
import math
from typing import Final

import trio
from attrs import define, field

from trio_sched.daemon.limits import SHUTDOWN_GRACE_SECONDS
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.daemon.shadow.delayed_delivery import DelayedDelivery
from trio_sched.daemon.shadow.shadow_settings import ShadowSettings
from trio_sched.daemon.slices import Slices
from trio_sched.daemon.wake_up import cancel_on
from trio_sched.engine.scheduler import Scheduler
from trio_sched.engine.shadow.expected_bindings import ExpectedBindings
from trio_sched.engine.shadow.judge import Judge, decision_in
from trio_sched.engine.shadow.judgement import DecisionKind, Judgement, JudgementClass, Judgements, OtherDecision
from trio_sched.engine.shadow.window import WINDOW_SECONDS, Arrival, Window
from trio_sched.verbosity import V3, V4

log = logging.getLogger(__name__)

MAX_WAITING: Final = 50_000
"""While more changes wait, decisions are not compared: the cluster changes faster than they can be."""


@define(eq=False, kw_only=True)
class Shadow:
    """Compares; nothing here writes to the API server."""

    settings: ShadowSettings
    scheduler: Scheduler
    delivery: DelayedDelivery
    judgements: Judgements = field(factory=Judgements, init=False)
    _judge: Judge = field(init=False)
    _expected: ExpectedBindings = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._judge = Judge(scheduler=self.scheduler, window=self._window, schedulers=self.settings.schedulers)
        self._expected = ExpectedBindings(self.scheduler)

    @property
    def _window(self) -> Window:
        return self.delivery.window

    async def run(self, stop: trio.Event) -> None:
        """Compare until *stop*, then what has arrived by then."""
        log.info("Shadow compares decisions", extra={"schedulers": ", ".join(sorted(self.settings.schedulers))})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cancel_on, stop, nursery.cancel_scope)
            while True:
                await self._follow(trio.current_time())
                ahead = self._window.ahead
                with trio.move_on_at(ahead[0].at + WINDOW_SECONDS if ahead else math.inf):
                    await self.delivery.arrived.wait()
        with trio.move_on_after(SHUTDOWN_GRACE_SECONDS, shield=True):
            await self._follow(math.inf)

    async def _follow(self, now: float) -> None:
        """Take in what nothing can cross any more at the time *now*."""
        slices = Slices()
        while (arrival := self._window.next(now)) is not None:
            if arrival.kind == "Pod":
                await self._pod_changed(arrival, slices)
            else:
                self.delivery.hand_on(arrival)
            await slices.pause_if_due()

    async def _pod_changed(self, arrival: Arrival, slices: Slices) -> None:
        decision = decision_in(arrival.change)
        if self._expected.is_fulfilled(arrival.change):
            decision = None
        judgement = None
        if decision is not None and self._is_compared(decision):
            judgement = await self._compare(decision, arrival, slices)
        self.delivery.hand_on(arrival)
        if judgement is not None:
            self._note(judgement)
            if judgement.decision.is_expected and judgement.decision.kind is DecisionKind.BINDING:
                self._expected.expect(arrival.change.subject)

    def _is_compared(self, decision: OtherDecision) -> bool:
        name = decision.pod.scheduler_name
        return name in self.settings.schedulers and name in self.scheduler.profiles

    async def _compare(self, decision: OtherDecision, arrival: Arrival, slices: Slices) -> Judgement:
        if arrival.is_relisted:
            detail = "the watch was interrupted, and states in between were missed"
            return Judgement(decision=decision, judged=JudgementClass.UNJUDGED, detail=detail)
        if len(self._window.ahead) > MAX_WAITING:
            detail = f"more than {MAX_WAITING} changes wait"
            return Judgement(decision=decision, judged=JudgementClass.UNJUDGED, detail=detail)
        steps = self._judge.judge(decision)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                judgement: Judgement = end.value
                return judgement
            await slices.pause_if_due()

    def _note(self, judgement: Judgement) -> None:
        self.judgements.add(judgement)
        fields = judgement.as_fields()
        if judgement.judged is JudgementClass.DIFFERS:
            log.warning("Decision of the other scheduler differs", extra=fields)
        elif judgement.judged is not JudgementClass.SAME and log.isEnabledFor(V3):
            log_line(log, V3, "Decision of the other scheduler is explained", fields)
        elif log.isEnabledFor(V4):
            log_line(log, V4, "Decision of the other scheduler is the same", fields)
