"""Pods that name a pod group or a workload which does not exist, and one whose name is much like it."""

from pathlib import Path
from typing import Any

from explained import explained, gang, members, titles
from filled_scheduler import scheduler_with
from workloads_of_1_35 import member_of_workload, workload

from contrib.scenarios.manifests import Json, deployment, node
from trio_sched.explanation.explanation import explain
from trio_sched.testing import node as made_node
from trio_sched.testing import pod as made_pod

MEANT = "use the pod group train"
GROUP: dict[str, Any] = {"schedulingGroup": {"podGroupName": "trian"}}


def misspelt(count: int) -> list[Json]:
    return [{**one, "spec": {**one["spec"], **GROUP}} for one in members(count, cpu="1")]


def test_all_pods_of_a_group_that_does_not_exist_join_the_one_that_was_meant(tmp_path: Path) -> None:
    data = explained([node("n1"), gang(2), *misspelt(2)], tmp_path)
    assert data["cause"]["reasons"] == ["PodGroupNotFound"]
    assert data["cause"]["text"].endswith("There is no pod group trian in namespace default; there is train")
    assert titles(data)[0] == MEANT
    patch = """'{"spec":{"schedulingGroup":{"podGroupName":"train"}}}'"""
    assert data["remedies"][0]["commands"] == [
        f"kubectl get pod {name} -n default -o json | kubectl patch --local -f - -o json --type=merge -p {patch} | "
        "kubectl replace --force -f -"
        for name in ("t0", "t1")
    ]


def test_a_gang_that_would_still_lack_pods_is_not_joined(tmp_path: Path) -> None:
    data = explained([node("n1"), gang(3), *misspelt(2)], tmp_path)
    assert MEANT not in titles(data)
    assert MEANT in data["tried"]
    waiting, *others = members(3, cpu="1")
    assert titles(explained([node("n1"), gang(3), waiting, *others[:1], *misspelt(3)[2:]], tmp_path, "t2"))[0] == MEANT


def test_the_old_pods_of_a_deployment_make_place_for_a_whole_gang(tmp_path: Path) -> None:
    """A rollout makes one pod more, and waits until it runs."""
    objects = deployment("web", ["", ""], requests={"cpu": "1"}, **GROUP)
    data = explained([node("n1"), gang(2), *objects], tmp_path, "deployment/web")
    assert titles(data)[0] == MEANT
    patched, scaled = data["remedies"][0]["commands"]
    assert patched.startswith("kubectl patch deployment web -n default -p ")
    assert scaled == "kubectl scale replicaset web-abc -n default --replicas=0"


def test_members_are_in_their_own_group_again_after_a_trial() -> None:
    asked = made_pod("asked", group="trian")
    scheduler = scheduler_with([made_node("a")], [asked])
    explain(scheduler, asked)
    groups = scheduler.cache.groups
    assert [(one.key, list(one.pods)) for one in groups] == [("default/trian", [asked.uid])]


def test_a_workload_of_1_35_is_named_with_the_group_in_it(tmp_path: Path) -> None:
    objects = [node("n1"), workload("training", workers=2), *(_member(f"w{number}") for number in range(2))]
    gates = "GenericWorkload=true,GangScheduling=true"
    data = explained(objects, tmp_path, "w0", gates=gates, version="1.35", flags=["--emulated-version=1.35"])
    assert data["cause"]["reasons"] == ["WorkloadNotFound"]
    assert data["cause"]["text"].endswith("; there is training with workers")
    assert titles(data)[0] == "use the workload training with workers"
    first, _second = data["remedies"][0]["commands"]
    assert """'{"spec":{"workloadRef":{"name":"training"}}}'""" in first


def _member(name: str) -> Json:
    return member_of_workload(name, "trainin", "workers", "7")
