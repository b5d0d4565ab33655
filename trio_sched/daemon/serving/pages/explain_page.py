"""``/debug/scheduler/explain``: why a pod is pending, or where it is, and what would change that."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
import trio
from attrs import define, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.process_copy import CopyFailed, ProcessCopy
from trio_sched.daemon.serving.messages import JSON, NOSNIFF, Request, Response, refusal
from trio_sched.daemon.serving.pages.queue_pages import PodNotShown, pod_key
from trio_sched.daemon.serving.status_bodies import indented_json
from trio_sched.daemon.watching.written_objects import written_as
from trio_sched.documents.json_values import Json
from trio_sched.engine.queue.pending_pods import pending_pods
from trio_sched.explanation.commands import Kubectl, Workload, workload_of
from trio_sched.explanation.data import explanation_as_data
from trio_sched.explanation.explanation import Waiting, explain
from trio_sched.explanation.owners import controller_of
from trio_sched.explanation.text import Layout, explanation_text
from trio_sched.go.text import quote, shortened
from trio_sched.objects.pod import Pod
from trio_sched.objects.timestamps import parse_time
from trio_sched.plugin_api.pending_pods import QueueState

_AT_ONCE: Final = 2
"""Explanations that are worked on at the same time; others wait."""
_FEW: Final = 4
"""So many may wait: who asks for the live page is told to come again instead."""
_TIMEOUT_SECONDS: Final = 20.0
_MAX_NODES: Final = 20
_OLD_SECONDS: Final = 1.0
"""From this age on an explanation says how old it is."""
_Question = tuple[str, str, str, list[str], Waiting | None, bool]
"""Name, UID and version of the pod, the nodes that are asked about, what the queue knows, and whether as text."""
_PLAIN: Final = ("content-type", "text/plain; charset=utf-8")


@define(eq=False)
class ExplainPage:
    """The page; it is made in a copy of the process, so that pods are scheduled meanwhile.

    While many are scheduled the answer is that of up to five seconds ago, and says so.
    """

    assembly: Assembly
    attempts_per_second: Callable[[], float | None] = lambda: None
    """How many pods are tried while others wait; None if that is not known."""
    _limit: trio.CapacityLimiter = field(factory=lambda: trio.CapacityLimiter(_AT_ONCE), init=False)
    _copy: ProcessCopy = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._copy = ProcessCopy(self._answer, self.assembly.metrics.recorder.count_attempts)

    @property
    def is_busy(self) -> bool:
        """Whether another explanation would have to wait behind some that do."""
        return self._limit.statistics().tasks_waiting >= _FEW

    async def explain(self, request: Request) -> Response:
        """The explanation of the pod that ``?pod=NAMESPACE/NAME`` names, as JSON, or with ``&output=text`` as text.

        ``&node=NODE``, possibly repeated, asks why not there. 400 without a name, 404 if there is no such pod, 503 if
        the caches are not filled yet or there is no result.
        """
        assembly = self.assembly
        nodes = request.parameters("node")[:_MAX_NODES]
        try:
            key = pod_key(request)
            if not assembly.synced.is_set():
                raise PodNotShown("the caches are not filled yet; try again in a moment", 503)
            pod = self._pod(key)
        except PodNotShown as error:
            return refusal(str(error), error.status)
        async with self._limit:
            is_text = request.parameter("output") == "text"
            asked = (key, pod.uid, pod.metadata.resource_version, nodes, self.waiting(pod), is_text)
            question = msgspec.msgpack.encode(asked)
            try:
                for is_new in (False, True):
                    body = await self._copy.ask(question, timeout_seconds=_TIMEOUT_SECONDS, is_new=is_new)
                    if body:
                        break
                else:
                    return refusal(f"pod {key} has changed meanwhile; ask again", 503)
            except CopyFailed as failed:
                return refusal(f"pod {key} could not be explained: {failed}", 503)
        return Response(headers=[_PLAIN if is_text else JSON, NOSNIFF], body=body)

    def _pod(self, key: str) -> Pod:
        namespace, _, name = key.partition("/")
        found: Pod | None = self.assembly.watches.pods.by_name.get((namespace, name))
        if found is None:
            raise PodNotShown(f"there is no pod {quote(shortened(key))}, or it has finished", 404)
        return found

    def _answer(self, question: bytes) -> bytes:
        """Runs in the copy, up to the last byte of the page; empty if it does not have the pod as it is now."""
        key, uid, version, nodes, waiting, is_text = msgspec.msgpack.decode(question, type=_Question)
        try:
            pod = self._pod(key)
        except PodNotShown:
            return b""
        if (pod.uid, pod.metadata.resource_version) != (uid, version):
            return b""
        data = self.explained(pod, nodes, waiting, age_seconds=self._copy.age_seconds)
        return explanation_text(data, Layout()).encode(errors="replace") if is_text else indented_json(data) + b"\n"

    def explained(self, pod: Pod, nodes: Sequence[str], waiting: Waiting | None, *, age_seconds: float = 0.0) -> Json:
        """The explanation as JSON, worked out here, where everything is as it was *age_seconds* ago."""
        found = explain(self.assembly.scheduler, pod, scores_of=nodes)
        found.waiting = waiting
        if age_seconds >= _OLD_SECONDS:
            found.notes.append(f"this is the cluster as it was {age_seconds:.0f} s ago; many pods are scheduled now")
        if self.assembly.extenders is not None:
            found.notes.append("extenders are not asked here; they may refuse nodes, too")
        kubectl = Kubectl(written=written_as(self.assembly.watches.served))
        return explanation_as_data(found, self._workload(pod), kubectl)

    def _workload(self, pod: Pod) -> Workload | None:
        controller, cache = controller_of(pod), self.assembly.scheduler.object_cache
        is_known = controller is not None and controller.kind == "ReplicaSet" and "ReplicaSet" in cache.kinds
        replica_set = cache.get("ReplicaSet", controller.name, pod.namespace) if controller and is_known else None
        return workload_of(pod, replica_set)

    def waiting(self, pod: Pod) -> Waiting | None:
        """What the queue knows of *pod*."""
        if pod.node_name:
            return None
        assembly, now = self.assembly, trio.current_time()
        queue = assembly.scheduler.queue
        (seen,) = pending_pods(queue, [pod], now)
        created = parse_time(pod.metadata.creation_timestamp or "")
        since = now - seen.added_at if created is None else assembly.wall_clock().timestamp() - created
        again = seen.backoff_ends_at
        details: list[str] = []
        on_permit = assembly.waiting.by_uid.get(pod.uid)
        state: str = seen.state.value
        if on_permit is not None:
            state = "Permit"
            for one in on_permit.pending():
                why = f": {one.message}" if one.message else ""
                details.append(f"{one.plugin} lets it wait for up to {one.seconds_left:.0f} s more{why}")
        if seen.state is QueueState.UNSCHEDULABLE:
            info = queue.unschedulable.get(pod.key)
            again = None if info is None else info.timestamp + queue.max_in_unschedulable_seconds
        history = [
            f"{now - one.at:.0f} s ago, after {one.woken_by or 'it came'}: {one.message}"
            for one in assembly.attempts.of(pod.uid)
        ]
        ahead = 0
        if seen.state is QueueState.ACTIVE:
            ahead = queue.active.ahead_of(pod.key) if pod.key in queue.active else len(queue.active)
        rate = self.attempts_per_second()
        return Waiting(
            state=state,
            attempts=seen.attempts,
            since_seconds=max(since, 0.0),
            again_in_seconds=None if again is None or not math.isfinite(again) else max(again - now, 0.0),
            ahead=ahead,
            turn_in_seconds=ahead / rate if ahead and rate is not None else None,
            details=tuple(details),
            history=tuple(history),
        )
