"""Events that wake a task again and again, and scopes that an event cancels."""

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


async def cancel_on(event: trio.Event, scope: trio.CancelScope) -> None:
    """Cancel *scope* once *event* is set."""
    await event.wait()
    scope.cancel()
