"""A cluster whose replicas share the work: pods in bursts, one fault after the other, and what was wrong."""

from __future__ import annotations

import re
import signal
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import trio
from attrs import define, field, frozen

from contrib.benchmarks.real.prepare import write_objects
from contrib.benchmarks.scheduler_process import scheduler_process
from contrib.control_plane.control_plane import ControlPlane, control_plane
from contrib.control_plane.servers import Assets, ServerFiles
from contrib.sharding.real.checks import Checks, follow
from contrib.sharding.real.replicas import (
    LEASE_SECONDS,
    TOGETHER,
    Replica,
    choose,
    configuration,
    inject,
    replica,
)
from contrib.sharding.real.workload import CLAIM_PATH, NODES, POD_PATH, POOL, Load, node_manifest, objects

EVENT_PATH: Final = "/apis/events.k8s.io/v1/namespaces/default/events"
READY_SECONDS: Final = 60.0
SETTLED_SECONDS: Final = 180.0
"""After the last fault everything has been decided in this time."""
AFTERWARDS_SECONDS: Final = 5.0
"""So long after it has nothing more to do, the single scheduler has told all it has done."""
_LOOK_SECONDS: Final = 0.2
_TRACEBACK: Final = re.compile(r'^[EW].*?\] "(.*?)" .*err=<\n\s*Traceback', re.MULTILINE)


@frozen(kw_only=True)
class Options:
    """What is run."""

    faults: int
    seed: int
    replicas: int = 3
    shards: int = 4
    by_label: bool = False
    """Whether a label says which shard a node belongs to, and changes."""
    quiet_seconds: float = 25.0
    """After so long without another bound pod the replicas have done what they can; a node that has refused a pod is
    tried again after 15 s."""

    @property
    def sharding(self) -> dict[str, Any]:
        """The part of the configuration."""
        return {"shards": self.shards, **({"nodeLabel": POOL} if self.by_label else {})}


@define(eq=False)
class Report:
    """What was seen."""

    faults: Counter[str] = field(factory=Counter)
    problems: list[str] = field(factory=list)
    created: int = 0
    bound: int = 0
    evicted: int = 0
    fenced: int = 0
    nominated: int = 0
    pending: int = 0
    """Pods without a node at the end."""
    wait_seconds: list[float] = field(factory=list)
    """From the creation of each pod to its bind."""
    ended: list[int] = field(factory=list)
    """Exit codes of replicas that have ended by themselves."""
    tracebacks: Counter[str] = field(factory=Counter)
    """What replicas have logged with one; a write that fails while it must not be sent is none to worry about."""
    fault_seconds: float = 0.0

    def lines(self) -> list[str]:
        """What to print."""
        kinds = ", ".join(f"{count} {name}" for name, count in self.faults.most_common())
        waits = sorted(self.wait_seconds) or [0.0]
        codes = ", ".join(f"{count} with {code}" for code, count in Counter(self.ended).items()) or "none"
        return [
            f"{self.faults.total()} faults in {self.fault_seconds:.0f} s: {kinds}",
            f"{self.created} pods created, {self.bound} bound, {self.evicted} evicted, {self.pending} left pending",
            f"{self.nominated} were nominated to nodes of others, {self.fenced} fenced",
            f"from creation to bind: p50 {statistics.median(waits):.2f} s, p99 {waits[int(0.99 * len(waits))]:.1f} s,"
            f" longest {waits[-1]:.1f} s",
            f"replicas that ended by themselves: {codes}",
            *(f"logged with a traceback {count} times: {text}" for text, count in self.tracebacks.items()),
            f"{len(self.problems)} problems",
            *self.problems,
        ]


async def run(
    assets: Assets, folder: Path, options: Options, say: Callable[[str], None] = lambda _text: None
) -> Report:
    """Run it in *folder*, which has the logs afterwards; *say* is told of every fault.

    Raises:
        ServerDied: a server did not become ready.
    """
    files = ServerFiles.write(folder)
    async with control_plane(assets, files, folder, end_with=signal.SIGKILL) as plane:
        await write_objects(plane.admin, objects())
        return await _Run(plane, folder, options, say).run()


