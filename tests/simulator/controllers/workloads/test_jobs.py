from typing import Any

import pytest
import trio
from simulated_workloads import Cluster, condition
from trio.testing import MockClock

from trio_sched.documents.json_values import Json
from trio_sched.simulator.admission.annotations import number_in
from trio_sched.simulator.controllers.workloads.job_indexes import read_indexes

RUN, CODE = "trio-sched.dev/run-seconds", "trio-sched.dev/exit-code"


def pods(seconds: int = 10, code: int = 0, **spec: Any) -> Json:
    annotations = {RUN: str(seconds), CODE: str(code)}
    containers = [{"name": "main", "image": "app:1"}]
    spec = {"restartPolicy": "Never", "containers": containers, **spec}
    return {"metadata": {"annotations": annotations}, "spec": spec}


async def make(cluster: Cluster, template: Json | None = None, **spec: Any) -> Json:
    return await cluster.make("jobs", "work", template=template or pods(), **spec)


async def test_a_job_ends_with_its_completions(cluster: Cluster, autojump_clock: MockClock) -> None:
    made = await make(cluster, parallelism=2, completions=3)
    uid = made["metadata"]["uid"]
    assert made["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    await trio.sleep(5)
    status = await cluster.status("jobs", "work")
    assert (status["active"], status["ready"]) == (2, 2)
    (pod, _other) = cluster.stored("pods")
    assert pod["metadata"]["finalizers"] == ["batch.kubernetes.io/job-tracking"]
    assert pod["metadata"]["labels"] == {
        "batch.kubernetes.io/job-name": "work",
        "job-name": "work",
        "batch.kubernetes.io/controller-uid": uid,
        "controller-uid": uid,
    }
    await trio.sleep(60)
    assert cluster.phases() == {"Succeeded": 3}
    status = await cluster.status("jobs", "work")
    assert (status["succeeded"], status.get("active"), status["startTime"]) == (3, None, "2026-01-01T00:00:00Z")
    assert condition(status, "SuccessCriteriaMet") == ("True", "CompletionsReached")
    assert condition(status, "Complete") == ("True", "CompletionsReached")
    assert all("finalizers" not in pod["metadata"] for pod in cluster.stored("pods"))
    await trio.sleep(600)
    assert cluster.phases() == {"Succeeded": 3}


async def test_the_annotation_may_be_the_jobs_own(cluster: Cluster, autojump_clock: MockClock) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}}
    await cluster.make("jobs", "work", template=template, metadata={"annotations": {RUN: "5"}})
    await trio.sleep(20)
    assert condition(await cluster.status("jobs", "work"), "Complete")[0] == "True"


async def test_a_failing_job_backs_off_and_gives_up(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, pods(1, code=1), backoffLimit=2)
    await trio.sleep(8)
    assert cluster.phases() == {"Failed": 1}
    await trio.sleep(10)
    assert cluster.phases() == {"Failed": 2}
    await trio.sleep(10)
    assert cluster.phases() == {"Failed": 2}
    await trio.sleep(30)
    status = await cluster.status("jobs", "work")
    assert cluster.phases() == {"Failed": 3}
    assert status["failed"] == 3
    assert condition(status, "Failed") == ("True", "BackoffLimitExceeded")


async def test_an_indexed_job_has_a_pod_per_index(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, completions=4, parallelism=2, completionMode="Indexed")
    await trio.sleep(5)
    assert [name.rpartition("-")[0] for name in cluster.names()] == ["work-0", "work-1"]
    pod = cluster.stored("pods")[1]
    assert pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] == "1"
    assert pod["spec"]["hostname"] == "work-1"
    assert pod["spec"]["containers"][0]["env"][0]["name"] == "JOB_COMPLETION_INDEX"
    await trio.sleep(10)
    assert (await cluster.status("jobs", "work"))["completedIndexes"] == "0,1"
    await trio.sleep(30)
    status = await cluster.status("jobs", "work")
    assert (status["completedIndexes"], condition(status, "Complete")[0]) == ("0-3", "True")


async def test_indexes_fail_on_their_own(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, pods(1, code=1), completions=2, parallelism=2, completionMode="Indexed", backoffLimitPerIndex=1)
    await trio.sleep(60)
    status = await cluster.status("jobs", "work")
    assert (status["failed"], status["failedIndexes"]) == (4, "0,1")
    assert condition(status, "Failed") == ("True", "FailedIndexes")


async def test_a_success_policy_ends_a_job(cluster: Cluster, autojump_clock: MockClock) -> None:
    policy = {"rules": [{"succeededCount": 1}]}
    await make(cluster, completions=4, parallelism=1, completionMode="Indexed", successPolicy=policy)
    await trio.sleep(30)
    status = await cluster.status("jobs", "work")
    assert (status["succeeded"], condition(status, "Complete")) == (1, ("True", "SuccessPolicy"))


@pytest.mark.parametrize(
    ("action", "failed", "ending"), [("FailJob", 1, ("True", "PodFailurePolicy")), ("Ignore", 0, ("", ""))]
)
async def test_a_failure_policy_decides(
    cluster: Cluster, autojump_clock: MockClock, action: str, failed: int, ending: tuple[str, str]
) -> None:
    rule = {"action": action, "onExitCodes": {"operator": "In", "values": [42]}}
    await make(cluster, pods(1, code=42), podFailurePolicy={"rules": [rule]})
    await trio.sleep(8)
    status = await cluster.status("jobs", "work")
    assert (status.get("failed", 0), condition(status, "Failed")) == (failed, ending)


