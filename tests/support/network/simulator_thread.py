import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import trio
from attrs import define, field

from trio_sched.simulator import ApiServer, Controllers, KubeletPace, run_kubelets, serve
from trio_sched.simulator.controllers.nodes.node_registration import NodeRegistration

T = TypeVar("T")

STARTED_SECONDS = 20


@define(eq=False)
class Simulator:
    """A simulated cluster without a scheduler that runs in a thread of its own, for clients that block theirs.

    Attributes:
        url: where it answers.
        faults: what the server wrote to its log because it could not answer.
    """

    server: ApiServer = field(factory=ApiServer)
    url: str = field(default="", init=False)
    faults: list[str] = field(factory=list, init=False)
    _token: Any = field(default=None, init=False)
    _ready: threading.Event = field(factory=threading.Event, init=False)
    _scope: trio.CancelScope = field(factory=trio.CancelScope, init=False)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call *function* in the thread of the server."""
        return trio.from_thread.run_sync(function, *arguments, trio_token=self._token)

    async def run(self) -> None:
        with self._scope:
            async with trio.open_nursery() as nursery:
                await nursery.start(NodeRegistration(self.server).run)
                await nursery.start(run_kubelets, self.server, KubeletPace(start_seconds=0, stop_seconds=0))
                await nursery.start(Controllers(self.server).run)
                self.url = await nursery.start(serve, self.server)
                self._token = trio.lowlevel.current_trio_token()
                self._ready.set()

    def wait_until_started(self) -> None:
        assert self._ready.wait(STARTED_SECONDS), "the simulator has not started"

    def stop(self) -> None:
        self.call(self._scope.cancel)

    def kubeconfig(self) -> dict[str, Any]:
        """As ``simulate --serve`` writes it."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "s",
            "contexts": [{"name": "s", "context": {"cluster": "s", "user": "s"}}],
            "clusters": [{"name": "s", "cluster": {"server": self.url}}],
            "users": [{"name": "s", "user": {"token": "anybody"}}],
        }


@contextmanager
def simulator_in_thread(server: ApiServer | None = None) -> Iterator[Simulator]:
    """A running `Simulator`, of *server*; at the end it must not have logged any fault."""
    simulator = Simulator() if server is None else Simulator(server)
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: simulator.faults.append(record.getMessage())  # type: ignore[method-assign]
    log = logging.getLogger("trio_sched.simulator")
    log.addHandler(handler)
    thread = threading.Thread(target=trio.run, args=(simulator.run,), daemon=True)
    thread.start()
    try:
        simulator.wait_until_started()
        yield simulator
        simulator.stop()
        thread.join(STARTED_SECONDS)
    finally:
        log.removeHandler(handler)
    assert simulator.faults == []
