import pytest
import trio
from simulator_api import Api
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator import ApiServer, run_kubelets, trio_clock
from trio_sched.simulator.kubelets.kubelet import EXIT_CODE, RUN_SECONDS, KubeletPace


@pytest.fixture
async def cluster(nursery: trio.Nursery, autojump_clock: MockClock) -> Api:
    api = Api(ApiServer(now=trio_clock()))
    await nursery.start(run_kubelets, api.server, KubeletPace(start_seconds=2, stop_seconds=3))
    await api.create_node("n1")
    return api


def conditions(pod: Json) -> dict[str, str]:
    return {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]}


async def test_a_bound_pod_runs_after_a_while(cluster: Api, autojump_clock: MockClock) -> None:
    await cluster.create_pod("p")
    await cluster.bind("p", "n1")
    await trio.sleep(1.9)
    assert (await cluster.pod("p"))["status"]["phase"] == "Pending"
    await trio.sleep(0.2)
    pod = await cluster.pod("p")
    assert pod["status"]["phase"] == "Running"
    assert conditions(pod) == dict.fromkeys(
        ("PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"), "True"
    )
    (status,) = pod["status"]["containerStatuses"]
    assert (status["name"], status["ready"]) == ("main", True)
    assert status["state"]["running"]["startedAt"] == "2026-01-01T00:00:02Z"
    assert pod["status"]["hostIP"] == "10.0.0.1"
    assert pod["status"]["podIPs"] == [{"ip": pod["status"]["podIP"]}]


async def test_every_pod_has_an_address_of_its_own(cluster: Api, autojump_clock: MockClock) -> None:
    for number in range(5):
        await cluster.create_pod(f"p{number}", nodeName="n1")
    await trio.sleep(3)
    pods = (await cluster("GET", "/api/v1/pods"))["items"]
    assert len({pod["status"]["podIP"] for pod in pods}) == 5


async def test_a_pod_without_a_node_or_on_an_unknown_one_stays_pending(cluster: Api, autojump_clock: MockClock) -> None:
    await cluster.create_pod("free")
    await cluster.create_pod("lost", nodeName="nowhere")
    await trio.sleep(60)
    assert {(await cluster.pod(name))["status"]["phase"] for name in ("free", "lost")} == {"Pending"}


async def test_a_node_that_joins_late_finds_its_pods(cluster: Api, autojump_clock: MockClock) -> None:
    await cluster.create_pod("p", nodeName="n2")
    await trio.sleep(60)
    await cluster.create_node("n2")
    await trio.sleep(3)
    assert (await cluster.pod("p"))["status"]["phase"] == "Running"


@pytest.mark.parametrize(("code", "phase"), [("0", "Succeeded"), ("3", "Failed")])
async def test_a_pod_with_a_run_time_ends(cluster: Api, autojump_clock: MockClock, code: str, phase: str) -> None:
    await cluster.create_pod("p", nodeName="n1", annotations={RUN_SECONDS: "10", EXIT_CODE: code})
    await trio.sleep(11.9)
    assert (await cluster.pod("p"))["status"]["phase"] == "Running"
    await trio.sleep(0.2)
    pod = await cluster.pod("p")
    assert pod["status"]["phase"] == phase
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == int(code)
    assert conditions(pod)["Ready"] == "False"


@pytest.mark.parametrize(("grace", "lasts"), [(30, 3), (1, 1)])
async def test_a_deleted_pod_is_removed_within_its_grace_period(
    cluster: Api, autojump_clock: MockClock, grace: int, lasts: int
) -> None:
    await cluster.create_pod("p", nodeName="n1")
    await trio.sleep(5)
    await cluster("DELETE", f"/api/v1/namespaces/default/pods/p?gracePeriodSeconds={grace}")
    await trio.sleep(lasts - 0.1)
    await cluster.pod("p")
    await trio.sleep(0.2)
    await cluster("GET", "/api/v1/namespaces/default/pods/p", expect=404)


async def test_a_pod_of_the_same_name_is_another_pod(cluster: Api, autojump_clock: MockClock) -> None:
    await cluster.create_pod("p", nodeName="n1")
    await trio.sleep(1.5)
    await cluster("DELETE", "/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0")
    await cluster.create_pod("p", nodeName="n1")
    await trio.sleep(1)
    assert (await cluster.pod("p"))["status"]["phase"] == "Pending"
    await trio.sleep(1.1)
    assert (await cluster.pod("p"))["status"]["phase"] == "Running"