async def test_a_job_can_be_suspended_and_resumed(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, parallelism=2, completions=2, suspend=True)
    await trio.sleep(5)
    status = await cluster.status("jobs", "work")
    assert (cluster.names(), condition(status, "Suspended")) == ([], ("True", "JobSuspended"))
    await cluster.patch("jobs", "work", {"spec": {"suspend": False}})
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 2}
    await cluster.patch("jobs", "work", {"spec": {"suspend": True}})
    await trio.sleep(5)
    assert cluster.phases() == {}
    await cluster.patch("jobs", "work", {"spec": {"suspend": False}})
    await trio.sleep(60)
    status = await cluster.status("jobs", "work")
    assert condition(status, "Suspended") == ("False", "JobResumed")
    assert condition(status, "Complete")[0] == "True"


async def test_a_job_has_a_deadline(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, pods(1000), activeDeadlineSeconds=30)
    await trio.sleep(29)
    assert cluster.phases() == {"Running": 1}
    await trio.sleep(5)
    status = await cluster.status("jobs", "work")
    assert (cluster.phases(), condition(status, "Failed")) == ({}, ("True", "DeadlineExceeded"))


async def test_a_lost_pod_is_replaced_and_counts_as_failed(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, pods(100))
    await trio.sleep(5)
    lost = cluster.names()[0]
    await cluster.remove("pods", lost)
    await trio.sleep(20)
    assert cluster.phases() == {"Running": 1}
    assert lost not in cluster.names()
    assert (await cluster.status("jobs", "work"))["failed"] == 1


async def test_a_work_queue_ends_when_all_pods_have_ended(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, parallelism=3)
    await trio.sleep(30)
    status = await cluster.status("jobs", "work")
    assert (status["succeeded"], condition(status, "Complete")[0]) == (3, "True")


async def test_a_finished_job_is_deleted_in_time(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, ttlSecondsAfterFinished=60)
    await trio.sleep(30)
    assert cluster.names("jobs.batch") == ["work"]
    await trio.sleep(60)
    assert cluster.names("jobs.batch") == []


@pytest.mark.parametrize("change", [{"suspend": True}, {"parallelism": 0}])
async def test_pods_that_are_too_many_are_no_failures(
    cluster: Cluster, autojump_clock: MockClock, change: Json
) -> None:
    await make(cluster, pods(1000), parallelism=2, completions=4, backoffLimit=0)
    await trio.sleep(5)
    await cluster.patch("jobs", "work", {"spec": change})
    await trio.sleep(10)
    status = await cluster.status("jobs", "work")
    assert (cluster.phases(), status.get("failed"), condition(status, "Failed")) == ({}, None, ("", ""))
    await cluster.patch("jobs", "work", {"spec": {"suspend": False, "parallelism": 3}})
    await trio.sleep(10)
    assert cluster.phases() == {"Running": 3}


async def test_a_released_pod_is_not_waited_for(cluster: Cluster, autojump_clock: MockClock) -> None:
    await make(cluster, pods(1000))
    await trio.sleep(5)
    (name,) = cluster.names()
    labels = {"controller-uid": None, "batch.kubernetes.io/controller-uid": None}
    await cluster.patch("pods", name, {"metadata": {"labels": labels}})
    await trio.sleep(5)
    (released,) = (pod for pod in cluster.stored("pods") if pod["metadata"]["name"] == name)
    assert released["metadata"].keys().isdisjoint(("ownerReferences", "finalizers"))
    assert cluster.phases() == {"Running": 2}
    uid = (await cluster.get("jobs", "work"))["metadata"]["uid"]
    await cluster.patch("pods", name, {"metadata": {"labels": {"batch.kubernetes.io/controller-uid": uid}}})
    await trio.sleep(5)
    assert cluster.phases() == {"Running": 1}
    assert (await cluster.status("jobs", "work"))["active"] == 1
    assert not any("finalizers" not in pod["metadata"] for pod in cluster.stored("pods"))


async def test_a_job_of_two_thousand_million_completions_runs_its_first_pods(
    cluster: Cluster, autojump_clock: MockClock
) -> None:
    policy = {"rules": [{"succeededIndexes": "0-1999999999"}]}
    completions = {"completionMode": "Indexed", "completions": 2_000_000_000, "parallelism": 2}
    await make(cluster, **completions, successPolicy=policy)
    await trio.sleep(15)
    status = await cluster.status("jobs", "work")
    assert (status["active"], status["completedIndexes"]) == (2, "0,1")
    assert "conditions" not in status


def test_indexes_of_a_status_end_with_the_completions() -> None:
    assert read_indexes("-1,1-9223372036854775807,99999999999999999999,x", 4) == {1, 2, 3}


@pytest.mark.parametrize(("text", "number"), [("7", 7), ("-1", -1), ("1_0", None), ("9" * 4300, None), (7, None)])
def test_annotations_have_numbers_of_64_bits(text: Any, number: int | None) -> None:
    assert number_in(text) == number
