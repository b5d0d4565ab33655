"""What is found out about a cluster by a user who may not read everything."""

import httpx
import pytest
from old_server import OldServer

from trio_sched.cli.commands.rbac import load_configuration
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.daemon.cluster_check import KindState, check_cluster
from trio_sched.daemon.loaded_profiles import LoadedProfiles
from trio_sched.kube_client.connection import connect
from trio_sched.kube_client.settings import ConnectionSettings
from trio_sched.simulator import ApiServer, InProcessTransport, trio_clock

GROUPS = "podgroups.scheduling.k8s.io"


@pytest.fixture
def loaded() -> LoadedProfiles:
    return load_configuration("", "GenericWorkload=true,GangScheduling=true", PluginSelection())


async def state_of_groups(loaded: LoadedProfiles, *versions: str) -> KindState:
    """What is said of pod groups to who may not read them, on a server with these versions."""

    def allows(spec: dict[str, dict[str, str]]) -> bool:
        return spec["resourceAttributes"]["resource"] != "podgroups"

    inner = InProcessTransport(ApiServer(now=trio_clock(), allows=allows))
    server = OldServer(inner, {"scheduling.k8s.io": versions})

    class Refusing(httpx.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if "podgroups" in request.url.path:
                return httpx.Response(403, json={"kind": "Status", "reason": "Forbidden", "code": 403})
            return await server.handle_async_request(request)

    async with connect(ConnectionSettings(server="http://api.test"), transport=Refusing(), qps=-1) as client:
        found = await check_cluster(client, loaded)
    return next(one for one in found.kinds if one.resource == GROUPS)


async def test_a_kind_that_may_not_be_read_is_forbidden_in_the_version_that_is_served(loaded: LoadedProfiles) -> None:
    state = await state_of_groups(loaded, "v1alpha3")
    assert (state.state, state.version) == ("forbidden", "v1alpha3")
    assert "rbac" in state.mend


async def test_a_kind_that_may_not_be_read_is_missing_if_the_server_says_so(loaded: LoadedProfiles) -> None:
    state = await state_of_groups(loaded, "v1")
    assert (state.state, state.version) == ("missing", "")
    assert "--runtime-config" in state.mend
