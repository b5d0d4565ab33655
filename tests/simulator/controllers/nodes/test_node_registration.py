import trio
from simulated_workloads import condition
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.simulator import ApiServer, trio_clock
from trio_sched.simulator.controllers.nodes.node_registration import NodeRegistration


async def test_nodes_get_labels_and_conditions(nursery: trio.Nursery, autojump_clock: MockClock) -> None:
    api = Api(ApiServer(now=trio_clock()))
    await api.create_node("first")
    await nursery.start(NodeRegistration(api.server).run)
    await api.create_node("later")
    own = {"metadata": {"name": "own", "labels": {"kubernetes.io/arch": "arm64"}}}
    own |= {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    await api("POST", "/api/v1/nodes", own)
    await trio.sleep(1)
    for name in ("first", "later"):
        node = await api("GET", f"/api/v1/nodes/{name}")
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        assert node["metadata"]["labels"] == labels
        assert condition(node["status"], "Ready") == ("True", "KubeletReady")
        assert node["status"]["capacity"] == {"cpu": "4"}
    node = await api("GET", "/api/v1/nodes/own")
    assert node["metadata"]["labels"]["kubernetes.io/arch"] == "arm64"
    assert condition(node["status"], "Ready") == ("False", "")
