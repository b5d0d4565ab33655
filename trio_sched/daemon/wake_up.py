"""An event that wakes a task which has run out of work, and can be waited for again and again."""

import trio
from attrs import define, field


@define(eq=False)
class WakeUp:
    """Set by whatever may have given the waiting task something to do; how often does not matter."""

    _event: trio.Event = field(factory=trio.Event)

    def set(self) -> None:
        """Wake the task that waits, or the next one that does."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until `set` has been called since the last wait."""
        await self._event.wait()
        self._event = trio.Event()
