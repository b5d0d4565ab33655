"""Writes about one version of a pod, sent again until the API server says what became of them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random
from typing import Final, TypeVar

import trio
from attrs import define

from trio_sched.daemon.sharding.held_shard import HeldShard
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.sharding.takeover import MAX_PAUSE_SECONDS, Takeover
from trio_sched.engine.sharding.reserved_places import place_note
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client import verbs
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import (
    Conflict,
    ConnectionFailed,
    KubeClientError,
    NotFound,
    ServerError,
    TooManyRequests,
    WriteNotPermitted,
)
from trio_sched.kube_client.kinds import POD_KIND
from trio_sched.kube_client.retry import BackoffManager
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import join_group, stay_in_group

log = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_VERSIONS: Final = 20
"""So often a pod may get another version, from whoever writes its status, before it is given up."""
_MAX_FAILURES: Final = 6
"""So often the server may fail before it is made sure that nothing of it can take effect any more."""
_RESENT: Final = (ServerError, ConnectionFailed, TooManyRequests, WriteNotPermitted)


class NoLongerOwn(TrioSchedError):
    """The shards that a write was decided for were lost: whoever has them now sees to it."""

    def __str__(self) -> str:
        return "the shards that this was decided for have another holder by now"


class PodHasChanged(TrioSchedError):
    """What was decided does not hold any more."""

    def __init__(self, why: str, found: Pod | None = None) -> None:
        super().__init__(why)
        self.why, self.found = why, found

    def __str__(self) -> str:
        return self.why


@contextmanager
def ends(end: Callable[[], object]) -> Iterator[None]:
    """Call *end* after the block, unless it was cancelled: what it has sent can still arrive then."""
    try:
        yield
    except trio.Cancelled:
        raise
    except BaseException:
        end()
        raise
    end()


@define(eq=False, kw_only=True)
class VersionedWrites:
    """Sends them while the shards are held that they were decided for."""

    client: KubeClient
    elector: ShardElector
    takeover: Takeover
    random: Random

    async def send(
        self,
        pod: Pod,
        tokens: tuple[HeldShard, ...],
        write: Callable[[str], Awaitable[T]],
        done: Callable[[Pod], bool],
        check: Callable[[Pod], None] | None = None,
    ) -> T | Pod:
        """Have *write* send something about *pod*, as it was when it was decided on.

        Args:
            pod: as it was then; versions in which nothing changed that matters are as good.
            tokens: the shards that it was decided for.
            write: sends it for a resource version.
            done: whether a version of the pod shows that it has taken effect.
            check: raises `PodHasChanged` if it is not to be sent for another version; None: see `pending_as_before`.

        Returns:
            What *write* has returned, or the pod as it was found once it was done.

        Raises:
            NoLongerOwn: the shards were lost before.
            PodHasChanged: it can have no effect any more.
            KubeClientError: the server refuses it.
        """
        backoff = BackoffManager(self.random, initial_seconds=0.1, cap_seconds=MAX_PAUSE_SECONDS)
        version, versions, failures = pod.metadata.resource_version, 0, 0
        while True:
            if not self.elector.are_held(tokens):
                # Whoever has the lost shard fences the pod, but the room on a node that is kept must not be given away
                # before that is done.
                if failures:
                    return await self._give_up(pod, tokens, done, NoLongerOwn())
                raise NoLongerOwn
            try:
                with self.elector.permitting(tokens):
                    return await write(version)
            except Conflict as problem:
                failures = 0  # what was sent before was for a version that is no more
                found = await self._look_up(pod, tokens)
                if done(found):
                    return found
                if check is None:
                    pending_as_before(pod, found)
                else:
                    check(found)
                versions += 1
                if versions >= _MAX_VERSIONS or found.metadata.resource_version == version:
                    raise PodHasChanged(str(problem), found) from problem
                version = found.metadata.resource_version
            except _RESENT as problem:
                failures += not isinstance(problem, WriteNotPermitted)
                if failures >= _MAX_FAILURES:
                    return await self._give_up(pod, tokens, done, problem)
                log.debug("cannot write about a pod, retrying: %s", problem, extra={"pod": pod.key})
                await trio.sleep(backoff.pause_seconds(trio.current_time()))
            except KubeClientError as problem:
                if failures and not isinstance(problem, NotFound):  # an earlier request can still arrive
                    return await self._give_up(pod, tokens, done, problem)
                raise

    async def _give_up(
        self, pod: Pod, tokens: tuple[HeldShard, ...], done: Callable[[Pod], bool], problem: TrioSchedError
    ) -> Pod:
        """Make sure that nothing that was sent can take effect any more; returns the pod if it has before.

        Raises:
            NoLongerOwn: all shards were lost before.
            TrioSchedError: *problem*, if it has not.
        """
        why = f"gave up: {problem}"
        stored = await self.takeover.fence(pod, why, tokens, any_of_them=True)
        if stored is None:
            raise NoLongerOwn from problem
        if done(stored):
            return stored
        raise problem

    async def _look_up(self, pod: Pod, tokens: tuple[HeldShard, ...]) -> Pod:
        backoff = BackoffManager(self.random, initial_seconds=0.1, cap_seconds=MAX_PAUSE_SECONDS)
        while True:
            try:
                return await verbs.get(self.client, POD_KIND, pod.name, namespace=pod.namespace)
            except NotFound as problem:
                raise PodHasChanged("the pod is gone") from problem
            except KubeClientError as problem:
                log.warning("cannot look up a pod, retrying: %s", problem, extra={"pod": pod.key})
                await trio.sleep(backoff.pause_seconds(trio.current_time()))
            if not self.elector.are_held(tokens):
                raise NoLongerOwn


def pending_as_before(pod: Pod, found: Pod) -> None:
    """Check that what was decided for *pod*, which has no node, holds for the version *found*, too.

    Raises:
        PodHasChanged: it does not.
    """
    if found.uid != pod.uid:
        raise PodHasChanged("the pod was deleted and created again", found)
    if found.node_name:
        raise PodHasChanged(f"the pod is on node {found.node_name} already", found)
    if found.metadata.deletion_timestamp is not None:
        raise PodHasChanged("the pod is being deleted", found)
    if found.spec != pod.spec:  # only watches show a reference to a workload as the group that it stands for
        join_group(found)
        stay_in_group(found, pod)
    if found.spec != pod.spec or found.metadata.labels != pod.metadata.labels:
        raise PodHasChanged("the pod was changed", found)


def nominated_as_before(pod: Pod, found: Pod) -> None:
    """The same, and it is nominated to the same node.

    Raises:
        PodHasChanged: it does not.
    """
    pending_as_before(pod, found)
    if found.nominated_node_name != pod.nominated_node_name:
        raise PodHasChanged("the nomination of the pod was taken back", found)


def place_as_before(pod: Pod, found: Pod) -> None:
    """The same, and the same is noted about its place there.

    Raises:
        PodHasChanged: it does not.
    """
    nominated_as_before(pod, found)
    if place_note(found) != place_note(pod):
        raise PodHasChanged("the pod has another place on the node by now", found)
