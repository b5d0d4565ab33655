"""Objects in versions that a real server serves, converted by the simulator's code."""

from typing import Any

from real_servers import Server

from trio_sched.simulator.conversion.other_versions import reshaped
from trio_sched.simulator.storage.kubernetes_versions import NEWEST_MINOR
from trio_sched.simulator.storage.resource_types import ResourceType, TypeRegistry

Json = dict[str, Any]


async def minor_of(server: Server) -> int:
    """The minor version that *server* says it has."""
    return int((await server.request("GET", "/version"))["minor"])


def served_type(minor: int, api_version: str, kind: str) -> ResourceType:
    """The best version of a kind that a server of the version serves, if it serves all that it has."""
    types = TypeRegistry(min(minor, NEWEST_MINOR))
    served = types.served(types.built_in(api_version, kind))
    assert served is not None
    return served


def as_served(minor: int, manifest: Json) -> Json:
    """*manifest* in that version."""
    api_version, kind = manifest["apiVersion"], manifest["kind"]
    return reshaped(TypeRegistry().built_in(api_version, kind), served_type(minor, api_version, kind), manifest)
