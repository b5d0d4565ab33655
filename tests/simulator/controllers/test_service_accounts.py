import trio
from simulator_api import Api

from trio_sched.simulator import ApiServer, Controllers


async def test_every_namespace_has_a_default_account_that_comes_back(
    server: ApiServer, api: Api, nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    accounts = server.store.collection("serviceaccounts").objects
    await nursery.start(Controllers(server).run)
    assert sorted(accounts) == [
        f"{name}/default" for name in ("default", "kube-node-lease", "kube-public", "kube-system")
    ]
    await api("POST", "/api/v1/namespaces", {"metadata": {"name": "shop"}})
    await trio.sleep(1)
    first = accounts["shop/default"]
    await api("DELETE", "/api/v1/namespaces/shop/serviceaccounts/default")
    await trio.sleep(1)
    assert accounts["shop/default"].fields["metadata"]["uid"] != first.fields["metadata"]["uid"]
    await api("DELETE", "/api/v1/namespaces/shop")
    await trio.sleep(1)
    assert "shop/default" not in accounts
    assert server.store.get("namespaces", "shop") is None
