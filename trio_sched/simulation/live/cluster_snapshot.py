"""The state of a cluster at one moment, and a scheduler that knows it; nothing runs, and nothing is written."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from itertools import chain
from random import Random
from typing import Any

import msgspec
from attrs import define, field

from trio_sched.daemon.assemble import assemble
from trio_sched.daemon.assembly import Assembly
from trio_sched.daemon.settings import DaemonSettings
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.errors import TrioSchedError
from trio_sched.kube_client.kinds import NODE_KIND, POD_KIND, Kind
from trio_sched.objects.changes import Change
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_groups.workload_groups import PLURAL as WORKLOADS
from trio_sched.objects.pod_groups.workload_groups import Workload, with_groups_of_workloads
from trio_sched.plugin_api.custom_resources import Watched, plural_of
from trio_sched.simulation.explained_kinds import EXPLAINED_KINDS
from trio_sched.simulation.simulated_run import in_process_clients
from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.manifests.manifests import Manifest
from trio_sched.simulator.storage.object_store import ObjectStore
from trio_sched.simulator.storage.resource_types import collection_of

_WORKLOADS: Kind[Any] = Kind(
    group="scheduling.k8s.io", version="v1alpha1", plural=WORKLOADS, namespaced=True, type=Workload
)


@define(eq=False, kw_only=True)
class ClusterSnapshot:
    """Objects as they were at one moment."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    """Without those that have finished."""
    others: Mapping[Watched, Sequence[Any]] = field(factory=dict)
    """The name under which plugins read objects → these."""


Objects = Callable[[Kind[Any]], Iterable[Any]]
"""Gives the objects of a kind."""


def snapshot_of(objects: Objects, wanted: Iterable[Watched]) -> ClusterSnapshot:
    """What a scheduler looks at.

    Args:
        objects: gives the objects of a kind.
        wanted: the kinds that plugins read, besides pods and nodes.
    """
    others: dict[Watched, Sequence[Any]] = {name: list(objects(kind)) for name, kind in EXPLAINED_KINDS.items()}
    for resource in wanted:
        found = kind_of(resource)
        if found is not None:
            others[found[0]] = list(objects(found[1]))
    pods = [pod for pod in objects(POD_KIND) if not pod.is_terminal]
    if "PodGroup" in others:
        others["PodGroup"] = with_groups_of_workloads([*others["PodGroup"], *objects(_WORKLOADS)], pods)
    return ClusterSnapshot(nodes=list(objects(NODE_KIND)), pods=pods, others=others)


def objects_of_store(store: ObjectStore) -> Objects:
    """The objects of an embedded API server."""

    def objects(kind: Kind[Any]) -> Iterable[Any]:
        name = collection_of(kind.group, kind.version, kind.plural)
        decode = msgspec.json.Decoder(kind.type).decode
        for stored in store.collection(name).in_order():
            raw = stored.encoded(b"{")
            one = decode(raw)
            if kind.transform is not None:
                one = kind.transform(one, None)
            yield one if kind.keep_raw is None else kind.keep_raw(one, raw)

    return objects


def objects_of_dump(manifests: Iterable[Manifest]) -> Objects:
    """The objects that an API server had.

    They are read when their kind is asked for; then `DumpError` says which of them are none.
    """
    plurals: dict[tuple[str, str], list[Manifest]] = {}
    for one in manifests:
        key = str(one.fields.get("apiVersion")), plural_of(str(one.fields.get("kind")))
        plurals.setdefault(key, []).append(one)

    def objects(kind: Kind[Any]) -> Iterable[Any]:
        for one in plurals.get((kind.api_version, kind.plural), ()):
            try:
                made = msgspec.convert(one.fields, kind.type)
            except msgspec.ValidationError as problem:
                raise DumpError(str(one.problem(str(problem)))) from problem
            if kind.transform is not None:
                made = kind.transform(made, None)
            yield made if kind.keep_raw is None else kind.keep_raw(made, msgspec.json.encode(one.fields))

    return objects


def both(first: Objects, second: Objects) -> Objects:
    """The objects of both."""
    return lambda kind: chain(first(kind), second(kind))


class DumpError(TrioSchedError):
    """An object of a dump is not of its kind."""


@asynccontextmanager
async def assembled(settings: DaemonSettings, begins: datetime) -> AsyncGenerator[Assembly, None]:
    """The parts of a daemon with *settings*, its caches empty; nothing of it runs."""
    server = ApiServer(trio_clock(begins), 0)
    async with in_process_clients(server, settings) as clients:
        yield assemble(settings, clients, random=Random(0), wall_clock=server.now)


def fill(assembly: Assembly, snapshot: ClusterSnapshot) -> None:
    """Put *snapshot* into the caches of *assembly*, whose queue then has the pending pods."""
    handlers, cache = assembly.event_handlers, assembly.scheduler.object_cache
    assembly.put_in_force(assembly.loaded)
    for kind, objects in snapshot.others.items():
        cache.add_kind(kind)
        for one in objects:
            handlers.object_changed(kind, Change("ADDED", None, one), now=0.0)
        handlers.batch_changed(kind)
    for node in snapshot.nodes:
        handlers.node_changed(Change("ADDED", None, node), now=0.0)
    for pod in sorted(snapshot.pods, key=lambda one: not one.node_name):  # those on nodes first: nothing is moved then
        handlers.pod_changed(Change("ADDED", None, pod), now=0.0)