@define(eq=False)
class _Run:
    plane: ControlPlane
    folder: Path
    options: Options
    say: Callable[[str], None]
    random: Random = field(init=False)
    load: Load = field(init=False)
    checks: Checks = field(init=False)
    report: Report = field(factory=Report, init=False)

    def __attrs_post_init__(self) -> None:
        self.random = Random(self.options.seed)
        self.load = Load(self.plane.admin, Random(self.options.seed))
        nodes = {one["metadata"]["name"]: one for one in map(node_manifest, range(NODES))}
        self.checks = Checks(nodes, self.load.deleted.__contains__, self.load.gone)

    async def run(self) -> Report:
        admin, checks = self.plane.admin, self.checks
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(follow, admin, CLAIM_PATH, checks.claim_changed))
            await nursery.start(partial(follow, admin, POD_PATH, checks.pod_changed))
            await self._run_replicas()
            await self._run_single()
            events = msgspec.json.decode(await admin.call(b"GET", EVENT_PATH.encode()))["items"]
            checks.at_the_end(events)
            nursery.cancel_scope.cancel()
        found = self.report
        found.problems += checks.problems
        created = self.load.created_at
        found.created, found.bound = len(created), len(checks.bound_at)
        found.wait_seconds = [at - created[name] for name, at in checks.bound_at.items() if name in created]
        found.evicted, found.fenced, found.nominated = map(len, (checks.evicted, checks.fenced, checks.nominated))
        return found

    async def _run_replicas(self) -> None:
        async with AsyncExitStack() as stack:
            members = []
            for number in range(self.options.replicas):
                name = f"replica-{number}"
                random = Random(f"{self.options.seed} {name}")
                made = replica(self.plane, self.folder / name, name, self.options.sharding, random)
                members.append(await stack.enter_async_context(made))
            if not await self._is_settled(lambda: not self.checks.pending(), 0.0, READY_SECONDS):
                self.report.problems.append("the first pod was not bound")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self.load.run)
                if self.options.by_label:
                    nursery.start_soon(self.load.relabel, self.options.shards)
                began = trio.current_time()
                await self._make_faults(members)
                self.report.fault_seconds = trio.current_time() - began
                nursery.cancel_scope.cancel()
            if not await self._is_settled(lambda: True, self.options.quiet_seconds, SETTLED_SECONDS):
                self.report.problems.append(f"pods were still bound {SETTLED_SECONDS:g} s after the last fault")
            for member in members:
                await member.stop(signal.SIGTERM)
                self.report.ended += member.ended
                log = member.server.log_file.read_text(errors="replace")
                self.report.tracebacks.update(_TRACEBACK.findall(log))

    async def _make_faults(self, members: Sequence[Replica]) -> None:
        free, at_a_time = list(members), trio.CapacityLimiter(max(len(members) - 1, 1))

        async def make(number: int, member: Replica, name: str, is_over: trio.Event) -> None:
            await inject(member, name)
            free.append(member)
            at_a_time.release_on_behalf_of(number)
            is_over.set()

        async with trio.open_nursery() as nursery:
            for number in range(1, self.options.faults + 1):
                await at_a_time.acquire_on_behalf_of(number)
                member, name = free.pop(self.random.randrange(len(free))), choose(self.random)
                self.report.faults[name] += 1
                self.say(
                    f"{number}: {member.name} is {name}; {len(self.checks.bound_at)} pods were bound so far,"
                    f" {len(self.checks.pending())} wait; {len(self.checks.problems)} problems"
                )
                is_over = trio.Event()
                nursery.start_soon(make, number, member, name, is_over)
                await trio.sleep(self.random.uniform(0.0, 2.0))
                if self.random.random() >= TOGETHER:
                    await is_over.wait()
                    await trio.sleep(self.random.uniform(0.0, LEASE_SECONDS))

    async def _is_settled(self, check: Callable[[], bool], quiet_seconds: float, within_seconds: float) -> bool:
        """Wait until *check* is true and for a while no pod was bound and none evicted."""
        last, since = (0, 0), trio.current_time()
        with trio.move_on_after(within_seconds):
            while not check() or trio.current_time() - since < quiet_seconds:
                now = len(self.checks.bound_at), len(self.checks.evicted)
                if now != last:
                    last, since = now, trio.current_time()
                await trio.sleep(_LOOK_SECONDS)
            return True
        return False

    async def _run_single(self) -> None:
        """A scheduler that shares nothing finds nothing to place, and nothing to evict."""
        checks = self.checks
        pending, evicted = checks.pending(), len(checks.evicted)
        self.report.pending = len(pending)
        folder = self.folder / "single"
        config = configuration(self.plane, folder, self.plane.url, {})
        with scheduler_process(config, folder / "scheduler.log") as single:
            await trio.to_thread.run_sync(partial(single.wait_until_idle, timeout_seconds=READY_SECONDS))
            await trio.sleep(AFTERWARDS_SECONDS)
        for name in sorted(set(pending) - set(checks.pending())):
            self.report.problems.append(f"{name} was left pending, and a single scheduler has placed it")
        if len(checks.evicted) != evicted:
            self.report.problems.append("a single scheduler has evicted pods that the replicas have not")
