"""What all simulated controllers have in common: they follow objects, and take the steps that changes call for."""

from abc import ABC, abstractmethod
from collections.abc import Callable

import trio
from attrs import define, field

from trio_sched.simulator.controllers.work_queue import WorkQueue
from trio_sched.simulator.endpoints.api_server import ApiServer
from trio_sched.simulator.storage.object_store import Listener


@define(eq=False)
class Controller(ABC):
    """A simulated controller.

    Args:
        server: the cluster.
    """

    server: ApiServer
    _steps: WorkQueue = field(factory=WorkQueue, init=False)
    _stops: list[Callable[[], None]] = field(factory=list, init=False)

    @abstractmethod
    def start(self) -> None:
        """Look at the objects that there are, and `listen` to changes."""

    def listen(self, collection: str, listener: Listener) -> None:
        """Call *listener* for every change in *collection* while the controller runs."""
        self._stops.append(self.server.store.collection(collection).listen(listener))

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do, now or later."""
        return self._steps.is_busy

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the controller; never returns."""
        self.start()
        task_status.started()
        try:
            await self._work()
        finally:
            for stop in self._stops:
                stop()

    async def _work(self) -> None:
        await self._steps.run()
