"""Binds pods through the API server, and finds out what became of a bind whose answer was lost."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from random import Random

import trio
from attrs import define

from trio_sched.kube_client import verbs
from trio_sched.kube_client.binding import bind
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    ApiError,
    Conflict,
    ConnectionFailed,
    CredentialsError,
    KubeClientError,
    NotFound,
    ServerError,
)
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.retry import Backoff
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

log = logging.getLogger(__name__)

LOOK_UP_PAUSE_SECONDS = 5.0
"""The longest pause between looks at a pod whose bind got no answer; it is one request."""

Bind = Callable[[Pod, str], Awaitable[Status | None]]


@define(eq=False)
class Binder:
    """What DefaultBinder reaches through its handle."""

    client: KubeClient
    random: Random

    async def bind(self, pod: Pod, node_name: str) -> Status | None:
        """Put *pod* on *node_name*; None if it is there now, whoever saw to it."""
        try:
            await bind(self.client, namespace=pod.namespace, name=pod.name, uid=pod.uid, node=node_name)
        except (Conflict, ServerError) as refused:
            # A conflict can be our own bind that went through although its answer was lost on the way.
            return None if await self._is_bound(pod, node_name) else failure(refused)
        except ConnectionFailed as broken:
            if broken.may_have_reached_server and await self._is_bound(pod, node_name):
                return None
            return failure(broken)
        except KubeClientError as refused:
            return failure(refused)
        return None

    async def _is_bound(self, pod: Pod, node_name: str) -> bool:
        """Ask until there is an answer: the pod counts on its node meanwhile, so nothing can be bound twice."""
        backoff = Backoff(self.random, cap_seconds=LOOK_UP_PAUSE_SECONDS)
        while True:
            try:
                found = await verbs.get(self.client, POD_KIND, pod.name, namespace=pod.namespace)
            except NotFound:
                return False
            except (ApiError, ConnectionFailed, CredentialsError) as problem:
                log.warning("cannot find out whether pod %s was bound, asking again: %s", pod.key, problem)
                await trio.sleep(backoff.pause_seconds(trio.current_time()))
                continue
            return found.uid == pod.uid and found.node_name == node_name != ""