async def test_an_invalid_run_time_is_ignored_and_logged(
    cluster: Api, autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.create_pod("p", nodeName="n1", annotations={RUN_SECONDS: "soon"})
    await trio.sleep(600)
    assert (await cluster.pod("p"))["status"]["phase"] == "Running"
    assert "trio-sched.dev/run-seconds is no number" in caplog.text


async def say_ready(cluster: Api, status: str) -> None:
    body = {"status": {"conditions": [{"type": "Ready", "status": status}]}}
    await cluster("PATCH", "/api/v1/nodes/n1/status", body, content_type="application/merge-patch+json")


@pytest.mark.parametrize("after", ["True", "False"])
async def test_nothing_happens_on_a_node_whose_state_is_unknown(
    cluster: Api, autojump_clock: MockClock, after: str
) -> None:
    await cluster.create_pod("deleted", nodeName="n1")
    await cluster.create_pod("ends", nodeName="n1", annotations={RUN_SECONDS: "10"})
    await cluster.create_pod("lasts", nodeName="n1", annotations={RUN_SECONDS: "100"})
    await trio.sleep(5)
    await say_ready(cluster, "Unknown")
    await cluster.create_pod("new", nodeName="n1")
    await cluster("DELETE", "/api/v1/namespaces/default/pods/deleted")
    await trio.sleep(50)
    found = {name: (await cluster.pod(name))["status"]["phase"] for name in ("deleted", "ends", "lasts", "new")}
    assert found == {"deleted": "Running", "ends": "Running", "lasts": "Running", "new": "Pending"}
    await say_ready(cluster, after)
    await trio.sleep(1)
    found = {name: (await cluster.pod(name))["status"]["phase"] for name in ("deleted", "ends", "new")}
    assert found == {"deleted": "Running", "ends": "Succeeded", "new": "Pending"}
    await trio.sleep(2.5)
    assert cluster.server.store.get("pods", "default/deleted") is None
    assert (await cluster.pod("new"))["status"]["phase"] == "Running"
    await trio.sleep(42)
    assert (await cluster.pod("lasts"))["status"]["phase"] == "Running"
    await trio.sleep(3)
    assert (await cluster.pod("lasts"))["status"]["phase"] == "Succeeded"


async def test_the_kubelet_of_an_unreachable_node_that_is_deleted_stays_away(
    cluster: Api, autojump_clock: MockClock
) -> None:
    await cluster.create_pod("p", nodeName="n1", annotations={RUN_SECONDS: "10"})
    await trio.sleep(5)
    await say_ready(cluster, "Unknown")
    await cluster("DELETE", "/api/v1/nodes/n1")
    await trio.sleep(50)
    assert (await cluster.pod("p"))["status"]["phase"] == "Running"
    await cluster.create_node("n1")
    await trio.sleep(1)
    assert (await cluster.pod("p"))["status"]["phase"] == "Succeeded"


async def test_a_kubelet_that_is_back_says_which_pods_are_ready(cluster: Api, autojump_clock: MockClock) -> None:
    for name in ("p", "gated"):
        await cluster.create_pod(name, nodeName="n1")
    await trio.sleep(5)
    for name, reason in (("p", None), ("gated", "ReadinessGatesNotReady")):
        status = (await cluster.pod(name))["status"]
        for one in status["conditions"]:
            if one["type"] == "Ready":
                one |= {"status": "False", "lastTransitionTime": "2026-01-01T00:00:04Z"}
                one |= {"reason": reason} if reason else {}
        path = f"/api/v1/namespaces/default/pods/{name}/status"
        await cluster("PATCH", path, {"status": status}, content_type="application/merge-patch+json")
    await say_ready(cluster, "Unknown")
    await say_ready(cluster, "True")
    await trio.sleep(1)
    ready = next(one for one in (await cluster.pod("p"))["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["lastTransitionTime"]) == ("True", "2026-01-01T00:00:02Z")
    assert conditions(await cluster.pod("gated"))["Ready"] == "False"
