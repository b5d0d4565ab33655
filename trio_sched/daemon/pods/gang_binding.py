"""Binds the pods of a gang, or of a tree of gangs, together, or rejects those that wait on permit: too few are left.

No bind begins before each pod of the attempt is ready or has failed.

Before the first bind, the place of each pod is written into its status as a nomination. If this process ends between
two binds, the next leader knows the places of the pods that are left, and other pods leave these free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from attrs import define, field

from trio_sched.daemon.limits import MAX_PARALLEL_BINDS
from trio_sched.engine.pod_groups.binding_units import MayBind
from trio_sched.engine.pod_groups.pod_group_results import group_unschedulable
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

OTHERS_FAILED = "too few of its pods could be bound"


@define(eq=False, kw_only=True)
class GangBinding:
    """Waits until every pod of the attempt is ready or has failed, and lets all bind of which enough are left."""

    may_bind: MayBind
    is_assumed: Callable[[str], bool]
    """Whether the pod with this UID is still assumed on its node."""
    nominate: Callable[[Pod, str], Awaitable[None]]
    """Writes the nomination of a pod to a node; raises a KubeClientError if that cannot be done."""
    reject: Callable[[str, str], None]
    """Rejects the pod with this UID, with a message, if it waits on permit."""
    _pending: set[str] = field(factory=set)
    _unplaced: set[str] = field(factory=set)
    """Pods that are neither placed nor ready, nor have failed."""
    _ready: dict[str, tuple[Pod, str]] = field(factory=dict)
    _all_placed: trio.Event = field(factory=trio.Event)
    _all_here: trio.Event = field(factory=trio.Event)
    _decided: trio.Event = field(factory=trio.Event)
    _is_deciding: bool = False
    _refusal: Status = field(factory=lambda: group_unschedulable("binding was given up"))
    """Why those that are not allowed are not bound."""
    _allowed: frozenset[str] = frozenset()

    def expect(self, uid: str) -> None:
        """The pod with this UID is going to be ready, or to fail."""
        self._pending.add(uid)
        self._unplaced.add(uid)

    def failed(self, uid: str) -> None:
        """The pod is not going to be bound."""
        self._pending.discard(uid)
        self._ready.pop(uid, None)
        for other in self._pending - self._left():
            self.reject(other, f"pod group is unschedulable, {OTHERS_FAILED}")
        self._count_placed(uid)
        if not self._pending:
            self._all_here.set()

    def _left(self) -> frozenset[str]:
        """Those that may be bound if no other fails."""
        return self.may_bind(frozenset(self._pending | self._ready.keys()))

    def _count_placed(self, uid: str) -> None:
        self._unplaced.discard(uid)
        if not self._unplaced:
            self._all_placed.set()

    async def placed(self, uid: str) -> Status | None:
        """The pod has its place; wait until all others have theirs, or have failed. None: go on; else why not."""
        self._count_placed(uid)
        await self._all_placed.wait()
        return None if uid in self._left() else group_unschedulable(OTHERS_FAILED)

    async def ready(self, pod: Pod, node_name: str) -> Status | None:
        """The pod could be bound to its node now; wait for the others. None: bind it; else why not."""
        self._count_placed(pod.uid)
        self._pending.discard(pod.uid)
        self._ready[pod.uid] = pod, node_name
        if not self._pending:
            self._all_here.set()
        await self._all_here.wait()
        if not self._is_deciding:
            self._is_deciding = True
            try:
                await self._decide()
            finally:
                self._decided.set()
        await self._decided.wait()
        return None if pod.uid in self._allowed else self._refusal

    async def _decide(self) -> None:
        for uid in [uid for uid in self._ready if not self.is_assumed(uid)]:  # deleted while it waited
            del self._ready[uid]
        allowed = self.may_bind(frozenset(self._ready))
        problem = await self._nominate_all(allowed)
        self._refusal = problem or group_unschedulable(OTHERS_FAILED)
        if problem is None:
            self._allowed = self.may_bind(allowed & self._ready.keys())

    async def _nominate_all(self, allowed: frozenset[str]) -> Status | None:
        problems: list[KubeClientError] = []
        limiter = trio.CapacityLimiter(MAX_PARALLEL_BINDS)

        async def nominate(pod: Pod, node_name: str) -> None:
            async with limiter:
                try:
                    await self.nominate(pod, node_name)
                except NotFound:  # it was deleted
                    self._ready.pop(pod.uid, None)
                except KubeClientError as problem:
                    problems.append(problem)

        async with trio.open_nursery() as nursery:
            for uid, (pod, node_name) in list(self._ready.items()):
                if uid in allowed:
                    nursery.start_soon(nominate, pod, node_name)
        return failure(problems[0]) if problems else None
