"""Binds pods through the API server, and looks up whether a bind without a response took effect."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from random import Random
from typing import Final

import trio
from attrs import define

from trio_sched.daemon.limits import MAX_BIND_LOOK_UP_PAUSE_SECONDS, MAX_BIND_LOOK_UP_SECONDS
from trio_sched.daemon.logs.log_lines import log_line
from trio_sched.kube_client import verbs
from trio_sched.kube_client.binding import bind
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    Conflict,
    ConnectionFailed,
    Forbidden,
    KubeClientError,
    NotFound,
    ServerError,
)
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.retry import BackoffManager
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure
from trio_sched.verbosity import V3

log = logging.getLogger(__name__)


_PASSING_CODES: Final = frozenset({500, 503})
_RETRY_JITTER: Final = 0.1

Bind = Callable[[Pod, str], Awaitable[Status | None]]


@define(eq=False, kw_only=True)
class Binder:
    """Implements `Handle.bind`, which DefaultBinder calls."""

    client: KubeClient
    random: Random
    retry_seconds: tuple[float, ...] = ()
    """How long to wait before a bind that the server could not handle is sent again, each with jitter on top."""

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Bind *pod* to *node_name*; returns None if it is bound there now, by this request or another one."""
        if log.isEnabledFor(V3):
            log_line(log, V3, "Attempting to bind pod to node", {"pod": pod.key, "node": node_name})
        try:
            await self._send(pod, node_name)
        except (Conflict, ServerError) as refused:
            # A conflict can be caused by an earlier attempt that took effect although its response was lost.
            return None if await self._is_bound(pod, node_name) else failure(refused)
        except ConnectionFailed as broken:
            if broken.may_have_reached_server and await self._is_bound(pod, node_name):
                return None
            return failure(broken)
        except KubeClientError as refused:
            return failure(refused)
        return None

    async def _send(self, pod: Pod, node_name: str) -> None:
        for pause_seconds in self.retry_seconds:
            try:
                return await bind(self.client, namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node_name)
            except (ServerError, ConnectionFailed) as problem:
                if not _may_pass(problem):
                    raise
            await trio.sleep(pause_seconds * (1 + _RETRY_JITTER * self.random.random()))
        await bind(self.client, namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node_name)

    async def _is_bound(self, pod: Pod, node_name: str) -> bool:
        """Look the pod up until there is a response; it is assumed meanwhile, so no other pod gets its place.

        Returns:
            False, too, if that cannot be found out: a bind of a pod that has a node is refused by the API server.
        """
        with trio.move_on_after(MAX_BIND_LOOK_UP_SECONDS):
            return await self._look_up(pod, node_name)
        log.error("cannot find out whether the pod was bound", extra={"pod": pod.key, "node": node_name})
        return False

    async def _look_up(self, pod: Pod, node_name: str) -> bool:
        backoff = BackoffManager(self.random, cap_seconds=MAX_BIND_LOOK_UP_PAUSE_SECONDS)
        while True:
            try:
                found = await verbs.get(self.client, POD_KIND, pod.name, namespace=pod.namespace)
            except NotFound:
                return False
            except Forbidden as problem:
                log.error("cannot find out whether the pod was bound: %s", problem, extra={"pod": pod.key})
                return False
            except KubeClientError as problem:
                log.warning("cannot find out whether the pod was bound, retrying: %s", problem, extra={"pod": pod.key})
                await trio.sleep(backoff.pause_seconds(trio.current_time()))
                continue
            return found.uid == pod.uid and found.node_name == node_name != ""


def _may_pass(problem: ServerError | ConnectionFailed) -> bool:
    """Whether the same request may succeed at once: the server failed, or did not even take the connection."""
    if isinstance(problem, ServerError):
        return problem.code in _PASSING_CODES
    return not problem.may_have_reached_server and not problem.timed_out
