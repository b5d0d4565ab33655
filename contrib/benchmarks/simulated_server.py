"""The simulator in a process of its own, over TLS, remote-controlled by lines of JSON on standard input.

A line calls a command of :class:`Cluster` by name, ``{"command": "create_nodes", "count": 10}``; the answer is one line
of JSON, written when the command is done. Commands run one after the other.
"""

from __future__ import annotations

import gc
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import trio
from attrs import define, field

from contrib.benchmarks.fast_front import FastFront
from contrib.benchmarks.other_replicas import OtherReplicas, are_shared_out
from contrib.benchmarks.workload import APPS, PRIORITY_CLASS, new_pod, node, running
from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, populate, serve, wall_clock
from trio_sched.simulator.registry.lifecycle import write_fields
from trio_sched.simulator.storage.object_store import Change, StoredObject

FAST = "--fast"
AT_ONCE = 10
"""Objects that are created before requests of the scheduler get their turn."""


@define(eq=False)
class Cluster:
    """The commands, and when each pod was created and bound."""

    server: ApiServer = field(factory=lambda: ApiServer(now=wall_clock))
    _created_at: dict[str, float] = field(factory=dict, init=False)
    _nominated: set[str] = field(factory=set, init=False)
    _waited_seconds: list[float] = field(factory=list, init=False)
    _were_nominated: list[bool] = field(factory=list, init=False)
    _first_bound_at: float = field(default=0.0, init=False)
    _last_bound_at: float = field(default=0.0, init=False)
    _pods: int = field(default=0, init=False)
    _scheduled_events: int = field(default=0, init=False)
    _others: OtherReplicas | None = field(default=None, init=False)
    _changed: trio.Event = field(factory=trio.Event, init=False)

    def __attrs_post_init__(self) -> None:
        self.server.store.collection("pods").listen(self._on_pod)
        self.server.store.collection("events").listen(self._on_event)

    def _on_pod(self, change: Change) -> None:
        key, now = change.current.key, time.monotonic()
        is_bound = bool(change.current.fields["spec"].get("nodeName"))
        if change.type == "ADDED" and not is_bound:
            self._created_at[key] = now
        elif change.type == "MODIFIED" and is_bound and key in self._created_at:
            self._waited_seconds.append(now - self._created_at.pop(key))
            self._were_nominated.append(key in self._nominated)
            self._nominated.discard(key)
            self._first_bound_at = self._first_bound_at or now
            self._last_bound_at = now
            self._changed.set()
        elif change.type == "MODIFIED" and change.current.fields["status"].get("nominatedNodeName"):
            self._nominated.add(key)

    def _on_event(self, change: Change) -> None:
        if change.type == "ADDED" and change.current.fields.get("reason") == "Scheduled":
            self.count_event()

    def count_event(self) -> None:
        """An event says that a pod was scheduled."""
        self._scheduled_events += 1
        self._changed.set()

    async def create_nodes(self, count: int, type: str = "large") -> None:
        """Create nodes; all commands that create pods on nodes come after it."""
        await self._create([node(i, type) for i in range(count)])

    async def create_priority_class(self) -> None:
        """Create the priority class of preemptors."""
        await self._create([PRIORITY_CLASS])

    async def create_running_pods(self, count: int, type: str = "plain") -> None:
        """Create pods that run, on one node after the other."""
        names = list(self.server.store.collection("nodes").sorted_keys())
        made = islice(zip(self._next_pods(type), cycle(names), strict=False), count)
        await self._create([running(pod, on_node) for pod, on_node in made])

    async def create_pods(self, count: int, type: str = "plain") -> None:
        """Create pods to be scheduled, as fast as possible."""
        await self._create(list(islice(self._next_pods(type), count)))

    async def create_pods_steadily(self, per_second: float, seconds: float, type: str = "plain") -> None:
        """Create pods to be scheduled, one by one at equal distances."""
        pods = self._next_pods(type)
        self._waited_seconds.clear()
        self._were_nominated.clear()
        await self._steadily(per_second, seconds, lambda: populate(self.server, [next(pods)]))

    async def update_pods_steadily(self, per_second: float, seconds: float) -> int:
        """Change the status of running pods, as their kubelets would; returns the number of changes."""
        return await self._update_steadily("pods", _after_restart, per_second, seconds)

    async def update_nodes_steadily(self, per_second: float, seconds: float) -> int:
        """Change the status of nodes as a heartbeat does; returns the number of changes."""
        return await self._update_steadily("nodes", self._after_heartbeat, per_second, seconds)

    async def wait_bound(self, count: int, seconds: float) -> tuple[int, float, float]:
        """Wait until *count* pods have been bound, or for *seconds*; how many, when the first, when the last."""
        await self._wait_until(lambda: len(self._waited_seconds) >= count, seconds)
        return len(self._waited_seconds), self._first_bound_at, self._last_bound_at

    async def wait_events(self, count: int, seconds: float) -> int:
        """Wait until *count* events say that a pod was scheduled, or for *seconds*; returns how many do."""
        await self._wait_until(lambda: self._scheduled_events >= count, seconds)
        return self._scheduled_events

    async def are_shared_out(self, shards: int, replicas: int) -> bool:
        """Whether all shards are held, by so many replicas or more."""
        return are_shared_out(self.server, shards, replicas)

    async def hold_other_shards(self, shards: int) -> None:
        """Leave one shard to take; `create_shared_pods` binds the pods of the others."""
        self._others = OtherReplicas(
            server=self.server,
            shards=shards,
            unbound=lambda: len(self._created_at),
            wait_until=partial(self._wait_until, seconds=math.inf),
        )
        self._others.hold_shards()

    async def create_shared_pods(self, count: int) -> int:
        """Create pods of all shards; returns how many are of the one that was left."""
        assert self._others is not None
        known = list(self.server.store.collection("pods").objects.values())
        return await self._others.create_pods(known[:APPS], count)

    async def seconds_to_bind(self) -> list[float]:
        """From the creation of each pod to its bind."""
        return self._waited_seconds

    async def were_nominated(self) -> list[bool]:
        """Whether each of these pods was nominated to its node before."""
        return self._were_nominated

    async def _wait_until(self, reached: Callable[[], bool], seconds: float) -> None:
        with trio.move_on_after(seconds):
            while not reached():
                self._changed = trio.Event()
                await self._changed.wait()

    def _next_pods(self, type: str) -> Iterator[Json]:
        while True:
            self._pods += 1
            yield new_pod(type, self._pods - 1)

    async def _create(self, manifests: list[Json]) -> None:
        for i in range(0, len(manifests), AT_ONCE):
            populate(self.server, manifests[i : i + AT_ONCE])
            await trio.lowlevel.checkpoint()

    async def _update_steadily(
        self, plural: str, status_after: Callable[[Json], Json], per_second: float, seconds: float
    ) -> int:
        state, resource = self.server.state, self.server.state.types.core(plural)
        keys = cycle(sorted(self.server.store.collection(plural).objects, key=lambda key: key[::-1]))

        def update() -> None:
            stored: StoredObject = self.server.store.collection(plural).objects[next(keys)]
            write_fields(state, resource, stored, status=status_after(stored.fields["status"]))

        return await self._steadily(per_second, seconds, update)

    def _after_heartbeat(self, status: Json) -> Json:
        moment = self.server.state.timestamp()
        return {**status, "conditions": [{**one, "lastHeartbeatTime": moment} for one in status["conditions"]]}

    async def _steadily(self, per_second: float, seconds: float, act: Callable[[], object]) -> int:
        began, count = trio.current_time(), round(per_second * seconds)
        for i in range(count):
            await trio.sleep_until(began + i / per_second)
            act()
        await trio.sleep_until(began + seconds)
        return count


