"""What controllers tell, as ``kubectl describe`` shows it."""

from typing import Any

import pytest
import trio
from simulated_workloads import SELECTOR, Cluster, template
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator.controllers.events import EventRecorder


def told(cluster: Cluster, kind: str = "", reason: str = "") -> list[tuple[str, str, str]]:
    """Type, reason and message of the events about a kind, in their order."""
    events = cluster.server.store.collection("events").objects.values()
    return [
        (one.fields["type"], one.fields["reason"], one.fields["message"])
        for one in events
        if one.fields["involvedObject"]["kind"].endswith(kind) and one.fields["reason"].endswith(reason)
    ]


async def test_a_rollout_is_told(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("deployments", replicas=2, selector=SELECTOR, template=template())
    await trio.sleep(10)
    (replica_set,) = cluster.names("replicasets.apps")
    up = f"Scaled up replica set {replica_set} from 0 to 2"
    assert told(cluster, "Deployment") == [("Normal", "ScalingReplicaSet", up)]
    created = [("Normal", "SuccessfulCreate", f"Created pod: {name}") for name in cluster.names()]
    assert sorted(told(cluster, "ReplicaSet")) == created
    (gone, _kept) = cluster.names()
    await cluster.patch("deployments", "app", {"spec": {"replicas": 0}})
    await trio.sleep(10)
    down = f"Scaled down replica set {replica_set} from 2 to 0"
    assert told(cluster, "Deployment")[1:] == [("Normal", "ScalingReplicaSet", down)]
    assert ("Normal", "SuccessfulDelete", f"Deleted pod: {gone}") in told(cluster, "ReplicaSet")


async def test_an_event_names_its_object_and_its_source(cluster: Cluster, autojump_clock: MockClock) -> None:
    made = await cluster.make("replicasets", replicas=1, selector=SELECTOR, template=template())
    await trio.sleep(10)
    listed = await cluster("GET", "/api/v1/namespaces/default/events?fieldSelector=reason=SuccessfulCreate")
    (event,) = listed["items"]
    about = event["involvedObject"]
    assert (about["kind"], about["apiVersion"], about["name"]) == ("ReplicaSet", "apps/v1", "app")
    assert (about["namespace"], about["uid"]) == ("default", made["metadata"]["uid"])
    assert event["source"] == {"component": "replicaset-controller"}
    assert (event["count"], event["firstTimestamp"]) == (1, event["lastTimestamp"])


async def test_what_stateful_sets_tell(cluster: Cluster, autojump_clock: MockClock) -> None:
    claims = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    templates = [{"metadata": {"name": "data"}, "spec": claims}]
    await cluster.make(
        "statefulsets", "db", replicas=1, selector=SELECTOR, template=template(), volumeClaimTemplates=templates
    )
    await trio.sleep(10)
    await cluster.patch("statefulsets", "db", {"spec": {"replicas": 0}})
    await trio.sleep(10)
    assert told(cluster, "StatefulSet") == [
        ("Normal", "SuccessfulCreate", "Create Claim data-db-0 Pod db-0 in StatefulSet db success"),
        ("Normal", "SuccessfulCreate", "Create Pod db-0 in StatefulSet db successful"),
        ("Normal", "SuccessfulDelete", "Delete Pod db-0 in StatefulSet db successful"),
    ]


async def test_what_jobs_tell(cluster: Cluster, autojump_clock: MockClock) -> None:
    short = template(annotations={"trio-sched.dev/run-seconds": "5"}, restartPolicy="Never")
    await cluster.make("jobs", "work", template=short)
    await trio.sleep(3)
    for suspend in (True, False):
        await cluster.patch("jobs", "work", {"spec": {"suspend": suspend}})
        await trio.sleep(3)
    await trio.sleep(20)
    reasons = [reason for _type, reason, _message in told(cluster, "Job")]
    first, second = "SuccessfulCreate", "SuccessfulDelete"
    assert reasons == [first, second, "Suspended", first, "Resumed", "Completed"]


async def test_refused_pods_are_told(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("resourcequotas", "few", hard={"pods": "0"})
    await cluster.make("replicasets", replicas=1, selector=SELECTOR, template=template())
    await trio.sleep(10)
    (first, *_rest) = told(cluster, "ReplicaSet")
    assert first[:2] == ("Warning", "FailedCreate")
    assert first[2].startswith('Error creating: pods "app-')
    assert first[2].endswith("is forbidden: exceeded quota: few, requested: pods=1, used: pods=0, limited: pods=0")


async def test_evictions_by_taints_are_told_and_cancelled(cluster: Cluster, autojump_clock: MockClock) -> None:
    patient = [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]
    for name, tolerations in (("stays", patient), ("goes", [])):
        await cluster.create_pod(name, tolerations=tolerations, nodeName="n1")
    taints = [{"key": "own", "value": "x", "effect": "NoExecute"}]
    await cluster.patch("nodes", "n1", {"spec": {"taints": taints}})
    await trio.sleep(5)
    assert told(cluster, "Pod", "Eviction") == [
        ("Normal", "TaintManagerEviction", "Marking for deletion Pod default/goes")
    ]
    await cluster.patch("nodes", "n1", {"spec": {"taints": None}})
    await trio.sleep(5)
    cancelled = ("Normal", "TaintManagerEviction", "Cancelling deletion of Pod default/stays")
    assert told(cluster, "Pod", "Eviction")[1:] == [cancelled]


async def test_budgets_tell_what_they_cannot_count(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.create_pod("bare", labels={"app": "app"})
    await cluster.make("jobs", "work", template=template(app="work", restartPolicy="Never"))
    await trio.sleep(5)
    await cluster.make("poddisruptionbudgets", "bare", selector=SELECTOR, maxUnavailable=1)
    work = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["work", "none"]}]}
    await cluster.make("poddisruptionbudgets", "work", selector=work, maxUnavailable=1)
    none = {"matchLabels": {"app": "none"}}
    await cluster.make("poddisruptionbudgets", "none", selector=none, minAvailable=1)
    await trio.sleep(5)
    events = {reason: message for _type, reason, message in told(cluster, "PodDisruptionBudget")}
    why = "jobs.batch does not implement the scale subresource"
    failed = "CalculateExpectedPodCountFailed"
    assert events[failed] == f"Failed to calculate the number of expected pods: {why}"
    assert events["NoPods"] == "No matching pods found"
    selected = "&LabelSelector{MatchLabels:map[string]string{app: app,},MatchExpressions:[]LabelSelectorRequirement{},}"
    assert f"(selector: {selected})" in events["UnmanagedPods"]
    (condition,) = (await cluster.status("poddisruptionbudgets", "work"))["conditions"]
    assert (condition["reason"], condition["message"]) == ("SyncFailed", why)


