"""Writes of plugins where the work is shared: what becomes of one about a device claim is always found out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, Final

import trio
from attrs import frozen

from trio_sched.daemon.plugins.object_writes import ObjectWrites, errors_of_the_api
from trio_sched.daemon.plugins.plugin_jobs import PluginJobs
from trio_sched.daemon.sharding.claim_fences import FENCED
from trio_sched.daemon.sharding.proposals import Proposals
from trio_sched.daemon.sharding.shard_elector import ShardElector
from trio_sched.daemon.sharding.versioned_writes import NoLongerOwn, PodHasChanged, ends
from trio_sched.engine.sharding.owned_shards import OwnedShards, UnderWay
from trio_sched.engine.sharding.ownership import LANE
from trio_sched.objects.pod import Pod
from trio_sched.plugin_api.custom_resources import Watched
from trio_sched.plugin_api.handle import ApiRequestFailed, NotLeading, ObjectGone, OutcomeUnknown, WriteConflict

log = logging.getLogger(__name__)

_PAUSE_SECONDS: Final = 1.0
FENCES: Final = "ShardNodes/fences"
"""What fences claims in the background is called so among the jobs, so that it waits for no pod."""
_numbers: Final = count()
"""Numbers writes: several about one claim can be under way."""


@frozen(eq=False)
class ShardedObjectWrites(ObjectWrites):
    """Gives a claim another version if a write about it got no response: after that it cannot arrive any more."""

    elector: ShardElector
    owned: OwnedShards
    jobs: PluginJobs
    proposals: Proposals

    async def patch(
        self, kind: Watched, name: str, patch: Mapping[str, Any], *, namespace: str = "", subresource: str = ""
    ) -> Any:
        """Merge *patch* into an object; see `ObjectWrites.patch`."""
        if kind == "Pod" and subresource == "status" and (status := _claim_status(patch)):
            return await self._patch_pod(name, namespace, patch, status)
        write = partial(super().patch, kind, name, patch, namespace=namespace, subresource=subresource)
        if kind != "ResourceClaim":
            return await write()
        if LANE not in self.elector.held:
            raise NotLeading(f"claim {namespace}/{name} is written by the holder of shard 0, and this replica is not")
        key = f"{namespace}/{name}/{next(_numbers)}"
        self.owned.under_way[key] = UnderWay(frozenset({LANE}), self.owned.seen, "")
        try:
            with ends(partial(self.owned.ended, key)):
                try:
                    return await write()
                except OutcomeUnknown as problem:
                    await self._fence(name, namespace, problem)
                    raise WriteConflict(str(problem)) from problem  # it is read again: that shows what has arrived
        except trio.Cancelled:  # the pod is given up, as it is evicted for instance, and the write can still arrive
            with suppress(RuntimeError):  # too many wait: shard 0 is not released then
                self.jobs.submit(FENCES, "", partial(self._fence_given_up, key, name, namespace))
            raise

    async def _patch_pod(self, name: str, namespace: str, patch: Mapping[str, Any], status: dict[str, Any]) -> Pod:
        """Write into the status of a pod which claim it has: by version, so that it does not arrive later."""
        pod = self.proposals.shown().get((namespace, name))
        under_way = None if pod is None else self.owned.under_way.get(pod.uid)
        is_same = pod is not None and patch.get("metadata") == {"uid": pod.uid}
        if pod is None or not is_same or under_way is None or under_way.tokens is None:
            raise NotLeading(f"pod {namespace}/{name} is not being bound by this replica any more")
        write = partial(self.proposals.write_status, pod, status)
        try:
            with errors_of_the_api():
                return await self.proposals.writes.send(pod, under_way.tokens, write, _is_not_known)
        except (NoLongerOwn, PodHasChanged) as problem:
            raise NotLeading(str(problem)) from problem

    async def _fence_given_up(self, key: str, name: str, namespace: str) -> None:
        """Until it is done shard 0 is not released, or its next holder fences the claim."""
        with ends(partial(self.owned.ended, key)), suppress(OutcomeUnknown):
            await self._fence(name, namespace, OutcomeUnknown("the pod was given up"))

    async def _fence(self, name: str, namespace: str, problem: OutcomeUnknown) -> None:
        """Raises OutcomeUnknown: the lane was lost before, and whoever has it then fences the claim."""
        body = {"metadata": {"annotations": {FENCED: f"a request got no response at {trio.current_time():.6f}"}}}
        while LANE in self.elector.held:
            try:
                await super().patch("ResourceClaim", name, body, namespace=namespace)
            except ObjectGone:
                return
            except ApiRequestFailed as error:
                log.warning("cannot fence a device claim, retrying: %s", error, extra={"claim": f"{namespace}/{name}"})
                await trio.sleep(_PAUSE_SECONDS)
            else:
                return
        raise problem


def _claim_status(patch: object) -> dict[str, Any] | None:
    """The status in *patch*, of a plugin, if it says which claim for extended resources a pod has."""
    status = patch.get("status") if isinstance(patch, Mapping) else None
    return dict(status) if isinstance(status, Mapping) and "extendedResourceClaimStatus" in status else None


def _is_not_known(_pod: Pod) -> bool:
    """It is written once more then, which changes nothing."""
    return False
