"""Pods that extenders are interested in, in a cluster on a clock that jumps."""

import json
from typing import Any

import pytest
import trio
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.serving.messages import Request
from trio_sched.daemon.serving.pages.explain_page import ExplainPage
from trio_sched.daemon.serving.pages.scheduler_pages import SchedulerPages
from trio_sched.plugin_api import (
    Action,
    Diagnosis,
    EventRegistration,
    NodeView,
    Pod,
    Resource,
    Status,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.simulator import Asked, PretendExtender, leaving, scoring
from trio_sched.testing import node, pod
from trio_sched.testing.cluster import VirtualCluster, virtual_cluster

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
URL = "http://extender.test"
GPU = "example.com/gpu"


def config(*extenders: dict[str, Any], **more: Any) -> str:
    return HEAD + json.dumps({"extenders": [{"urlPrefix": URL, **each} for each in extenders], **more})[1:-1].replace(
        '"extenders": ', "extenders: "
    )


FILTERS = {"filterVerb": "filter", "nodeCacheCapable": True}
PRIORITIZES = {"prioritizeVerb": "prioritize", "weight": 1, "nodeCacheCapable": True}
MANAGES = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}]}


def gpu_pod(name: str, **more: Any) -> Pod:
    return pod(name, cpu="1", requests={GPU: 1}, **more)


def reason(cluster: VirtualCluster, name: str) -> tuple[str, str]:
    """The condition of a pod that was not scheduled, without what post_filter plugins add."""
    (condition,) = [c for c in cluster.pod(name).status.conditions or () if c.type == "PodScheduled"]
    return condition.reason, condition.message.partition(" no new claims")[0].partition(" preemption:")[0]


# --- filter ---------------------------------------------------------------------------------------------------------


async def test_a_filter_by_node_names_leaves_the_nodes_it_answers(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name == "node-2")})
    async with virtual_cluster(nodes=3, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
    (asked,) = extender.asked
    assert sorted(asked.nodes) == ["node-1", "node-2", "node-3"]
    assert asked.request["Nodes"] is None
    assert set(asked.request) == {"Pod", "Nodes", "NodeNames"}


async def test_a_filter_by_objects_sees_whole_pods_and_nodes(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name == "node-2")})
    beginning = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "node-2", "annotations": {"rack": "7"}},
        "spec": {"podCIDR": "10.1.0.0/24"},
        "status": {"allocatable": {"cpu": "4", "pods": "10"}, "nodeInfo": {"kernelVersion": "6.1"}},
    }
    wanted = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i", "command": ["sleep", "1"]}]},
    }
    settings = config({"filterVerb": "filter"})
    async with virtual_cluster(nodes=[beginning, node("other")], config=settings, extenders=[extender]) as cluster:
        await cluster.create(wanted)
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
    (asked,) = extender.asked
    assert asked.request["NodeNames"] is None
    seen = {one["metadata"]["name"]: one for one in asked.request["Nodes"]["items"]}
    assert seen["node-2"]["spec"]["podCIDR"] == "10.1.0.0/24"
    assert seen["node-2"]["status"]["nodeInfo"] == {"kernelVersion": "6.1"}
    assert "kind" not in seen["node-2"]
    assert "managedFields" not in seen["node-2"]["metadata"]
    assert asked.request["Pod"]["spec"]["containers"][0]["command"] == ["sleep", "1"]
    assert asked.request["Pod"]["metadata"]["namespace"] == "default"


async def test_changed_objects_are_sent_in_their_newest_version(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)})
    async with virtual_cluster(nodes=[node("n")], config=config({"filterVerb": "filter"}), extenders=[extender]) as c:
        await c.patch(node("n"), {"metadata": {"annotations": {"rack": "8"}}})
        await trio.sleep(1)
        await c.create(pod("p"))
        await c.settle()
    (asked,) = extender.asked
    assert asked.request["Nodes"]["items"][0]["metadata"]["annotations"]["rack"] == "8"