# --- the recorder ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def pod(cluster: Cluster) -> Any:
    await cluster.create_pod("p")
    return cluster.server.store.get("pods", "default/p")


@pytest.fixture
def recorder(cluster: Cluster) -> EventRecorder:
    return EventRecorder(cluster.server, "tester")


def written(cluster: Cluster) -> list[Json]:
    stored = cluster.server.store.collection("events").objects.values()
    return [one.fields for one in stored if one.fields["source"].get("component") == "tester"]


async def test_equal_events_are_counted(
    cluster: Cluster, recorder: EventRecorder, pod: Any, autojump_clock: MockClock
) -> None:
    pods = cluster.server.state.types.core("pods")
    for _ in range(3):
        recorder.normal(pods, pod, "Same", "the same")
        await trio.sleep(10)
    (event,) = written(cluster)
    assert event["count"] == 3
    assert (event["firstTimestamp"], event["lastTimestamp"]) == ("2026-01-01T00:00:00Z", "2026-01-01T00:00:20Z")


async def test_similar_events_are_combined(
    cluster: Cluster, recorder: EventRecorder, pod: Any, autojump_clock: MockClock
) -> None:
    pods = cluster.server.state.types.core("pods")
    for number in range(12):
        recorder.normal(pods, pod, "Similar", f"number {number}")
    messages = [event["message"] for event in written(cluster)]
    combined = "(combined from similar events): number 11"
    assert messages == [*(f"number {number}" for number in range(9)), combined]
    assert written(cluster)[-1]["count"] == 3
    await trio.sleep(601)
    recorder.normal(pods, pod, "Similar", "much later")
    assert written(cluster)[-1]["message"] == "much later"


async def test_events_of_one_object_are_limited(
    cluster: Cluster, recorder: EventRecorder, pod: Any, autojump_clock: MockClock
) -> None:
    pods = cluster.server.state.types.core("pods")

    def count() -> int:
        return sum(event["count"] for event in written(cluster))

    for number in range(40):
        recorder.warning(pods, pod, f"Reason{number}", "much")
    assert count() == 25
    recorder.normal(pods, pod, "Other", "another type counts for itself")
    assert count() == 26
    await trio.sleep(300)
    for number in range(3):
        recorder.warning(pods, pod, f"Late{number}", "one more after five minutes")
    assert count() == 27


async def test_a_namespace_that_goes_gets_no_events(
    cluster: Cluster, recorder: EventRecorder, autojump_clock: MockClock
) -> None:
    await cluster("POST", "/api/v1/namespaces", {"metadata": {"name": "gone", "finalizers": ["example.com/wait"]}})
    await cluster.create_pod("p", namespace="gone", nodeName="n1")
    await cluster("DELETE", "/api/v1/namespaces/gone")
    pod = cluster.server.store.get("pods", "gone/p")
    assert pod is not None
    recorder.normal(cluster.server.state.types.core("pods"), pod, "Late", "nobody reads it")
    assert written(cluster) == []


async def test_events_expire_an_hour_after_they_were_written_last(cluster: Cluster, autojump_clock: MockClock) -> None:
    await cluster.make("replicasets", replicas=1, selector=SELECTOR, template=template())
    await trio.sleep(1800)
    (event,) = cluster.stored("events")
    name = event["metadata"]["name"]
    await cluster.patch("events", name, {"count": 2})
    await trio.sleep(3590)
    assert cluster.names("events") == [name]
    await trio.sleep(20)
    assert cluster.names("events") == []
