"""Counts what has happened in the last hour, every ten seconds, from what metrics count anyway."""

from __future__ import annotations

from typing import Any

import trio
from attrs import define, field

from trio_sched.daemon.serving.pages.live.live_facts import LiveFacts, plugin_times
from trio_sched.live_page.history import STEP_SECONDS, History


@define(eq=False)
class LiveHistory:
    """The last hour of the daemon."""

    facts: LiveFacts
    _history: History = field(init=False, factory=History)

    async def run(self) -> None:
        """Count; never returns."""
        while True:
            assembly = self.facts.assembly
            counters, _rates = self.facts.count()  # those of the next reader need a beginning
            self._history.add(self.facts.now(), counters, assembly.scheduler.queue.sizes())
            await trio.sleep(STEP_SECONDS)

    def shown(self) -> dict[str, Any]:
        """All of it."""
        return {
            **self._history.shown(),
            "plugins": plugin_times(self.facts.assembly),
            "reloads": self.facts.reloads(),
        }