async def test_extenders_filter_in_order_and_ignorable_ones_come_last(autojump_clock: MockClock) -> None:
    first = PretendExtender("http://first.test", {"filter": leaving(lambda name: name != "node-1")})
    last = PretendExtender("http://last.test:9000/path/", {"filter": leaving(lambda name: name != "node-2")})
    settings = config(
        {**FILTERS, "urlPrefix": last.url, "ignorable": True},
        {**FILTERS, "urlPrefix": first.url},
    )
    async with virtual_cluster(nodes=3, config=settings, extenders=[first, last]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-3"
    assert len(first.asked[0].nodes) == 3
    assert sorted(last.asked[0].nodes) == ["node-2", "node-3"]


async def test_rejections_by_extenders_are_reported_and_any_event_requeues_the_pod(autojump_clock: MockClock) -> None:
    def answer(asked: Asked) -> Any:
        if "new" in asked.nodes:
            return {"nodeNames": ["new"]}
        return {
            "NodeNames": [],
            "FailedNodes": {"a": "no licence", "b": "not counted"},
            "failedAndUnresolvableNodes": {"b": "no such hardware"},
        }

    extender = PretendExtender(URL, {"filter": answer})
    async with virtual_cluster(
        nodes=[node("a"), node("b"), node("c"), node("small", cpu="1")], config=config(FILTERS), extenders=[extender]
    ) as cluster:
        await cluster.create(pod("p", cpu="2"))
        await cluster.settle()
        assert reason(cluster, "p") == (
            "Unschedulable",
            "0/4 nodes are available: 1 Insufficient cpu, 1 no licence, 1 no such hardware.",
        )
        assert sorted(extender.asked[0].nodes) == ["a", "b", "c"]
        await cluster.create(node("new"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "new"


async def test_post_filter_gets_the_statuses_of_extenders(autojump_clock: MockClock) -> None:
    diagnoses: list[Any] = []

    class Rescue(PluginBase):
        @hookimpl
        def post_filter(self, pod: Pod, diagnosis: Diagnosis) -> None:
            diagnoses.append(diagnosis)

    extender = PretendExtender(URL, {"filter": leaving(lambda name: False, "full")})
    async with virtual_cluster(nodes=1, config=config(FILTERS), extenders=[extender], plugins=[Rescue]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
    assert diagnoses[0].unschedulable_plugins == {"Extender"}
    assert diagnoses[0].statuses.by_node() == {"node-1": unschedulable("full")}


@pytest.mark.parametrize(
    ("answer", "status", "text"),
    [
        ({"Error": "out of ideas"}, 200, "out of ideas"),
        ({}, 500, f"failed filter with extender at URL {URL}/filter, code 500"),
        (b"<html>", 200, "invalid character '<' looking for beginning of value"),
        (b"", 200, "EOF"),
        (
            {"NodeNames": ["elsewhere"]},
            200,
            f'extender "{URL}" claims a filtered node "elsewhere" which is not found in the input node list',
        ),
    ],
)
async def test_an_invalid_answer_fails_the_attempt_until_there_is_a_valid_one(
    autojump_clock: MockClock, answer: Any, status: int, text: str
) -> None:
    extender = PretendExtender(URL, {"filter": answer}, status=status)
    async with virtual_cluster(nodes=1, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(20)
        assert reason(cluster, "p") == ("SchedulerError", text)
        assert len(extender.asked) == 5  # at 0, 1, 3, 7 and 15 s
        extender.answers, extender.status = {"filter": leaving(lambda name: True)}, 200
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"


async def test_the_password_in_the_url_of_an_extender_is_never_shown(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    secret, shown = "http://me:s3cr3t@extender.test", "http://me:xxxxx@extender.test"
    extender = PretendExtender(URL, {"filter": {"NodeNames": ["elsewhere"]}})
    settings = config({**FILTERS, "urlPrefix": secret})
    async with virtual_cluster(nodes=1, config=settings, extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(20)
        texts = [str(reason(cluster, "p"))]
        extender.status = 500
        await trio.sleep(60)
        texts.append(str(reason(cluster, "p")))
        extender.is_dead = True
        await trio.sleep(60)
        texts += [str(reason(cluster, "p")), str(cluster.events())]
    assert "s3cr3t" not in "".join(texts)
    assert [shown in text for text in texts[:3]] == [True, True, True]
    assert "s3cr3t" not in "".join(str(vars(record)) for record in caplog.records)


async def test_extenders_are_not_called_without_nodes(autojump_clock: MockClock) -> None:
    first = PretendExtender("http://first.test", {"filter": leaving(lambda name: False)})
    last = PretendExtender(URL, {"filter": leaving(lambda name: True)})
    settings = config({**FILTERS, "urlPrefix": first.url}, FILTERS, {**FILTERS, **MANAGES})
    async with virtual_cluster(nodes=[node("a", cpu="1")], config=settings, extenders=[first, last]) as cluster:
        await cluster.create(pod("too-big", cpu="2"))
        await cluster.create(pod("p"))
        await cluster.settle()
        assert reason(cluster, "too-big")[1].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert set(first.asked_about("filter")) == {"p"}
    assert last.asked == []


async def test_an_answer_without_nodes_and_names_leaves_no_node(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": {}})
    async with virtual_cluster(nodes=2, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert reason(cluster, "p") == ("Unschedulable", "0/2 nodes are available:")


# --- prioritize -----------------------------------------------------------------------------------------------------


async def test_weights_decide_between_extenders(autojump_clock: MockClock) -> None:
    light = PretendExtender("http://light.test", {"prioritize": scoring({"node-1": 10})})
    heavy = PretendExtender("http://heavy.test", {"prioritize": scoring({"node-2": 4})})
    settings = config(
        {**PRIORITIZES, "urlPrefix": light.url, "weight": 100}, {**PRIORITIZES, "urlPrefix": heavy.url, "weight": 300}
    )
    async with virtual_cluster(nodes=3, config=settings, extenders=[light, heavy]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
        heavy.answers = {"prioritize": scoring({"node-2": 3})}
        await cluster.create(pod("q"))
        await cluster.settle()
        assert cluster.pod("q").node_name == "node-1"


async def test_scores_of_extenders_are_added_to_those_of_plugins(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"prioritize": scoring({"full": 1})})
    nodes = [node("full", cpu="10"), node("empty", cpu="10")]
    running = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "there"},
        "spec": {
            "nodeName": "full",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "5"}}}],
        },
    }
    async with virtual_cluster(nodes=nodes, config=config(PRIORITIZES), extenders=[extender]) as cluster:
        await cluster.create(running)
        await trio.sleep(1)
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "empty"
        extender.answers = {"prioritize": scoring({"full": 10})}
        await cluster.create(pod("q"))
        await cluster.settle()
        assert cluster.pod("q").node_name == "full"


async def test_prioritize_is_not_called_for_a_single_node(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name == "node-1"), "prioritize": scoring({})})
    settings = config({**FILTERS, **PRIORITIZES})
    async with virtual_cluster(nodes=2, config=settings, extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
    assert [asked.verb for asked in extender.asked] == ["filter"]


async def test_a_failing_prioritize_is_ignored(autojump_clock: MockClock, caplog: pytest.LogCaptureFixture) -> None:
    extender = PretendExtender(URL, {"prioritize": b"oops"})
    async with virtual_cluster(nodes=2, config=config(PRIORITIZES), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name
    assert len(extender.asked) == 1
    assert [record.message for record in caplog.records if record.levelname == "WARNING"] == ["Extender failed"]


async def test_scores_at_the_limits_of_int64_do_no_harm(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"prioritize": scoring({"node-1": 2**63 - 1, "node-2": -(2**63)})})
    async with virtual_cluster(nodes=3, config=config({**PRIORITIZES, "weight": 99}), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name


# --- slow and unreachable -------------------------------------------------------------------------------------------


async def test_an_unreachable_extender_delays_only_pods_it_is_interested_in(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, is_dead=True)
    async with virtual_cluster(nodes=2, config=config({**FILTERS, **MANAGES}), extenders=[extender]) as cluster:
        for n in range(3):
            await cluster.create(gpu_pod(f"gpu-{n}"))
            await cluster.create(pod(f"plain-{n}"))
        await trio.sleep(0.5)
        assert all(cluster.pod(f"plain-{n}").node_name for n in range(3))
        text = f'Post "{URL}/filter": dial tcp extender.test:80: connect: connection refused'
        assert reason(cluster, "gpu-0") == ("SchedulerError", text)
        extender.is_dead = False
        await cluster.settle()
        assert all(cluster.pod(f"gpu-{n}").node_name for n in range(3))
    (line,) = [record for record in caplog.records if record.message == "Extender failed"]
    assert (line.extender, line.verb, line.pod, line.seconds) == (URL, "filter", "default/gpu-0", 0.0)  # type: ignore[attr-defined]


async def test_an_ignorable_extender_may_be_unreachable(autojump_clock: MockClock) -> None:
    dead = PretendExtender("http://dead.test", is_dead=True)
    alive = PretendExtender(URL, {"filter": leaving(lambda name: name == "node-2")})
    settings = config({**FILTERS, "urlPrefix": dead.url, "ignorable": True}, FILTERS)
    async with virtual_cluster(nodes=2, config=settings, extenders=[dead, alive]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(0.5)
        assert cluster.pod("p").node_name == "node-2"


async def test_a_slow_extender_is_called_for_one_pod_at_a_time_and_other_pods_do_not_wait(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=3)
    async with virtual_cluster(nodes=2, config=config({**FILTERS, **MANAGES}), extenders=[extender]) as cluster:
        began = trio.current_time()
        await cluster.create(gpu_pod("gpu-0"))
        await trio.sleep(0.1)
        await cluster.create(gpu_pod("gpu-1"))
        await cluster.create(gpu_pod("gpu-2", priority=10))
        await cluster.create(pod("plain"))
        await trio.sleep(0.5)
        assert cluster.pod("plain").node_name
        assert not cluster.pod("gpu-0").node_name
        await cluster.settle()
        assert all(cluster.pod(f"gpu-{n}").node_name for n in range(3))
        assert extender.most_at_once == 1
        # In the order of the queue: the important one overtakes those that only wait.
        assert extender.asked_about("filter") == ["gpu-0", "gpu-2", "gpu-1"]
        assert [round(asked.at - began) for asked in extender.asked] == [0, 3, 6]
    lines = [record for record in caplog.records if record.message == "Extender is slow"]
    assert [(line.pod, line.seconds) for line in lines] == [("default/gpu-0", 3.0)]  # type: ignore[attr-defined]


async def test_an_extender_that_exceeds_its_timeout_has_failed(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=60)
    settings = config({**FILTERS, "httpTimeout": "2s"})
    async with virtual_cluster(nodes=1, config=settings, extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(2.5)
        text = f'Post "{URL}/filter": context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        assert reason(cluster, "p") == ("SchedulerError", text)
        assert cluster.events("FailedScheduling")[0].message == text


# --- the cluster changes during the call ----------------------------------------------------------------------------


async def test_a_node_deleted_during_the_call_is_not_chosen(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=3)
    async with virtual_cluster(nodes=2, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        await cluster.delete(node("node-1"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
    assert len(extender.asked) == 1


async def test_a_node_filled_up_during_the_call_is_not_chosen(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True, "")}, delay_seconds=3)
    nodes = [node("n", cpu="2")]
    async with virtual_cluster(nodes=nodes, config=config({**FILTERS, **MANAGES}), extenders=[extender]) as cluster:
        await cluster.create(gpu_pod("gpu"))
        await trio.sleep(1)
        await cluster.create(pod("plain", cpu="2"))
        await trio.sleep(2.5)
        assert cluster.pod("plain").node_name == "n"
        assert reason(cluster, "gpu") == ("Unschedulable", "0/1 nodes are available: 1 Insufficient cpu.")
        await cluster.delete(cluster.pod("plain"), grace_seconds=0)
        await cluster.settle()
        assert cluster.pod("gpu").node_name == "n"


async def test_a_pod_deleted_during_the_call_is_not_scheduled(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=3)
    async with virtual_cluster(nodes=1, config=config(FILTERS), extenders=[extender]) as cluster:
        for name in ("asked", "waiting", "last"):
            await cluster.create(pod(name))
            await trio.sleep(0.1)
        await cluster.delete(pod("asked"))
        await cluster.delete(pod("waiting"))
        await cluster.settle()
        assert cluster.pod("last").node_name == "node-1"
        assert extender.asked_about("filter") == ["asked", "last"]
        assert cluster.events("FailedScheduling") == []


async def test_a_pod_bound_by_another_client_during_the_call_is_not_scheduled(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: name == "node-1")}, delay_seconds=3)
    async with virtual_cluster(nodes=2, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"}, "target": {"name": "node-2"}}
        path = "/api/v1/namespaces/default/pods/p/binding"
        json_type = {"content-type": "application/json"}
        response = await cluster.api.handle("POST", path, "", json_type, json.dumps(binding).encode())
        assert response.status == 201
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
        assert cluster.events() == []


async def test_a_pod_updated_during_the_call_is_decided_in_its_newest_version(autojump_clock: MockClock) -> None:
    class Coloured(PluginBase):
        @hookimpl
        def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
            colour = pod.labels.get("colour")
            return None if colour in (None, node.labels.get("colour")) else unschedulable("wrong colour")

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(Resource.NODE, Action.ADD)]

    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=3)
    nodes = [node("red", labels={"colour": "red"}), node("blue", labels={"colour": "blue"})]
    async with virtual_cluster(
        nodes=nodes, config=config(FILTERS), extenders=[extender], plugins=[Coloured]
    ) as cluster:
        created = [await cluster.create(pod(f"p{n}")) for n in range(3)]
        await trio.sleep(1)
        for one in created:
            await cluster.patch(one, {"metadata": {"labels": {"colour": "blue"}}})
        await cluster.settle()
        assert {one.node_name for one in cluster.pods()} == {"blue"}
    assert extender.asked_about("filter") == ["p0", "p1", "p2"]
    assert extender.asked[1].request["Pod"]["metadata"]["labels"] == {"colour": "blue"}


# --- nominated nodes ------------------------------------------------------------------------------------------------


async def nominate(cluster: VirtualCluster, name: str, node_name: str) -> None:
    await cluster.create(pod(name))
    await cluster.patch(pod(name), {"status": {"nominatedNodeName": node_name}}, subresource="status")


async def test_the_nominated_node_is_sent_first_and_suffices(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)})
    async with virtual_cluster(nodes=3, config=config(FILTERS), extenders=[extender], scheduler=False) as cluster:
        await nominate(cluster, "p", "node-2")
        await cluster.start_scheduler()
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-2"
    assert [asked.nodes for asked in extender.asked] == [["node-2"]]


@pytest.mark.parametrize("fails", [False, True])
async def test_all_nodes_are_sent_if_the_nominated_node_is_rejected(autojump_clock: MockClock, fails: bool) -> None:
    def answer(asked: Asked) -> Any:
        if asked.nodes == ["node-2"] and fails:
            return {"Error": "not now"}
        return leaving(lambda name: name == "node-3", "not there")(asked)

    extender = PretendExtender(URL, {"filter": answer})
    async with virtual_cluster(nodes=3, config=config(FILTERS), extenders=[extender], scheduler=False) as cluster:
        await nominate(cluster, "p", "node-2")
        await cluster.start_scheduler()
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-3"
    assert [len(asked.nodes) for asked in extender.asked] == [1, 3]


# --- managed resources, bind ----------------------------------------------------------------------------------------


async def test_managed_resources_select_pods_and_are_ignored_by_node_resources_fit(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)})
    async with virtual_cluster(nodes=1, config=config({**FILTERS, **MANAGES}), extenders=[extender]) as cluster:
        await cluster.create(pod("plain"))
        await cluster.create(gpu_pod("gpu"))  # no node has any, but that is the extender's business
        await cluster.settle()
        assert cluster.pod("plain").node_name == cluster.pod("gpu").node_name == "node-1"
    assert extender.asked_about("filter") == ["gpu"]


