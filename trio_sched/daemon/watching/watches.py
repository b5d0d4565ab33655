"""The watches of nodes, of what plugins need, and of pods: listed side by side, pods delivered last."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from random import Random
from typing import Any, Final, TypeVar

import trio
from attrs import define, field

from trio_sched.daemon.metrics.recorder import HistogramsBy
from trio_sched.daemon.watching.delivery import Delivery
from trio_sched.daemon.watching.pod_groups_of_workloads import PodGroupsOfWorkloads
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.kube_client.connection import KubeClient
from trio_sched.kube_client.errors import Forbidden, KubeClientError, NotFound
from trio_sched.kube_client.kinds import Kind
from trio_sched.kube_client.versions.served_versions import NotServed, ServedVersions
from trio_sched.kube_client.watch import Reflector, WatchErrorLog
from trio_sched.objects.changes import Changes, Listed
from trio_sched.objects.metadata import WireObject
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import CustomResource, Watched

log = logging.getLogger(__name__)

T = TypeVar("T", bound=WireObject)


def informer_key(kind: Kind[Any]) -> tuple[str, str, str]:
    """Group, version and plural of *kind*: the key in `Watches.processing`."""
    return kind.group, kind.version, kind.plural


ROLES: Final = "`trio-sched rbac` prints the roles that the scheduler needs"
"""What helps where a right lacks."""


@define(eq=False, kw_only=True)
class Watches:
    """Follows pods, nodes, and the other kinds that are wanted; which ones these are can change."""

    client: KubeClient
    served: ServedVersions
    delivery: Delivery
    random: Random
    nodes: Reflector[Node] = field(init=False)
    pods: Reflector[Pod] = field(init=False)
    processing: HistogramsBy | None = None
    """The durations of processing what a watch has delivered, by group, version and plural; None: not measured."""
    _node_kind: Kind[Node]
    _pod_kind: Kind[Pod]
    _scopes: dict[Watched, trio.CancelScope] = field(factory=dict, init=False)
    """By the name under which plugins read the objects of the kind."""
    reflectors: list[Reflector[Any]] = field(factory=list, init=False)
    """The reflectors of everything that is followed."""
    unwatched: dict[Watched, str] = field(factory=dict, init=False)
    """The kinds that are wanted and that the server does not serve, or not to this user → why."""
    _of_workloads: PodGroupsOfWorkloads | None = field(default=None, init=False)
    """Makes pod groups of the workloads that a server of 1.35 has; None: nobody wants pod groups."""
    _nursery: trio.Nursery | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.nodes = Reflector(self.client, self._node_kind, self.delivery.nodes_changed, self.random)
        self.pods = Reflector(self.client, self._pod_kind, self._pods_changed, self.random)
        self.nodes.deliver = self._measured(self.nodes)
        self.pods.deliver = self._measured(self.pods)
        self.reflectors += [self.nodes, self.pods]

    async def run(
        self, wanted: Mapping[Watched, Any], *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Follow everything that is needed; reports started when all of it has been listed once."""
        held: list[Listed[Pod] | Changes[Pod]] = []
        deliver, self.pods.deliver = self.pods.deliver, held.append
        async with trio.open_nursery() as self._nursery:
            async with trio.open_nursery() as first_lists:
                first_lists.start_soon(self._nursery.start, self.nodes.run)
                first_lists.start_soon(self._nursery.start, self.pods.run)
                first_lists.start_soon(self.follow, wanted)
            # Only now: so every pod finds its node, and plugins what they read of it.
            for batch in held:
                deliver(batch)
            self.pods.deliver = deliver
            task_status.started()

    def _pods_changed(self, batch: Listed[Pod] | Changes[Pod]) -> None:
        if self._of_workloads is not None:
            self._of_workloads.pods_changed(batch)
        self.delivery.pods_changed(batch)

    def _measured(self, reflector: Reflector[T]) -> Callable[[Listed[T] | Changes[T]], None]:
        """What *reflector* delivers to, and measures it if that is wanted."""
        processing, deliver = self.processing, reflector.deliver
        if processing is None:
            return deliver
        clock = self.delivery.event_handlers.scheduler.measurements.clock

        def measured(batch: Listed[T] | Changes[T]) -> None:
            began = clock()
            deliver(batch)
            processing.observe(clock() - began, *informer_key(reflector.kind))

        return measured

    async def follow(self, wanted: Iterable[Watched]) -> None:
        """Begin to follow those of the resources *wanted* that are not followed yet; returns when these are listed."""
        async with trio.open_nursery() as first_lists:
            for resource in wanted:
                found = kind_of(resource)
                if found is not None and found[0] not in self._scopes:
                    scope = self._scopes[found[0]] = trio.CancelScope()
                    first_lists.start_soon(self._start_if_served, *found, scope)

    def follow_only(self, wanted: Collection[Watched]) -> None:
        """Stop following what is not among the resources *wanted*."""
        names = {found[0] for found in map(kind_of, wanted) if found is not None}
        for name in self._scopes.keys() - names:
            self._scopes.pop(name).cancel()
            if name == "PodGroup":
                self._of_workloads = None
            self.delivery.event_handlers.scheduler.object_cache.drop_kind(name)

    async def _start_if_served(self, name: Watched, kind: Kind[Any], scope: trio.CancelScope) -> None:
        """Follow a kind that the server may not serve, or not allow to be read; then there is nothing to wait for.

        The watch retries all the same, in case the kind is served later.
        """
        responded = trio.Event()
        is_custom = isinstance(name, CustomResource)
        fix = "; is the CustomResourceDefinition installed? It is watched as soon as it is served" if is_custom else ""
        role = f"; {ROLES}"
        deliver = self.delivery.handler(name)
        if name == "PodGroup":
            deliver = self._with_groups_of_workloads(deliver, lambda: reflector.listed_kind)
        log_error = WatchErrorLog()

        def handle(batch: Listed[Any] | Changes[Any]) -> None:
            if scope.cancel_called:
                return
            self.unwatched.pop(name, None)
            deliver(batch)
            responded.set()

        def explain(error: NotFound | Forbidden) -> str:
            if isinstance(error, NotServed):
                return str(error)
            return f"{error}{role if isinstance(error, Forbidden) else fix}"

        def on_error(plural: str, error: KubeClientError) -> None:
            if not isinstance(error, NotFound | Forbidden):
                log_error(plural, error)
                return
            if isinstance(error, NotServed) and name == "PodGroup" and self._of_workloads is not None:
                self._of_workloads.not_served()
            if name not in self.unwatched:
                why = self.unwatched[name] = explain(error)
                known = "new is known of them" if reflector.objects else "is known of them"
                log.warning("%s cannot be watched, so nothing %s: %s", plural, known, why)
                responded.set()

        reflector = Reflector(self.client, kind, handle, self.random, on_error=on_error, served=self.served)
        reflector.deliver = self._measured(reflector)
        self.reflectors.append(reflector)

        async def follow() -> None:
            try:
                with scope:
                    await reflector.run()
            finally:
                self.reflectors.remove(reflector)
                if self.processing is not None:
                    self.processing.by_key.pop(informer_key(reflector.kind), None)
                self.unwatched.pop(name, None)

        assert self._nursery is not None
        self._nursery.start_soon(follow, name=f"watch of {kind.plural}")
        await responded.wait()

    def _with_groups_of_workloads(
        self, deliver: Callable[[Listed[Any] | Changes[Any]], None], listed_kind: Callable[[], Kind[Any] | None]
    ) -> Callable[[Listed[Any] | Changes[Any]], None]:
        """What the watch of pod groups delivers to so that *deliver* gets those that are made of workloads, too."""
        self._of_workloads = PodGroupsOfWorkloads(deliver=deliver, listed_kind=listed_kind)
        self._of_workloads.pods_changed(Listed(list(self.pods.objects), self.pods.resource_version))
        return self._of_workloads.groups_changed
