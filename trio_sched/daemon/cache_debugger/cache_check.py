"""Compares what the scheduler has cached with the API server, now and then and on SIGUSR2; repairs what differs.

Three comparisons, each with what the one before has found right: the objects that the watches have shown with a fresh
list, the engine's cache and queue with these objects, and the columns of each node with the pods on it. None of them
ever finds anything unless there is a bug, here or in the API server.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
import trio
from attrs import define, evolve, field

from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.cache_debugger.cache_dump import dump
from trio_sched.daemon.limits import (
    CACHE_CHECK_SECONDS,
    CACHE_CHECK_SETTLE_SECONDS,
    MAX_CONFIRMED_BY_GET,
    MAX_LOGGED_DRIFT,
    SLICE_SECONDS,
)
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.verbs import get, list_pages
from trio_sched.kube_client.watch import Reflector
from trio_sched.objects.amounts.quantity import QuantityError
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_resources

log = logging.getLogger(__name__)

_Key = tuple[str, str]
"""Namespace and name."""
_STRIDE: Final = 64
"""Objects that are compared before the clock is read."""


class MetadataOnly(msgspec.Struct, frozen=True):
    """Any object, without what is not compared."""

    metadata: ObjectMeta = ObjectMeta()


@define(eq=False)
class Drift:
    """What a check has found."""

    missed_nodes: list[str] = field(factory=list)
    """Names."""
    redundant_nodes: list[str] = field(factory=list)
    missed_pods: list[str] = field(factory=list)
    """UIDs."""
    redundant_pods: list[str] = field(factory=list)
    wrong_sums: list[str] = field(factory=list)
    """Names of nodes whose columns are not the sums over their pods."""
    outdated: list[str] = field(factory=list)
    """Objects that a fresh list has in a newer version, and those that only one side has: ``pods/namespace/name``."""

    def __bool__(self) -> bool:
        return any(self.parts().values())

    def parts(self) -> dict[str, list[str]]:
        """Each list, by the name of its field in the log."""
        return {
            "missedNodes": self.missed_nodes,
            "redundantNodes": self.redundant_nodes,
            "missedPods": self.missed_pods,
            "redundantPods": self.redundant_pods,
            "wrongSums": self.wrong_sums,
            "outdated": self.outdated,
        }


@define(eq=False, kw_only=True)
class CacheCheck:
    """Runs the comparisons, counts and repairs what they find."""

    assembly: Assembly

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            with trio.move_on_after(CACHE_CHECK_SECONDS) as pause:
                await self.assembly.cache_checks.requested.wait()
            try:
                await self.check()
            except KubeClientError as problem:
                log.warning("the cache cannot be compared with a fresh list: %s", problem)
            if not pause.cancelled_caught:
                await dump(self.assembly)

    async def check(self) -> Drift:
        """Compare and repair; returns what differed.

        Raises:
            KubeClientError: there is no fresh list; what can be compared without one has been.
        """
        log.debug("Cache comparer started")
        found = Drift()
        await self._compare_engine(found)
        await self._compare_sums(found)
        try:
            watches = self.assembly.watches
            for reflector in (watches.nodes, watches.pods):
                await self._compare_with_list(reflector, found)
        finally:
            self._report(found)
            self.assembly.cache_checks.count += 1
        log.debug("Cache comparer finished")
        return found

    def _report(self, found: Drift) -> None:
        if not found:
            return
        fields: dict[str, Any] = {}
        for name, things in found.parts().items():
            self.assembly.cache_checks.drift[name] += len(things)
            if things:
                fields[name] = things[:MAX_LOGGED_DRIFT]
            if len(things) > MAX_LOGGED_DRIFT:
                fields[f"{name}Count"] = len(things)
        log.error("Cache mismatch", extra=fields)
        if self.assembly.decisions is not None:
            self.assembly.decisions.state_repaired()

    # --- the engine and the watches ---------------------------------------------------------------------------------

    async def _compare_engine(self, found: Drift) -> None:
        """The cache and the queue hold the objects that the watches have shown, each in the same version."""
        assembly = self.assembly
        table, handlers = assembly.scheduler.cache.table, assembly.event_handlers
        nodes = {node.name: node for node in assembly.watches.nodes.objects}
        for node in nodes.values():
            if node.name in table.row_of:
                continue
            with suppress(QuantityError):  # it is left out, as the log has said
                assembly.scheduler.cache.add_node(node)
                found.missed_nodes.append(node.name)
        for name in table.row_of.keys() - nodes.keys():
            found.redundant_nodes.append(name)
            assembly.scheduler.cache.remove_node(name)
        shown = {pod.uid: pod for pod in assembly.watches.pods.objects}
        async for uid in _in_slices(list(shown)):
            # The object itself may have changed, or be gone, since this began.
            pod = self._shown(shown[uid])
            with suppress(QuantityError):
                if pod is not None and handlers.take_up_if_missed(pod, now=trio.current_time()):
                    found.missed_pods.append(uid)
        async for uid in _in_slices([cached.pod.uid for cached in assembly.scheduler.cache]):
            cached = assembly.scheduler.cache.get(uid)
            if cached is not None and not cached.assumed and self._shown(cached.pod) is None:
                found.redundant_pods.append(uid)
                assembly.scheduler.cache.remove(uid)
        for pod in assembly.scheduler.cache.unassigned.pods():
            if self._shown(pod) is None:
                found.redundant_pods.append(pod.uid)
                assembly.scheduler.cache.drop_unassigned(pod)
                assembly.scheduler.queue.delete(pod)
        assembly.pods_available.set()

    def _shown(self, pod: Pod) -> Pod | None:
        """The version of *pod* that the watch has shown last; None if it is gone."""
        found = self.assembly.watches.pods.known(pod.metadata.namespace, pod.metadata.name)
        return found if found is not None and found.uid == pod.uid else None

    # --- the columns ------------------------------------------------------------------------------------------------

    async def _compare_sums(self, found: Drift) -> None:
        """What the columns say of a node is the sum over its pods."""
        cache = self.assembly.scheduler.cache
        async for name in _in_slices(list(cache.table.row_of)):
            row = cache.table.row_of.get(name)
            if row is not None and not cache.table.sums_are_right(
                row, [pod_resources(one.pod, cache.options) for one in cache.table.pods[row].values()]
            ):
                found.wrong_sums.append(name)
                cache.rebuild_node(name)

    # --- a fresh list -----------------------------------------------------------------------------------------------

    async def _compare_with_list(self, reflector: Reflector[Any], found: Drift) -> None:
        """List the metadata of all objects; what differs for longer than a watch takes is listed again in full."""
        kind: Kind[Any] = evolve(reflector.kind, type=MetadataOnly, transform=None, keep_raw=None)
        listed: dict[_Key, ObjectMeta] = {}
        await list_pages(
            self.assembly.clients.main,
            kind,
            lambda page: listed.update({_key(one.metadata): one.metadata for one in page.objects}),
            metadata_only=True,
        )
        known = {_key(one.metadata): one.metadata for one in reflector.objects}
        suspects = {key: known.get(key) for key in _differing(known, listed)}
        if not suspects:
            return
        await trio.sleep(CACHE_CHECK_SETTLE_SECONDS)
        # What has changed since then is being watched, and is as new as that.
        for key, before in list(suspects.items()):
            if _version(reflector, key) != (before and before.resource_version):
                del suspects[key]
        drifted = await self._confirmed(reflector, kind, suspects)
        if drifted:
            found.outdated += [f"{kind.plural}/{namespace}/{name}" for namespace, name in drifted]
            reflector.list_again()

    async def _confirmed(
        self, reflector: Reflector[Any], kind: Kind[Any], suspects: Mapping[_Key, ObjectMeta | None]
    ) -> list[_Key]:
        """The *suspects* that the API server has in another version than the watch shows, however long it is given."""
        sample = list(suspects)[:MAX_CONFIRMED_BY_GET]
        differing = {key: _version(reflector, key) for key in sample if await self._differs(reflector, kind, key)}
        if not differing:
            return []
        # What was read may be newer than what the watch has shown by less than it takes to show it.
        connected = reflector.connected
        await trio.sleep(CACHE_CHECK_SETTLE_SECONDS)
        if not connected.is_set() or connected is not reflector.connected:
            return []  # a watch that was interrupted is late, and catches up by itself
        confirmed = [
            key
            for key, shown in differing.items()
            if _version(reflector, key) == shown and await self._differs(reflector, kind, key)
        ]
        return confirmed if len(suspects) <= MAX_CONFIRMED_BY_GET or not confirmed else list(suspects)

    async def _differs(self, reflector: Reflector[Any], kind: Kind[Any], key: _Key) -> bool:
        """Whether the API server has the object in a newer version than the watch has shown, or only one has it."""
        namespace, name = key
        stored: ObjectMeta | None = None
        with suppress(NotFound):
            stored = (await get(self.assembly.clients.main, kind, name, namespace=namespace)).metadata
        shown = reflector.known(namespace, name)
        if shown is None or stored is None:
            return shown is not stored
        return _is_older(shown.metadata, stored)


async def _in_slices(things: list[str]) -> AsyncIterator[str]:
    """Each of *things*, with checkpoints in between."""
    slice_ends = trio.current_time() + SLICE_SECONDS
    for i, thing in enumerate(things):
        yield thing
        if i % _STRIDE == 0 and trio.current_time() > slice_ends:
            await trio.lowlevel.checkpoint()
            slice_ends = trio.current_time() + SLICE_SECONDS


def _key(metadata: ObjectMeta) -> _Key:
    return metadata.namespace, metadata.name


def _version(reflector: Reflector[Any], key: _Key) -> str | None:
    """The version that the watch has shown last; None if there is no object."""
    shown = reflector.known(*key)
    return None if shown is None else str(shown.metadata.resource_version)


def _differing(known: Mapping[_Key, ObjectMeta], listed: Mapping[_Key, ObjectMeta]) -> Iterator[_Key]:
    """The keys of objects that only one side has, or that were listed in another version than is known."""
    yield from known.keys() ^ listed.keys()
    for key in known.keys() & listed.keys():
        if known[key].resource_version != listed[key].resource_version:
            yield key


def _is_older(shown: ObjectMeta, stored: ObjectMeta) -> bool:
    if shown.uid != stored.uid:
        return True
    try:
        return int(shown.resource_version) < int(stored.resource_version)
    except ValueError:  # versions that are no numbers cannot be ordered
        return shown.resource_version != stored.resource_version
