"""Nodes with devices, claims and pods on an API server of any version, made in a version that it serves.

Objects are converted by the simulator's code, which shares no line with the client's.
"""

from typing import Any, Final

from real_servers import Server

from trio_sched.simulator.conversion.other_versions import reshaped
from trio_sched.simulator.storage.resource_types import TypeRegistry

GROUP: Final = "resource.k8s.io"
VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha3")
PODS: Final = "/api/v1/namespaces/default/pods"
DRIVER: Final = "gpu.example.com"
NODES, DEVICES = 4, 4
_TYPES: Final = TypeRegistry()


async def served_version(server: Server) -> str:
    """The best version of the devices' group that is served; empty: none."""
    response = await server.admin.get(f"/apis/{GROUP}")
    served = {one["version"] for one in response.json()["versions"]} if response.status_code == 200 else set()
    return next((one for one in VERSIONS if one in served), "")


async def send(server: Server, kind: str, body: dict[str, Any]) -> None:
    """Create an object of a *kind* of the devices' group, written as in v1."""
    version = await served_version(server)
    served, written = _TYPES.built_in(f"{GROUP}/{version}", kind), _TYPES.built_in(f"{GROUP}/v1", kind)
    inside = "/namespaces/default" if served.namespaced else ""
    await server.request("POST", f"/apis/{served.api_version}{inside}/{served.plural}", reshaped(written, served, body))


async def create_devices(server: Server) -> None:
    """Nodes with devices, and a class for these."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    await send(server, "DeviceClass", {"metadata": {"name": DRIVER}, "spec": {"selectors": [selector]}})
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    for number in range(NODES):
        name = f"n{number}"
        body: dict[str, Any] = {"metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}}
        await server.request("POST", "/api/v1/nodes", body)
        device = {"capacity": {"memory": {"value": "80Gi"}}, "attributes": {"model": {"string": "a100"}}}
        spec = {
            "driver": DRIVER,
            "nodeName": name,
            "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"gpu-{n}", **device} for n in range(DEVICES)],
        }
        await send(server, "ResourceSlice", {"metadata": {"name": name}, "spec": spec})


async def create_pod(server: Server, name: str, *, count: int = 1, expression: str = "", claim: str = "") -> None:
    """A pod with a claim of its own, or with *claim*."""
    if not claim:
        claim = name
        wanted: dict[str, Any] = {"deviceClassName": DRIVER, "count": count}
        if expression:
            wanted["selectors"] = [{"cel": {"expression": expression}}]
        devices = {"requests": [{"name": "gpu", "exactly": wanted}]}
        await send(server, "ResourceClaim", {"metadata": {"name": name}, "spec": {"devices": devices}})
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "registry.test/app:1"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
    }
    await server.request("POST", PODS, {"metadata": {"name": name}, "spec": spec})


async def claims_path(server: Server) -> str:
    """The path of the claims."""
    return f"/apis/{GROUP}/{await served_version(server)}/namespaces/default/resourceclaims"


async def allocations(server: Server) -> dict[str, list[str]]:
    """Claim → ``pool/device`` of each of its devices; a status is alike in all versions."""
    found = {}
    for claim in (await server.request("GET", await claims_path(server)))["items"]:
        results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
        found[claim["metadata"]["name"]] = [f"{one['pool']}/{one['device']}" for one in results]
    return found
