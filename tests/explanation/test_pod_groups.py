"""Pods of gangs that fit one by one and not at once: the cause, and changes with which the whole gang runs."""

from pathlib import Path
from typing import Any

import pytest
from explained import GATES, explained, gang, members, racks, titles

from contrib.scenarios.manifests import NAMESPACE, node, pod, priority_class
from trio_sched.documents.json_values import Json
from trio_sched.explanation import pod_groups


def test_the_placement_in_which_most_fit_is_named_and_what_the_next_pod_lacks(tmp_path: Path) -> None:
    data = explained([*racks(3), node("n6", labels={"rack": "r3"}), gang(topology="rack"), *members(4)], tmp_path)
    assert data["cause"]["reasons"] == ["GangDoesNotFitInPlacement"]
    assert data["cause"]["clauses"] == ["4 pods of the gang train at once in one rack"]
    assert "2 of 4 pods fit; pod default/t" in data["cause"]["text"]
    assert data["passing"] == 0
    (clause,) = data["clauses"]
    assert clause["passWithoutItAlone"] == 7
    assert [line.split(", then")[0] for line in clause["details"]] == [
        "rack r0: 2 fit",
        "rack r1: 2 fit",
        "rack r2: 2 fit",
        "rack r3: 1 fit",
    ]
    assert titles(data) == [
        "request cpu ≤ 2 in each pod of the group",
        "recreate the gang train with minCount 2",
        "recreate the group train without its topology constraint",
        "2 more nodes like n0 (4 CPU, 8.0Gi each)",
        "2 more nodes like n2 (4 CPU, 8.0Gi each)",
    ]


@pytest.mark.parametrize("count", [2, 3], ids=["pods are missing", "they do not fit"])
def test_since_1_37_a_gang_is_made_smaller_as_it_is(count: int, tmp_path: Path) -> None:
    objects = [*racks(1), gang(3), *members(count)]
    gates = "GenericWorkload=true"
    data = explained(objects, tmp_path, gates=gates, flags=["--emulated-version=1.37"])
    (found,) = [one for one in data["remedies"] if "minCount" in one["title"]]
    assert found["title"] == "lower minCount of the gang train to 2"
    patch = """'{"spec":{"schedulingPolicy":{"gang":{"minCount":2}}}}'"""
    assert found["commands"] == [f"kubectl patch podgroup train -n {NAMESPACE} --type=merge -p {patch}"]


def test_the_change_of_a_pod_is_made_to_all_of_its_gang(tmp_path: Path) -> None:
    first = explained([*racks(1), gang(3), *members(3)], tmp_path)["remedies"][0]
    assert first["title"] == "request cpu ≤ 2 in each pod of the group"
    assert sorted(one["name"] for one in first["edits"]) == ["t0", "t1", "t2"]
    assert all("--subresource=resize" in command for command in first["commands"])
    assert len(first["commands"]) == 3


def test_what_is_shown_lets_the_gang_run(tmp_path: Path) -> None:
    assert titles(explained([*racks(2), gang(3, topology="rack"), *members(3)], tmp_path)) != []
    for objects in (
        [*racks(2), gang(2, topology="rack"), *members(3)],
        [*racks(2), gang(3), *members(3)],
        [*racks(2), gang(3, topology="rack"), *members(3, cpu="2")],
        [*racks(2), node("new", labels={"rack": "r0"}), gang(3, topology="rack"), *members(3)],
    ):
        assert explained(objects, tmp_path)["cause"]["reasons"] == ["FitsNow"]


def test_without_a_topology_it_is_the_gang_that_does_not_fit(tmp_path: Path) -> None:
    data = explained([*racks(1), gang(3), *members(3)], tmp_path)
    assert data["cause"]["reasons"] == ["GangDoesNotFit"]
    assert data["cause"]["text"] == ("3 pods of the gang train at once. 2 of 3 pods fit; pod default/t2 lacks 2 cpu"), (
        data["cause"]["text"]
    )
    (details,) = [one["details"] for one in data["clauses"] if "at once" in one["title"]]
    assert [line.split(", then")[0].partition(" ")[2] for line in details] == ["fit"]


def test_a_pod_that_fits_nowhere_by_itself_has_the_cause_that_pods_without_a_gang_have(tmp_path: Path) -> None:
    data = explained([*racks(1), gang(2), *members(2, cpu="5")], tmp_path)
    assert data["cause"]["reasons"] == ["InsufficientCPU"]
    assert titles(data)[0] == "request cpu ≤ 4"


