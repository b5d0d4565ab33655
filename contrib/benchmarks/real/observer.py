"""Follows binds and events on the API server, and reads the scheduler's clock whenever something arrives."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable

import msgspec
import trio
from attrs import define, field

from contrib.benchmarks.real.workloads import POD_PATH
from trio_sched.kube_client.connection import KubeClient

EVENT_PATH = "/api/v1/namespaces/default/events"
BOUND = "fieldSelector=spec.nodeName%21%3D"
WATCH_SECONDS = 7200
MAX_WATCHES_IN_VAIN = 10


class _Named(msgspec.Struct):
    name: str = ""


class _Metadata(_Named, rename="camel"):
    resource_version: str = ""


class _List(msgspec.Struct):
    metadata: _Metadata


class _Object(msgspec.Struct, rename="camel"):
    """What is needed of a pod, of an event, and of the status in an error."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    involved_object: _Named = msgspec.field(default_factory=_Named)
    reason: str = ""
    message: str = ""


class _WatchEvent(msgspec.Struct):
    type: str
    object: _Object


_decode_list = msgspec.json.Decoder(_List).decode
_decode_event = msgspec.json.Decoder(_WatchEvent).decode


class WatchEnded(Exception):
    """A watch of the benchmark has ended, so the measurement is void."""


@define(eq=False)
class Observer:
    """What the watches have shown.

    Attributes:
        client: of the API server.
        pods: the names of the pods to schedule; binds of others are not counted.
        read_cpu: the CPU seconds of the scheduler up to now.
        bound_at: pod → when its bind arrived, on trio's clock.
        first_cpu: the CPU of the scheduler when the first bind or event arrived.
        scheduled: pods with an event that says so.
        refused: pods with an event that says that they could not be scheduled.
        reasons: how many events of each reason have arrived.
        last_at: when the last bind or event arrived.
        last_cpu: the CPU of the scheduler at that time.
    """

    client: KubeClient
    pods: set[str]
    read_cpu: Callable[[], float]
    bound_at: dict[str, float] = field(factory=dict, init=False)
    first_cpu: float = field(default=math.nan, init=False)
    scheduled: set[str] = field(factory=set, init=False)
    refused: set[str] = field(factory=set, init=False)
    reasons: Counter[str] = field(factory=Counter, init=False)
    last_at: float = field(default=0.0, init=False)
    last_cpu: float = field(default=math.nan, init=False)
    _is_open: defaultdict[str, bool] = field(factory=lambda: defaultdict(bool), init=False)

    async def watch_pods(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the pods that have a node; started when the watch is open."""
        await self._watch(POD_PATH, BOUND, self._take_pods, task_status)

    async def watch_events(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the events; started when the watch is open."""
        await self._watch(EVENT_PATH, "", self._take_events, task_status)

    async def _watch(
        self,
        path: str,
        selector: str,
        take: Callable[[list[_WatchEvent]], None],
        task_status: trio.TaskStatus[None],
    ) -> None:
        listed = _decode_list(await self.client.call(b"GET", f"{path}?limit=1".encode()))
        version = listed.metadata.resource_version
        in_vain = 0
        while in_vain < MAX_WATCHES_IN_VAIN:  # the API server ends the watch of a client that falls behind
            before = version
            version = await self._follow(path, selector, version, take, task_status)
            in_vain = in_vain + 1 if version == before else 0
        raise WatchEnded(f"{path}: the server has ended the watch {in_vain} times without a change")

    async def _follow(
        self,
        path: str,
        selector: str,
        version: str,
        take: Callable[[list[_WatchEvent]], None],
        task_status: trio.TaskStatus[None],
    ) -> str:
        """Take what happens after *version* until the server ends the watch.

        Returns:
            The resource version of the last change.
        """
        query = f"watch=1&timeoutSeconds={WATCH_SECONDS}&resourceVersion={version}&{selector}".rstrip("&")
        waiting: list[bytes] = []
        async with self.client.stream(f"{path}?{query}".encode()) as stream:
            if not self._is_open[path]:
                self._is_open[path] = True
                task_status.started()
            while piece := await stream.receive():
                first, newline, rest = piece.partition(b"\n")
                waiting.append(first)
                if not newline:
                    continue
                *lines, incomplete = rest.split(b"\n")
                changes = [_decode_event(line) for line in (b"".join(waiting), *lines)]
                waiting = [incomplete]
                if problem := next((change.object.message for change in changes if change.type == "ERROR"), ""):
                    raise WatchEnded(f"{path}: {problem}")
                self.last_at, self.last_cpu = trio.current_time(), self.read_cpu()
                if math.isnan(self.first_cpu):
                    self.first_cpu = self.last_cpu
                take(changes)
                version = changes[-1].object.metadata.resource_version
        return version

    def _take_pods(self, changes: list[_WatchEvent]) -> None:
        for change in changes:
            name = change.object.metadata.name
            if name in self.pods:
                self.bound_at.setdefault(name, self.last_at)

    def _take_events(self, changes: list[_WatchEvent]) -> None:
        for change in changes:
            event = change.object
            self.reasons[event.reason] += 1
            if event.reason == "Scheduled":
                self.scheduled.add(event.involved_object.name)
            elif event.reason == "FailedScheduling":
                self.refused.add(event.involved_object.name)
