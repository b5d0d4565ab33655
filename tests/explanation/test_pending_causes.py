"""For every cause the cause is in the first three lines, and the first change that is shown lets the pod run."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import trio
from jsonschema import Draft202012Validator

from contrib.scenarios.manifests import (
    ZONE,
    bound_claim,
    node,
    pod,
    runtime_class,
    storage_class,
    uses,
    volume,
)
from contrib.scenarios.pending_causes import CAUSES, PendingCause
from contrib.scenarios.pending_causes.pending_cause import cause_of
from trio_sched.cli.options.simulation_options import settings_of
from trio_sched.cli.plugin_loading.plugin_selection import PluginSelection
from trio_sched.explanation.text import Layout, explanation_text
from trio_sched.simulation.asked_pods import Name
from trio_sched.simulation.cluster_files import ClusterFiles
from trio_sched.simulation.explaining import Question, explain_manifests

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
SETTINGS = settings_of(None, "", PluginSelection())
SCHEMA = Draft202012Validator(json.loads((REFERENCE / "explanation.schema.json").read_text()))
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def explained(cause: PendingCause, folder: Path) -> dict[str, Any]:
    file = folder / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(cause.objects)}))
    manifests = ClusterFiles(files=(file,)).load_dumped(pytest.fail, lambda _what: None)
    question = Question(settings=SETTINGS, names=[Name.read(cause.pod, "default")])
    answers = trio.run(explain_manifests, question, manifests, NOW, pytest.fail)
    (answer,) = answers.answers
    assert answers.is_pending
    SCHEMA.validate(json.loads(json.dumps(answers.as_data())))
    return answer.explanation


@pytest.mark.parametrize("cause", CAUSES, ids=[cause.name for cause in CAUSES])
def test_the_cause_is_named_first_and_the_change_that_touches_least_is_the_first_one(
    cause: PendingCause, tmp_path: Path
) -> None:
    data = explained(cause, tmp_path)
    assert set(data["cause"]["reasons"]) == cause.reasons
    lines = explanation_text(data, Layout(width=400)).splitlines()
    missing = [word for word in cause.words if word not in "\n".join(lines[:3])]
    assert missing == []
    titles = [remedy["title"] for remedy in data["remedies"]]
    assert titles[0].startswith(cause.remedy) if cause.remedy else titles == []


def test_of_ever_fewer_devices_only_the_most_that_there_are_is_shown(tmp_path: Path) -> None:
    (cause,) = (one for one in CAUSES if one.name == "more devices than a node has")
    titles = [remedy["title"] for remedy in explained(cause, tmp_path)["remedies"]]
    assert titles == ["recreate the device claim asked: 2 devices of class gpu"]


def test_a_claim_for_several_pods_can_follow_one_for_a_single_pod(tmp_path: Path) -> None:
    (cause,) = (one for one in CAUSES if one.name == "a deployment of two pods on a claim that one pod can use")
    shared, fewer = explained(cause, tmp_path)["remedies"]
    assert fewer["commands"] == [
        """kubectl patch deployment asked -n default --type=merge -p '{"spec":{"replicas":1}}'"""
    ]
    assert shared["title"] == "a new, empty claim data-shared with ReadWriteOnce"
    assert (shared["touches"], fewer["touches"]) == ("Volume", "PodGivenUp")
    made, used = shared["commands"]
    assert '"accessModes":["ReadWriteOnce"]' in made
    assert '"persistentVolumeClaim":{"claimName":"data-shared"}' in used


def test_commands_change_what_was_tried(tmp_path: Path) -> None:
    by_name = {cause.name: cause for cause in CAUSES}

    def commands(name: str) -> list[str]:
        found: list[str] = explained(by_name[name], tmp_path)["remedies"][0]["commands"]
        return found

    patch = '{"spec":{"containers":[{"name":"app","resources":{"requests":{"memory":"3Gi"}}}]}}'
    assert commands("memory") == [f"kubectl patch pod asked -n default --subresource=resize -p '{patch}'"]
    assert commands("a cordoned node") == ["kubectl uncordon n1"]
    assert commands("a label that no node has at all") == ["kubectl label node n1 disk=ssd"]
    (recreated,) = commands("a device of a claim on a node that is full, and a node without devices")
    assert recreated.endswith("| kubectl replace --force -f -")  # whoever uses claims is not resized
    owned = commands("a claim of an ephemeral volume that was there before")
    assert owned == ["kubectl delete persistentvolumeclaim asked-scratch -n default --wait=false"]
    assert commands("too many pods") == ["kubectl delete pod running -n default"]
    (gate,) = commands("a scheduling gate")
    assert gate == (
        "kubectl patch pod asked -n default -p "
        """'{"spec":{"schedulingGates":[{"name":"example.com/quota","$patch":"delete"}]}}'"""
    )
    resize, tolerate = commands("a taint and too much memory")
    assert "--subresource=resize" in resize
    assert '"key":"dedicated","operator":"Equal","value":"gpu"' in tolerate
    (again,) = commands("a scheduler that does not exist")
    assert again == (
        "kubectl get pod asked -n default -o json | "
        """kubectl patch --local -f - -o json -p '{"spec":{"schedulerName":"default-scheduler"}}' | """
        "kubectl replace --force -f -"
    )


def test_claims_are_made_again_in_ways_that_controllers_do_not_undo(tmp_path: Path) -> None:
    by_name = {cause.name: cause for cause in CAUSES}

    def remedies(name: str) -> dict[str, list[str]]:
        return {one["title"]: one["commands"] for one in explained(by_name[name], tmp_path)["remedies"]}

    (of_set,) = remedies("a StatefulSet's claim of a storage class that does not exist")[
        "recreate the claim data-db-0 with class gp3"
    ]
    template = """'[{"op":"add","path":"/spec/volumeClaimTemplates/'$((n-1))'/spec/storageClassName","value":"gp3"}]'"""
    assert f"--type=json -p {template}" in of_set
    assert "delete statefulset db -n default --cascade=orphan && kubectl delete persistentvolumeclaim" in of_set
    ((held, *_), *_) = remedies(
        "a claim that is being deleted, and kept by a finalizer that no controller knows"
    ).values()
    release = (
        """kubectl patch persistentvolumeclaim data -n default --type=merge -p '{"metadata":{"finalizers":null}}'"""
    )
    assert held.startswith(f"{release} && kubectl wait --for=delete persistentvolumeclaim data")
    (of_class, of_pod), *_ = remedies("a runtime class whose label the nodes have in another spelling").values()
    patch = """'{"scheduling":{"nodeSelector":{"runtime":"kata"}}}'"""
    assert of_class == f"kubectl patch runtimeclass kata --type=merge -p {patch}"
    assert """'{"spec":{"nodeSelector":{"runtime":"kata"}}}'""" in of_pod


def test_a_volume_that_would_be_deleted_with_its_claim_is_kept(tmp_path: Path) -> None:
    elsewhere = volume("disk-1", "data", zones=["gone"])
    deleted = {**elsewhere, "spec": {**elsewhere["spec"], "persistentVolumeReclaimPolicy": "Delete"}}
    objects = [node("n1"), storage_class("fast"), deleted, bound_claim("data", "disk-1"), pod(volumes=uses("data"))]
    first, *others = explained(cause_of("", [], [], "", *objects), tmp_path)["remedies"]
    keep, again = first["commands"]
    patch = """'{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}'"""
    assert keep == f"kubectl patch persistentvolume disk-1 --type=merge -p {patch}"
    assert again.startswith("kubectl get persistentvolumeclaim data")
    assert [one["title"] for one in others] == [f"one more node like n1, with {ZONE}=gone"]


def test_no_change_selects_otherwise_than_the_runtime_class(tmp_path: Path) -> None:
    objects = [node("n1"), runtime_class("kata", {"runtime": "kata"}), pod(runtimeClassName="kata")]
    data = explained(cause_of("", [], [], "", *objects), tmp_path)
    assert [one["title"] for one in data["remedies"]] == [
        "label n1 runtime=kata",
        "runtime class kata without the node selector runtime",
    ]
    assert "no node selector runtime=kata (its runtime class kata asks for runtime=kata)" in data["tried"]