def test_a_change_that_helps_one_pod_and_not_its_gang_is_not_shown(tmp_path: Path) -> None:
    """The request that fits on the largest node is too much for the other pods of the gang."""
    nodes = [node("large", cpu="8"), node("small", cpu="2")]
    data = explained([*nodes, gang(2), *members(2, cpu="9")], tmp_path)
    assert data["cause"]["reasons"] == ["InsufficientCPU"]
    assert not any(title.startswith("request cpu ≤ 8") for title in titles(data))


def test_pods_for_which_the_others_of_the_group_leave_no_node_say_so(tmp_path: Path) -> None:
    found = [explained([*racks(1), gang(None), *members(3)], tmp_path, f"t{i}") for i in range(3)]
    assert [one["cause"]["reasons"] for one in found] == [["FitsNow"], ["FitsNow"], ["TakenByPodGroup"]]
    assert titles(found[2])[0] == "one more node like n0 (4 CPU, 8.0Gi)"


def test_members_that_run_already_count_for_a_smaller_gang(tmp_path: Path) -> None:
    running, *waiting = members(6)
    running["spec"]["nodeName"] = "n0"
    objects = [node("n0", cpu="3"), node("n1", cpu="6"), gang(5), running, *waiting]
    data = explained(objects, tmp_path, "t1")
    assert data["cause"]["text"].endswith("2 of 5 pods fit; pod default/t3 lacks 3 cpu")
    assert "recreate the gang train with minCount 3" in titles(data)


def test_a_gang_that_is_too_large_to_be_tried_often_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_groups, "_MOST_DECISIONS", 8)
    data = explained([*racks(1), gang(3), *members(3)], tmp_path)
    assert data["cause"]["reasons"] == ["GangDoesNotFit"]
    assert not data["triedAll"]


def test_a_gang_that_is_too_large_for_changes_is_tried_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_groups, "_MOST_DECISIONS", 2)
    data = explained([*racks(1), gang(3), *members(3)], tmp_path)
    assert data["cause"]["reasons"] == ["GangDoesNotFit"]
    assert "2 of 3 pods fit" in data["cause"]["text"]
    assert not data["triedAll"]


def test_without_the_gate_the_group_is_ignored_and_that_is_said(tmp_path: Path) -> None:
    data = explained([*racks(1), gang(3), *members(3)], tmp_path, gates="")
    assert data["cause"]["reasons"] == ["FitsNow"]
    assert [note for note in data["notes"] if "pod group train is ignored" in note]


@pytest.mark.parametrize(
    ("mode", "priority", "evicts", "text"),
    [
        ("all", 1, ["default/t0", "default/t1"], "It may evict pod group default/train (2 pods) for a place on n"),
        ("single", 1, ["default/t0"], "It may evict default/t0 on n0"),
        ("all", 5, [], None),
    ],
)
def test_since_1_37_groups_that_are_evicted_as_a_whole_are_named(
    mode: str, priority: int, evicts: list[str], text: str | None, tmp_path: Path
) -> None:
    group = {**gang(1), "apiVersion": "scheduling.k8s.io/v1beta1"}
    group["spec"] |= {"disruptionMode": {mode: {}}, "priorityClassName": f"p{priority}"}
    running = members(2)
    for number, one in enumerate(running):
        one["spec"] |= {"nodeName": f"n{number}"}
    waiting = pod("waiting", requests={"cpu": "3"}, priorityClassName="p5", nodeSelector={"rack": "r0"})
    classes = [priority_class(f"p{value}", value) for value in (1, 5, 10)]
    data = explained(
        [*racks(2, each=1), *classes, group, *running, waiting],
        tmp_path,
        "waiting",
        gates="GenericWorkload=true",
        flags=["--emulated-version=1.37"],
        version="1.37",
    )
    assert data["cause"]["mayEvict"] == evicts
    assert (text or "") in data["cause"]["text"]
    assert ("It may evict" in data["cause"]["text"]) == (text is not None)
    (higher,) = [one for one in data["remedies"] if "priority" in one["title"]]
    as_a_whole = mode == "all"
    assert higher["evicts"] == ["default/t0", "default/t1"][: 2 if as_a_whole else 1]
    assert higher["notes"] == ["pod group default/train is evicted as a whole"] * as_a_whole