def binder(cluster: list[VirtualCluster]) -> Any:
    """An answer to bind that does bind."""

    async def answer(asked: Asked) -> Any:
        name = asked.request["PodName"]
        target = {"kind": "Node", "name": asked.request["Node"]}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        path = f"/api/v1/namespaces/{asked.request['PodNamespace']}/pods/{name}/binding"
        headers = {"content-type": "application/json"}
        await cluster[0].api.handle("POST", path, "", headers, json.dumps(binding).encode())
        return {"Error": ""}

    return answer


async def test_an_extender_binds_in_place_of_the_plugins(autojump_clock: MockClock) -> None:
    clusters: list[VirtualCluster] = []
    extender = PretendExtender(URL, {"bind": binder(clusters)})
    async with virtual_cluster(nodes=1, config=config({"bindVerb": "bind"}), extenders=[extender]) as cluster:
        clusters.append(cluster)
        created = await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"
        (event,) = cluster.events("Scheduled")
        assert event.message == "Successfully assigned default/p to node-1"
    (asked,) = extender.asked
    wanted = {"PodName": "p", "PodNamespace": "default", "PodUID": created.uid, "Node": "node-1"}
    assert asked.request == wanted


async def test_a_failing_bind_of_an_extender_unreserves_the_pod(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"bind": {"Error": "no hands"}})
    async with virtual_cluster(nodes=1, config=config({"bindVerb": "bind"}), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(0.5)
        assert reason(cluster, "p") == ("SchedulerError", "no hands")
        clusters = [cluster]
        extender.answers = {"bind": binder(clusters)}
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"


async def test_if_bind_of_an_ignorable_extender_fails_the_plugins_bind(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"bind": {"Error": "no hands"}})
    settings = config({"bindVerb": "bind", "ignorable": True})
    async with virtual_cluster(nodes=1, config=settings, extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await cluster.settle()
        assert cluster.pod("p").node_name == "node-1"


async def test_pods_whose_turn_with_the_extenders_has_not_come_are_active(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=4)
    async with virtual_cluster(nodes=2, config=config(FILTERS), extenders=[extender]) as cluster:
        for name in "abc":
            await cluster.create(pod(name))
        await trio.sleep(2)
        assembly = cluster.scheduler.assembly
        queue = assembly.scheduler.queue
        assert (queue.sizes()["active"], len(queue.in_flight)) == (2, 1)
        page = SchedulerPages(assembly, ExplainPage(assembly)).handlers()["/debug/scheduler/queue"]
        waiting = json.loads((await page(Request(method="GET", path="", target=""))).body)["waitingForExtenders"]
        assert [(one["pod"], one["attempts"]) for one in waiting["items"]] == [("default/b", 0), ("default/c", 0)]
        await cluster.delete(pod("b"))
        await trio.sleep(1)
        assert queue.sizes()["active"] == 1
        await cluster.settle()
        assert queue.sizes()["active"] == 0


async def test_slow_binds_of_an_extender_do_not_delay_other_binds(autojump_clock: MockClock) -> None:
    clusters: list[VirtualCluster] = []
    extender = PretendExtender(URL, {"bind": binder(clusters)}, delay_seconds=4)
    settings = config({"bindVerb": "bind", **MANAGES})
    async with virtual_cluster(nodes=1, config=settings, extenders=[extender]) as cluster:
        clusters.append(cluster)
        for n in range(40):
            await cluster.create(pod(f"gpu-{n}", cpu="1m", requests={GPU: 1}))
        await cluster.create(pod("plain"))
        await trio.sleep(1)
        assert cluster.pod("plain").node_name == "node-1"


# --- stopping -------------------------------------------------------------------------------------------------------


async def test_a_stop_does_not_wait_for_an_extender(autojump_clock: MockClock) -> None:
    extender = PretendExtender(URL, {"filter": leaving(lambda name: True)}, delay_seconds=4)
    async with virtual_cluster(nodes=1, config=config(FILTERS), extenders=[extender]) as cluster:
        await cluster.create(pod("p"))
        await trio.sleep(1)
        began = trio.current_time()
        await cluster.stop_scheduler()
        assert trio.current_time() - began < 1
        assert cluster.pod("p").node_name == ""
