"""One bell: rung by whoever may have given a waiting task something to do."""

import trio
from attrs import define, field


@define(eq=False)
class Bell:
    """Rings are not counted: whoever wakes up looks at everything."""

    _event: trio.Event = field(factory=trio.Event)

    def ring(self) -> None:
        """Wake everybody who waits, and whoever waits next."""
        self._event.set()

    async def wait(self) -> None:
        """Wait for a ring since the last wait."""
        await self._event.wait()
        self._event = trio.Event()