def preempting(version: str, *, cpu: str, **group: Any) -> list[Json]:
    """A gang of two on two nodes with a running pod each, and priority classes."""
    running = [
        pod(f"low{number}", requests={"cpu": "3"}, nodeName=f"n{number}", priorityClassName="low")
        for number in range(2)
    ]
    waiting = gang(2)
    if version == "1.37":
        waiting["apiVersion"] = "scheduling.k8s.io/v1beta1"
    waiting["spec"] |= group
    classes = [priority_class(name, value) for name, value in (("low", 1), ("middle", 5), ("high", 10))]
    return [*racks(2, each=1), *classes, *running, waiting, *members(2, cpu=cpu)]


GROUPS_PREEMPT = {
    "1.36": f"{GATES},WorkloadAwarePreemption=true",
    "1.37": "GenericWorkload=true,PodGroupPreemptionPolicy=true",
}


@pytest.mark.parametrize("version", list(GROUPS_PREEMPT))
@pytest.mark.parametrize("cpu", ["2", "3"], ids=["one fits", "none fits"])
def test_pods_are_evicted_for_a_gang_with_a_higher_priority(version: str, cpu: str, tmp_path: Path) -> None:
    def asked(**group: Any) -> dict[str, Any]:
        objects = [*preempting(version, cpu=cpu, **group), pod("small", requests={"cpu": "1"}, nodeName="n0")]
        flags = [f"--emulated-version={version}"]
        return explained(objects, tmp_path, gates=GROUPS_PREEMPT[version], flags=flags, version=version)

    data = asked()
    evicted = {f"{NAMESPACE}/low1"} if cpu == "2" else {f"{NAMESPACE}/low0", f"{NAMESPACE}/low1"}
    assert data["cause"]["mayEvict"] == []
    (higher,) = [one for one in data["remedies"] if "priority" in one["title"]]
    assert higher["title"] == "priority class middle (5)"
    assert set(higher["evicts"]) >= evicted
    assert [one["name"] for one in higher["edits"]] == ["train", "t0", "t1"]
    assert higher["commands"][0].startswith(f"new=$(kubectl get podgroup train -n {NAMESPACE} -o json")
    may = asked(priorityClassName="high")["cause"]
    assert set(may["mayEvict"]) >= evicted
    assert "It may evict" in may["text"]


def test_a_gang_that_never_preempts_is_shown_what_it_would_evict(tmp_path: Path) -> None:
    calm = {**priority_class("calm", 20), "preemptionPolicy": "Never"}
    objects = [calm, *preempting("1.37", cpu="2", priorityClassName="calm", preemptionPolicy="Never")]
    flags = ["--emulated-version=1.37"]
    data = explained(objects, tmp_path, gates=GROUPS_PREEMPT["1.37"], flags=flags, version="1.37")
    assert data["cause"]["mayEvict"] == []
    (change,) = [one for one in data["remedies"] if "which preempts" in one["title"]]
    assert change["title"] == "make the priority class calm-preempting (20), which preempts"
    assert sorted(change["evicts"]) == [f"{NAMESPACE}/low0", f"{NAMESPACE}/low1"]


def test_without_the_gate_for_it_nothing_is_claimed_of_preemption_for_gangs(tmp_path: Path) -> None:
    data = explained(preempting("1.36", cpu="2", priorityClassName="high"), tmp_path)
    assert data["cause"]["mayEvict"] == []
    assert not [title for title in titles(data) if "priority" in title]


def test_a_pod_of_the_gang_that_is_gated_is_named_and_its_gates_can_go(tmp_path: Path) -> None:
    first, second = members(2, cpu="1")
    second["spec"]["schedulingGates"] = [{"name": "example.com/quota"}]
    data = explained([*racks(1), gang(2), first, second], tmp_path)
    assert data["cause"]["reasons"] == ["GangDoesNotFit"]
    assert "pod default/t1 is not tried: waiting for scheduling gates: [example.com/quota]" in data["cause"]["text"]
    assert titles(data)[0] == "remove the scheduling gates of default/t1"


def test_a_pod_group_that_does_not_exist_is_made(tmp_path: Path) -> None:
    data = explained([*racks(1), *members(1)], tmp_path)
    assert data["cause"]["reasons"] == ["PodGroupNotFound"]
    assert titles(data) == ["make the pod group train, whose pods are scheduled one by one"]
