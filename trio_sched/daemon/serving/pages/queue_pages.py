"""``/debug/scheduler/queue``: the pods that wait, or one of them; ``/debug/scheduler/activate``: one is tried now."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from typing import Any

import trio
from attrs import frozen

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.pods.waiting_pods import WaitingPod
from trio_sched.daemon.serving.messages import JSON, NOSNIFF, Request, Response, refusal
from trio_sched.daemon.serving.pages.page_lists import listed
from trio_sched.daemon.serving.status_bodies import indented_json
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.go.text import quote, shortened

log = logging.getLogger(__name__)


class PodNotShown(Exception):
    """There is nothing to show of a pod; the text says why, *status* is that of the response."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


@frozen
class QueuePages:
    """The pages."""

    assembly: Assembly

    async def queue(self, request: Request) -> dict[str, Any]:
        """The pods that wait, by the part of the queue; or the one that ``?pod=NAMESPACE/NAME`` names.

        Raises:
            PodNotShown: that is no name, or the pod is not waited for.
        """
        if request.parameters("pod"):
            return self._one(pod_key(request))
        queue, now = self.assembly.scheduler.queue, trio.current_time()
        backoff = queue.backing_off
        return {
            "active": await listed(queue.active, lambda info: _queued(info, now)),
            "waitingForExtenders": await listed(queue.set_aside, lambda info: _queued(info, now)),
            "backoff": await listed(backoff.pod_backoff_q, lambda info: _queued(info, now)),
            "errorBackoff": await listed(backoff.pod_error_backoff_q, lambda info: _queued(info, now)),
            "unschedulable": await listed(queue.unschedulable.values(), lambda info: _queued(info, now)),
            "pending": await listed(queue.pending.values(), lambda info: _queued(info, now)),
            "waitingOnPermit": await listed(
                self._on_permit(), lambda one: {**_queued(one[0], now), **waits_on_permit(one[1], now)}
            ),
            "nominated": len(queue.nominator),
        }

    async def activate(self, request: Request) -> Response:
        """Try the pod that ``?pod=NAMESPACE/NAME`` names at once, whatever it waits for; shows where it is then.

        405 but for POST, 400 without a name, 404 if no such pod waits, 409 if it cannot be tried.
        """
        if request.method != "POST":
            response = refusal("only POST tries a pod", 405)
            response.headers.append(("allow", "POST"))
            return response
        assembly = self.assembly
        try:
            key = pod_key(request)
            if not assembly.schedule_one.is_running:
                raise PodNotShown("this replica schedules nothing; ask the one that holds the lease", 409)
            before = self._one(key)
        except PodNotShown as error:
            return refusal(str(error), error.status)
        pod = assembly.scheduler.cache.unassigned.get(key)
        if pod is not None:
            log.info("Pod is tried at once, as was asked for", extra={"pod": key, "queue": before["queue"]})
            assembly.scheduler.queue.activate([pod], now=trio.current_time())
            assembly.pods_available.set()
        after = self._one(key)
        body = indented_json({**after, "was": before["queue"]}) + b"\n"
        return Response(status=409 if "gatedBy" in after else 200, headers=[JSON, NOSNIFF], body=body)

    def _one(self, key: str) -> dict[str, Any]:
        now = trio.current_time()
        for part, info in self._places(key):
            if info is not None:
                waiting = self.assembly.waiting.by_uid.get(info.uid) if part == "inFlight" else None
                if waiting is not None:
                    return {"queue": "waitingOnPermit", **_queued(info, now), **waits_on_permit(waiting, now)}
                return {"queue": part, **_queued(info, now)}
        raise PodNotShown(
            f"no pod {quote(shortened(key))} waits here: it has a node, names a scheduler that is none of the "
            "profiles, or does not exist",
            404,
        )

    def _on_permit(self) -> list[tuple[QueuedPodInfo, WaitingPod]]:
        popped = self.assembly.scheduler.queue.popped
        return [(popped[uid], one) for uid, one in self.assembly.waiting.by_uid.items() if uid in popped]

    def _places(self, key: str) -> Iterator[tuple[str, QueuedPodInfo | None]]:
        queue, pod = self.assembly.scheduler.queue, self.assembly.scheduler.cache.unassigned.get(key)
        # A pod that is popped can wait as well: it was deleted, and another one has its name.
        yield "active", queue.active.get(key)
        yield "waitingForExtenders", queue.set_aside.get(key)
        yield "backoff", queue.backing_off.pod_backoff_q.get(key)
        yield "errorBackoff", queue.backing_off.pod_error_backoff_q.get(key)
        yield "unschedulable", queue.unschedulable.get(key)
        yield "pending", queue.pending.get(key)
        yield "inFlight", None if pod is None else queue.popped.get(pod.uid)


def pod_key(request: Request) -> str:
    """The pod that is named.

    Raises:
        PodNotShown: none, or more than one.
    """
    named = request.parameters("pod")
    namespace, slash, name = named[0].partition("/") if len(named) == 1 else ("", "", "")
    if not (namespace and slash and name) or "/" in name:
        raise PodNotShown("name one pod: ?pod=NAMESPACE/NAME", 400)
    return named[0]


def waits_on_permit(waiting: WaitingPod, now: float) -> dict[str, Any]:
    """For what a pod waits on permit."""
    pending = list(waiting.pending())
    return {
        "plugins": [one.plugin for one in pending],
        "secondsOnPermit": round(now - waiting.began, 3),
        "waitsFor": [
            {"plugin": one.plugin, "message": one.message, "secondsLeft": round(one.seconds_left, 3)} for one in pending
        ],
    }


def _queued(info: QueuedPodInfo, now: float) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "pod": info.key,
        "uid": info.uid,
        "priority": info.pod.priority,
        "attempts": info.attempts,
        "secondsInQueue": round(now - info.timestamp, 3),
    }
    if info.rejectors:
        fields["rejectedBy"] = sorted(info.rejectors)
    if info.gating_plugin:
        fields["gatedBy"] = info.gating_plugin
        fields["gatedBecause"] = info.gating_message
    if info.backoff_expiry is not None and math.isfinite(info.backoff_expiry):
        fields["backoffSecondsLeft"] = round(max(0.0, info.backoff_expiry - now), 3)
    return fields
