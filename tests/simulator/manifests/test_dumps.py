from collections.abc import Sequence
from typing import Any

import pytest

from trio_sched.simulator.manifests.dumps import (
    MIRROR,
    NothingSelected,
    pods_of_other_schedulers,
    reschedule,
    take_over,
)
from trio_sched.simulator.manifests.manifests import Manifest

OURS = ["default-scheduler"]


def manifest(kind: str, name: str, *, api_version: str = "v1", **fields: Any) -> Manifest:
    metadata = {"name": name, **fields.pop("metadata", {})}
    return Manifest({"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields})


def pod(name: str = "p", *, node: str = "", phase: str = "Running", scheduler: str = "", **metadata: Any) -> Manifest:
    spec = {"containers": [], **({"nodeName": node} if node else {})}
    if scheduler:
        spec["schedulerName"] = scheduler
    metadata = {"namespace": "shop", "uid": f"uid-{name}", **metadata}
    return manifest("Pod", name, metadata=metadata, spec=spec, status={"phase": phase, "qosClass": "Burstable"})


def nodes_of(manifests: Sequence[Manifest]) -> dict[str, str]:
    return {one.fields["metadata"]["name"]: one.fields["spec"].get("nodeName", "") for one in manifests}


def owned_by(kind: str) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": "owner", "uid": "u", "controller": True}]


# --- schedulers ---


def test_pods_and_templates_of_a_scheduler_are_taken_by_the_first_profile() -> None:
    template = {"template": {"spec": {"schedulerName": "volcano"}}}
    deployment = manifest("Deployment", "d", api_version="apps/v1", spec=template)
    cron = manifest("CronJob", "c", api_version="batch/v1", spec={"jobTemplate": {"spec": template}})
    taken, left = pod("a", scheduler="volcano"), pod("b", scheduler="yunikorn")
    take_over([taken, left, deployment, cron], ["volcano"], ["first", "second"])
    assert taken.fields["spec"]["schedulerName"] == "first"
    assert left.fields["spec"]["schedulerName"] == "yunikorn"
    assert deployment.fields["spec"]["template"]["spec"]["schedulerName"] == "first"
    made = cron.fields["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert made["schedulerName"] == "first"


def test_parts_that_manifests_share_are_not_changed_in_others() -> None:
    moved, finished = pod("a", node="n"), pod("b", node="n", phase="Succeeded")
    finished.fields["spec"] = moved.fields["spec"]
    take_over([moved], ["default-scheduler"], ["first"])
    reschedule([moved], ["all"], ["first"])
    assert moved.fields["spec"] == {"containers": [], "schedulerName": "first"}
    assert finished.fields["spec"] == {"containers": [], "nodeName": "n"}


def test_all_leaves_the_pods_of_the_other_profiles() -> None:
    pods = [pod("a", scheduler="volcano"), pod("b"), pod("c", scheduler="second")]
    take_over(pods, ["all"], ["first", "second"])
    assert [one.fields["spec"]["schedulerName"] for one in pods] == ["first", "first", "second"]


def test_a_scheduler_that_no_pod_has_is_an_error_that_helps() -> None:
    with pytest.raises(NothingSelected, match="no pod has the scheduler 'vulcano'") as caught:
        take_over([pod(scheduler="volcano")], ["vulcano"], OURS)
    assert caught.value.hint == "did you mean 'volcano'?"


def test_pods_that_wait_for_other_schedulers_are_counted() -> None:
    pods = [
        pod("a", scheduler="volcano"),
        pod("b", scheduler="volcano", node="n"),
        pod("c", scheduler="volcano", phase="Failed"),
        pod("d"),
    ]
    assert pods_of_other_schedulers(pods, OURS) == {"volcano": 1}


# --- placing again ---


def test_all_takes_nodes_from_pods_that_a_scheduler_would_place() -> None:
    pods = [
        pod("runs", node="n"),
        pod("over", node="n", phase="Succeeded"),
        pod("mirror", node="n", annotations={MIRROR: "x"}),
        pod("daemon", node="n", ownerReferences=owned_by("DaemonSet")),
        pod("ending", node="n", deletionTimestamp="2026-01-01T00:00:00Z"),
        pod("foreign", node="n", scheduler="volcano"),
    ]
    done = reschedule(pods, ["all"], OURS)
    assert {name for name, node in nodes_of(pods).items() if not node} == {"runs"}
    assert pods[0].fields["status"] == {"phase": "Pending", "qosClass": "Burstable"}
    assert pods[0].fields["metadata"]["uid"] == "uid-runs"
    assert done.moved == 1
    assert done.stayed == {
        "finished": 1,
        "mirror pods": 1,
        "of DaemonSets": 1,
        "being deleted": 1,
        "of schedulers that are not simulated": 1,
    }


def test_pending_forgets_what_was_said_about_pods_without_a_node() -> None:
    pods = [pod("runs", node="n"), pod("waits", phase="Pending")]
    pods[1].fields["status"] |= {"nominatedNodeName": "n", "conditions": [{"type": "PodScheduled", "status": "False"}]}
    assert reschedule(pods, ["pending"], OURS).moved == 0
    assert nodes_of(pods) == {"runs": "n", "waits": ""}
    assert pods[1].fields["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_what_the_api_server_said_of_a_gated_pod_stays() -> None:
    gated = pod("gated", phase="Pending")
    conditions = [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]
    gated.fields["status"]["conditions"] = [*conditions, {"type": "Ready", "status": "False"}]
    reschedule([gated], ["all"], OURS)
    assert gated.fields["status"]["conditions"] == conditions


def test_a_pattern_selects_by_namespace_and_name() -> None:
    pods = [pod("web-1", node="n"), pod("web-2", node="n"), pod("db", node="n")]
    other = pod("web-3", node="n", namespace="else")
    assert reschedule([*pods, other], ["shop/web-*"], OURS).moved == 2
    assert nodes_of([*pods, other]) == {"web-1": "", "web-2": "", "db": "n", "web-3": "n"}


def test_a_pattern_that_selects_nothing_is_an_error() -> None:
    with pytest.raises(NothingSelected, match=r"no pod matches 'shop/x\*'"):
        reschedule([pod("web", node="n")], ["shop/x*", "shop/w*"], OURS)


def test_resource_claims_are_released_when_no_pod_is_left() -> None:
    def claim(name: str, *uids: str) -> Manifest:
        status = {"allocation": {"devices": {}}, "reservedFor": [{"uid": uid} for uid in uids]}
        return manifest("ResourceClaim", name, api_version="resource.k8s.io/v1", status=status)

    claims = [claim("own", "uid-web"), claim("shared", "uid-web", "uid-db"), claim("other", "uid-db")]
    reschedule([pod("web", node="n"), pod("db", node="n"), *claims], ["shop/web"], OURS)
    own, shared, other = (one.fields["status"] for one in claims)
    assert own == {}
    assert (shared["reservedFor"], "allocation" in shared) == ([{"uid": "uid-db"}], True)
    assert other["reservedFor"] == [{"uid": "uid-db"}]
