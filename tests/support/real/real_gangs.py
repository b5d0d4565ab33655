"""Gangs on a real API server of 1.35 or later, whose workloads or pod groups they are."""

from typing import Any, Final

from real_servers import Server, eventually
from real_versions import served_type
from workloads_of_1_35 import member_of_workload, workload

PODS: Final = "/api/v1/namespaces/default/pods"
WORKLOADS: Final = "/apis/scheduling.k8s.io/v1alpha1/namespaces/default/workloads"
FIRST_WITH_GANGS, FIRST_WITH_POD_GROUPS = 35, 36


async def create_node(server: Server, name: str = "node") -> None:
    amounts = {"cpu": "6", "memory": "64Gi", "pods": "110"}
    status = {"allocatable": amounts, "capacity": amounts}
    await server.request("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": status})


async def create_gang(server: Server, minor: int, name: str, min_count: int) -> None:
    if minor < FIRST_WITH_POD_GROUPS:
        await server.request("POST", WORKLOADS, workload(name, workers=min_count))
        return
    served = served_type(minor, "scheduling.k8s.io/v1alpha2", "PodGroup")
    path = f"/apis/{served.api_version}/namespaces/default/{served.plural}"
    spec = {"schedulingPolicy": {"gang": {"minCount": min_count}}}
    await server.request("POST", path, {"metadata": {"name": name}, "spec": spec})


async def create_member(server: Server, minor: int, name: str, gang: str) -> None:
    body: dict[str, Any] = member_of_workload(name, gang, "workers")
    if minor >= FIRST_WITH_POD_GROUPS:
        del body["spec"]["workloadRef"]
        body["spec"]["schedulingGroup"] = {"podGroupName": gang}
    await server.request("POST", PODS, body)


async def bound(server: Server) -> set[str]:
    items = (await server.request("GET", PODS))["items"]
    return {one["metadata"]["name"] for one in items if one["spec"].get("nodeName")}


async def wait_bound(server: Server, *names: str) -> None:
    async def are_bound() -> bool:
        return await bound(server) >= set(names)

    await eventually(are_bound, within_seconds=30)
