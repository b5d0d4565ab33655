"""The binds of one attempt of a gang: none begins before all of its pods are ready, and enough of them for the gang.

Before the first bind, the place of each pod is written into its status as a nomination. If this process ends between
two binds, the next leader knows the places of the pods that are left, and other pods leave these free.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import trio
from attrs import define, field

from trio_sched.daemon.limits import MAX_PARALLEL_BINDS
from trio_sched.engine.pod_groups.pod_group_results import group_unschedulable
from trio_sched.kube_client.errors import KubeClientError, NotFound
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.status import Status, failure

OTHERS_FAILED = "too few of its pods could be bound"


@define(eq=False, kw_only=True)
class GangBinding:
    """Waits until every pod of the attempt is ready or has failed, and lets all bind, or none."""

    missing: Callable[[], int]
    """How many pods the gang needs besides those that are bound."""
    is_assumed: Callable[[str], bool]
    """Whether the pod with this UID is still assumed on its node."""
    nominate: Callable[[Pod, str], Awaitable[None]]
    """Writes the nomination of a pod to a node; raises a KubeClientError if that cannot be done."""
    reject: Callable[[str, str], None]
    """Rejects the pod with this UID, with a message, if it waits on permit."""
    _pending: set[str] = field(factory=set)
    _ready: dict[str, tuple[Pod, str]] = field(factory=dict)
    _all_here: trio.Event = field(factory=trio.Event)
    _decided: trio.Event = field(factory=trio.Event)
    _is_deciding: bool = False
    _refusal: Status | None = None

    def expect(self, uid: str) -> None:
        """The pod with this UID is going to be ready, or to fail."""
        self._pending.add(uid)

    def failed(self, uid: str) -> None:
        """The pod is not going to be bound."""
        self._pending.discard(uid)
        self._ready.pop(uid, None)
        if len(self._pending) + len(self._ready) < self.missing():
            for other in list(self._pending):
                self.reject(other, f"pod group is unschedulable, {OTHERS_FAILED}")
        if not self._pending:
            self._all_here.set()

    async def ready(self, pod: Pod, node_name: str) -> Status | None:
        """The pod could be bound to its node now; wait for the others. None: bind it; else why not."""
        self._pending.discard(pod.uid)
        self._ready[pod.uid] = pod, node_name
        if not self._pending:
            self._all_here.set()
        await self._all_here.wait()
        if not self._is_deciding:
            self._is_deciding = True
            try:
                self._refusal = group_unschedulable("binding was given up")  # unless it is decided
                self._refusal = await self._decide()
            finally:
                self._decided.set()
        await self._decided.wait()
        return self._refusal

    async def _decide(self) -> Status | None:
        for uid in [uid for uid in self._ready if not self.is_assumed(uid)]:  # deleted while it waited
            del self._ready[uid]
        if len(self._ready) < self.missing():
            return group_unschedulable(OTHERS_FAILED)
        problem = await self._nominate_all()
        if problem is not None:
            return problem
        return None if len(self._ready) >= self.missing() else group_unschedulable(OTHERS_FAILED)

    async def _nominate_all(self) -> Status | None:
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
            for pod, node_name in list(self._ready.values()):
                nursery.start_soon(nominate, pod, node_name)
        return failure(problems[0]) if problems else None
