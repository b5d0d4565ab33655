"""A plugin with a custom resource against an API server on a port: the embedded one, and a real one where there is one.

It has the permissions that are computed from what it declares, and no others.
"""

from pathlib import Path
from typing import ClassVar

import httpx
from msgspec import Struct
from plugin_base import PluginBase
from real_plugins import daemon_with
from real_servers import Files, StartServer, eventually, on_both

from trio_sched.plugin_api import (
    Action,
    CustomResource,
    EventRegistration,
    Hint,
    ObjectMeta,
    Pod,
    QueueState,
    Status,
    hookimpl,
    on,
    select_pods,
    unschedulable,
)
from trio_sched.testing import custom_resource_definition


class QuotaSpec(Struct, frozen=True, rename="camel"):
    max_pods: int


class QuotaStatus(Struct, frozen=True, rename="camel"):
    used_pods: int = 0


class Quota(Struct, frozen=True):
    metadata: ObjectMeta
    spec: QuotaSpec
    status: QuotaStatus = QuotaStatus()


QUOTA = CustomResource("example.com", "v1alpha1", "Quota", type=Quota)
QUOTAS = "/apis/example.com/v1alpha1/namespaces/default/quotas"


class Quotas(PluginBase):
    """Lets as many pods of a namespace pass as its quota says, and writes the number to its status."""

    watches: ClassVar = (QUOTA,)
    writes: ClassVar = {QUOTA: ("create",), QUOTA.status: ("patch",), "Pod/eviction": ("create",)}

    def left(self, namespace: str) -> int:
        quota = self.handle.object(QUOTA, "quota", namespace)
        placed = self.handle.nodes.pod_counts(select_pods(namespaces=[namespace])).sum()
        return 0 if quota is None else quota.spec.max_pods - int(placed)

    @hookimpl
    def pre_filter(self, pod: Pod) -> Status | None:
        return None if self.left(pod.namespace) > 0 else unschedulable("the quota is used up")

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(QUOTA, Action.ADD | Action.UPDATE, self.hint)]

    def hint(self, pod: Pod, old: Quota | None, new: Quota | None) -> Hint:
        return Hint.QUEUE if self.left(pod.namespace) > 0 else Hint.SKIP

    @hookimpl
    async def post_bind(self, pod: Pod) -> None:
        quota = self.handle.object(QUOTA, "quota", pod.namespace)
        if quota is not None:
            status = {"status": {"usedPods": quota.spec.max_pods - self.left(pod.namespace)}}
            await self.handle.patch(QUOTA, "quota", status, namespace=pod.namespace, subresource="status")
            self.handle.record_event(quota, "Normal", "Used", "Binding", f"used by {pod.name}")


@on_both
async def test_a_quota_in_a_custom_resource(start_server: StartServer, tmp_path: Path) -> None:
    async with start_server(Files(tmp_path)) as server:
        await server.create_nodes()
        async with daemon_with(server, [Quotas]) as assembly:
            await server.create_pods("p", 3)

            async def are_rejected() -> bool:
                return len(await server.events("FailedScheduling")) == 3

            await eventually(are_rejected, within_seconds=20)
            definition = custom_resource_definition(QUOTA)
            await server.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)

            async def is_served() -> bool:
                try:
                    await server.request("GET", QUOTAS)
                except httpx.HTTPStatusError:
                    return False
                return True

            await eventually(is_served, within_seconds=30)
            (profile,) = assembly.scheduler.profiles.values()
            handle = profile.plugins["Quotas"].handle
            made = await handle.create(
                QUOTA, {"metadata": {"name": "quota"}, "spec": {"maxPods": 2}}, namespace="default"
            )
            assert made.spec == QuotaSpec(2)
            await server.wait_bound(2, within_seconds=90)  # the watch is tried again with growing pauses

            async def is_written() -> bool:
                found = handle.object(QUOTA, "quota", "default")
                return found is not None and bool(found.status.used_pods == 2)

            await eventually(is_written, within_seconds=20)

            async def is_told() -> bool:
                return {event["regarding"]["kind"] for event in await server.events("Used")} == {"Quota"}

            await eventually(is_told, within_seconds=20)
            (pending,) = handle.pending_pods()
            assert pending.state in (QueueState.UNSCHEDULABLE, QueueState.BACKOFF)
            assert pending.rejected_by == {"Quotas"}
            with_three = {"spec": {"maxPods": 3}}
            headers = {"content-type": "application/merge-patch+json"}
            response = await server.admin.patch(f"{QUOTAS}/quota", json=with_three, headers=headers)
            response.raise_for_status()
            await server.wait_bound(3, within_seconds=20)
            await handle.evict(handle.object("Pod", "p-0", "default"))

            async def is_evicted() -> bool:
                found = handle.object("Pod", "p-0", "default")
                return found is None or found.metadata.deletion_timestamp is not None

            await eventually(is_evicted, within_seconds=20)
