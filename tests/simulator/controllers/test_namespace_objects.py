import pytest
import trio
from simulator_api import Api

from trio_sched.simulator import ApiServer, Controllers


@pytest.mark.parametrize(("plural", "own"), [("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")])
async def test_every_namespace_has_objects_that_come_back(
    plural: str,
    own: str,
    server: ApiServer,
    api: Api,
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
) -> None:
    found = server.store.collection(plural).objects
    await nursery.start(Controllers(server).run)
    assert sorted(found) == [f"{name}/{own}" for name in ("default", "kube-node-lease", "kube-public", "kube-system")]
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await trio.sleep(1)
    first = found[f"shop/{own}"]
    await api("DELETE", f"/api/v1/namespaces/shop/{plural}/{own}")
    await trio.sleep(1)
    assert found[f"shop/{own}"].fields["metadata"]["uid"] != first.fields["metadata"]["uid"]
    await api("DELETE", "/api/v1/namespaces/shop")
    await trio.sleep(1)
    assert f"shop/{own}" not in found
    assert server.store.get("namespaces", "shop") is None


async def test_a_namespace_without_room_for_them_has_none(
    server: ApiServer, api: Api, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    hard = {"configmaps": "0", "count/serviceaccounts": "0"}
    await api("POST", "/api/v1/namespaces/shop/resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": hard}})
    await nursery.start(Controllers(server).run)
    await trio.sleep(1)
    for plural in ("configmaps", "serviceaccounts"):
        assert not any(key.startswith("shop/") for key in server.store.collection(plural).objects)
