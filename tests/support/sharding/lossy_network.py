"""A network between one scheduler and the API server: outages, requests that arrive late or never, watches that lag."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import trio
from attrs import define, field

from trio_sched.embedded import EmbeddedCaller
from trio_sched.kube_client.errors import ConnectionFailed
from trio_sched.kube_client.http.caller import ByteStream
from trio_sched.kube_client.http.http1 import Headers, Reply
from trio_sched.testing.cluster import VirtualCluster
from trio_sched.testing.scheduler_process import SchedulerProcess

LEASE_SECONDS = 5.0
OTHER_SECONDS = 10.0
STUCK_SECONDS = 45.0
"""Three times as long as a lease is valid."""
LAG_SECONDS = 6.0


class _LaggingStream:
    def __init__(self, stream: ByteStream, network: "LossyNetwork", target: bytes) -> None:
        self._stream, self._network, self._target = stream, network, target
        self.status: int = stream.status
        self.headers: Headers = stream.headers

    async def receive(self) -> bytes:
        piece = await self._stream.receive()
        network = self._network
        if network.dice.random() < network.stuck:
            await trio.sleep(network.dice.random() * LAG_SECONDS)
        if network.is_behind and network.behind in self._target:
            await network.caught_up.wait()
        while network.is_cut:
            await network.mended.wait()
            if network.dice.random() < 0.5:
                raise ConnectionFailed("lossy", "the connection broke", may_have_reached_server=True)
        return piece


@define(eq=False)
class LossyNetwork:
    """Carries the requests of one scheduler."""

    inner: EmbeddedCaller
    nursery: trio.Nursery
    """Holds requests that are under way although nobody waits for them any more."""
    dice: Random
    stuck: float = 0.0
    """The share of requests and events that are held back."""
    is_severed: bool = False
    is_cut: bool = False
    mended: trio.Event = field(factory=trio.Event)
    held: bytes = b""
    """What is held back, until it is let go: writes whose path contains this; empty: nothing."""
    let_go: trio.Event = field(factory=trio.Event)
    is_behind: bool = False
    """Whether watches show nothing more, until they catch up."""
    behind: bytes = b""
    """Which watches: those whose path contains this."""
    caught_up: trio.Event = field(factory=trio.Event)
    lost: bytes = b""
    """What never arrives: requests whose path contains this; empty: nothing else."""

    def cut(self) -> None:
        if not self.is_cut:
            self.is_cut, self.mended = True, trio.Event()

    def mend(self) -> None:
        self.is_cut = False
        self.mended.set()

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        if self.is_severed:
            await trio.lowlevel.checkpoint()
            raise ConnectionFailed("lossy", "the process is dead", may_have_reached_server=False)
        answered, answers = trio.Event(), list[Reply | ConnectionFailed]()

        async def deliver() -> None:
            if self.lost and self.lost in target:
                return
            if self.held and self.held in target and method != b"GET":
                await self.let_go.wait()
            if self.dice.random() < self.stuck:
                await trio.sleep(self.dice.random() * STUCK_SECONDS)
            while self.is_cut:
                if self.dice.random() < 0.5:
                    return
                await self.mended.wait()
            await trio.sleep(self.dice.lognormvariate(0.0, 0.8) * 0.004)
            try:
                answers.append(await self.inner.request(method, target, headers, body))
            except ConnectionFailed as problem:
                answers.append(problem)
            await trio.sleep(self.dice.lognormvariate(0.0, 0.8) * 0.004)
            if not self.is_cut:
                answered.set()

        self.nursery.start_soon(deliver)
        with trio.move_on_after(LEASE_SECONDS if b"/leases" in target else OTHER_SECONDS):
            await answered.wait()
        if not answered.is_set() or self.is_severed:
            raise ConnectionFailed("lossy", "no answer in time", may_have_reached_server=True, timed_out=True)
        (answer,) = answers
        if isinstance(answer, ConnectionFailed):
            raise answer
        return answer

    @asynccontextmanager
    async def stream(
        self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b""
    ) -> AsyncGenerator[ByteStream, None]:
        if self.is_cut or self.is_severed:
            await trio.sleep(1.0)
            raise ConnectionFailed("lossy", "no connection", may_have_reached_server=False)
        async with self.inner.stream(method, target, headers, body) as stream:
            yield _LaggingStream(stream, self, target)


async def start_behind_lossy_network(
    cluster: VirtualCluster, nursery: trio.Nursery, identity: str, dice: Random, stuck: float
) -> tuple[SchedulerProcess, LossyNetwork]:
    """Start a scheduler whose requests a lossy network carries."""
    process = await cluster.start_scheduler(identity, wait=False)
    network = LossyNetwork(process._to_api, nursery, dice, stuck)
    process._to_api = network  # type: ignore[assignment]
    return process, network


@define(eq=False)
class Deadline:
    """Ends a scheduler after a certain number of writes about pods and claims, by all that share this."""

    last: int = 0
    """The one that is the last of its scheduler; 0: none."""
    writes: int = 0
    dead: SchedulerProcess | None = None


@define(eq=False)
class DeadlyNetwork(LossyNetwork):
    """Carries the requests of one scheduler until *deadline*: that write has an effect, and is never answered."""

    process: SchedulerProcess = field(kw_only=True)
    deadline: Deadline = field(kw_only=True)

    async def request(self, method: bytes, target: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
        answer = await super().request(method, target, headers, body)
        deadline = self.deadline
        if method != b"GET" and (b"/pods/" in target or b"claims/" in target) and deadline.last:
            deadline.writes += 1
            if deadline.writes == deadline.last:
                self.is_severed, deadline.dead = True, self.process
                raise ConnectionFailed("lossy", "the process is dead", may_have_reached_server=True)
        return answer


async def start_with_deadline(cluster: VirtualCluster, nursery: trio.Nursery, deadline: Deadline) -> None:
    """Start a scheduler that ends after a certain write."""
    process = await cluster.start_scheduler(wait=False)
    network = DeadlyNetwork(process._to_api, nursery, Random(0), process=process, deadline=deadline)
    process._to_api = network  # type: ignore[assignment]