def _after_restart(status: Json) -> Json:
    container, *others = status["containerStatuses"]
    restarts = container["restartCount"] + 1
    readiness = {type_: str(restarts % 2 == 0) for type_ in ("ContainersReady", "Ready")}
    return {
        **status,
        "conditions": [{**one, "status": readiness.get(one["type"], one["status"])} for one in status["conditions"]],
        "containerStatuses": [{**container, "restartCount": restarts}, *others],
    }


async def main(folder: Path, *, is_fast: bool) -> None:
    """Serve with the certificate in *folder*, print the address, carry out commands until the input ends."""
    cluster = Cluster()
    async with trio.open_nursery() as nursery:
        serving = partial(serve, cluster.server, certificate=folder / "server.pem", private_key=folder / "server.key")
        if is_fast:
            serving = partial(FastFront(cluster.server, cluster.count_event).serve, folder)
        print(await nursery.start(serving), flush=True)
        await _run_commands(cluster)
        nursery.cancel_scope.cancel()


async def _run_commands(cluster: Cluster) -> None:
    waiting = b""
    async with trio.lowlevel.FdStream(os.dup(0)) as commands:
        while data := await commands.receive_some():
            *lines, waiting = (waiting + data).split(b"\n")
            for line in lines:
                arguments = json.loads(line)
                answer = await getattr(cluster, arguments.pop("command"))(**arguments)
                print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    gc.disable()  # a full collection of 50,000 pods takes 0.6 s, and the pods of that time then come all at once
    trio.run(partial(main, Path(sys.argv[1]), is_fast=FAST in sys.argv))
