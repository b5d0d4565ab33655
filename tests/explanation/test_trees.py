"""Pods of trees of pod groups: what keeps them, the pod, its group, a composite group above it, or a placement."""

from pathlib import Path
from typing import Any

import pytest
from explained import explained, racks, titles

from contrib.scenarios.manifests import NAMESPACE, node, pod
from trio_sched.documents.json_values import Json

GATES = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,CompositePodGroup=true"


def top(name: str = "top", needed: int | None = 2, *, topology: str = "", parent: str = "") -> Json:
    """A composite group."""
    policy: Json = {"basic": {}} if needed is None else {"gang": {"minGroupCount": needed}}
    spec: Json = {"schedulingPolicy": policy, "workloadRef": {"workloadName": "w", "templateName": name}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    if parent:
        spec["parentCompositePodGroupName"] = parent
    metadata = {"name": name, "namespace": NAMESPACE}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": metadata,
        "spec": spec,
    }


def gang(name: str, pods: int = 2, *, cpu: str = "3", minimum: int = 2, parent: str = "top") -> list[Json]:
    """A gang and its pods."""
    spec: Json = {"schedulingPolicy": {"gang": {"minCount": minimum}}, "parentCompositePodGroupName": parent}
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }
    of_group = {"podGroupName": name}
    return [
        group,
        *(pod(f"{name}{number}", requests={"cpu": cpu}, schedulingGroup=of_group) for number in range(pods)),
    ]


def told(objects: list[Json], folder: Path, name: str = "a0") -> dict[str, Any]:
    """The explanation of a pod as of 1.37."""
    return explained(objects, folder, name, gates=GATES, flags=["--emulated-version=1.37"], version="1.37")


def test_a_pod_whose_tree_fits_runs(tmp_path: Path) -> None:
    assert told([*racks(2), top(), *gang("a"), *gang("b")], tmp_path)["cause"]["reasons"] == ["FitsNow"]


def test_a_group_that_fits_waits_for_the_others_of_its_tree(tmp_path: Path) -> None:
    data = told([*racks(1), top(), *gang("a"), *gang("b")], tmp_path)
    assert data["cause"]["reasons"] == ["TreeDoesNotFit"]
    assert data["cause"]["clauses"] == ["2 child groups of the tree top at once"]
    assert "1 of 2 child groups fit; pod default/b0 lacks 2 cpu" in data["cause"]["text"]
    (found,) = [one for one in data["remedies"] if "minGroupCount" in one["title"]]
    assert found["title"] == "recreate the composite group top with minGroupCount 1"
    assert "compositepodgroup" in found["commands"][0]
    assert any(title.startswith("2 more nodes") for title in titles(data))


def test_a_group_that_does_not_fit_says_so_itself_also_if_its_tree_runs_without_it(tmp_path: Path) -> None:
    for needed in (1, 2):
        data = told([*racks(1), top(needed=needed), *gang("a", 3, minimum=3), *gang("b", cpu="1")], tmp_path)
        assert data["cause"]["reasons"] == ["GangDoesNotFit"]
        assert "2 of 3 pods fit; pod default/a2 lacks 2 cpu" in data["cause"]["text"]
        assert told([*racks(1), top(needed=1), *gang("a", 3, minimum=3), *gang("b")], tmp_path, "b0")["cause"][
            "reasons"
        ] == ["FitsNow"]


def test_a_tree_that_needs_one_domain_says_so(tmp_path: Path) -> None:
    data = told([*racks(2), top(topology="rack"), *gang("a"), *gang("b")], tmp_path)
    assert data["cause"]["reasons"] == ["TreeDoesNotFitInPlacement"]
    assert data["cause"]["clauses"] == ["2 child groups of the tree top at once in one rack"]
    assert "1 of 2 child groups fit; pod default/b0 lacks 2 cpu in any rack" in data["cause"]["text"]
    assert "recreate the group top without its topology constraint" in titles(data)


def test_the_lowest_composite_group_that_does_not_fit_is_named(tmp_path: Path) -> None:
    objects = [*racks(1), top(needed=1), top("low", parent="top"), *gang("a", parent="low"), *gang("b", parent="low")]
    data = told(objects, tmp_path)
    assert data["cause"]["clauses"] == ["2 child groups of the tree low at once"]


def test_a_pod_that_fits_nowhere_by_itself_has_its_own_cause(tmp_path: Path) -> None:
    data = told([*racks(2), top(), *gang("a", cpu="9"), *gang("b")], tmp_path)
    assert data["cause"]["reasons"] == ["InsufficientCPU"]


@pytest.mark.parametrize(
    ("above", "reason", "text"),
    [
        ([], "TreeNotWhole", 'omposite pod group "top" not found'),
        (
            [top()],
            "TreeIncomplete",
            "he composite group top needs 2 child groups with enough pods, and 1 have enough",
        ),
    ],
)
def test_a_tree_that_is_not_whole_or_lacks_pods_says_so(
    above: list[Json], reason: str, text: str, tmp_path: Path
) -> None:
    data = told([node("n"), *above, *gang("a"), *gang("b", 1)], tmp_path)
    assert data["cause"]["reasons"] == [reason]
    assert text in data["cause"]["text"]
    if above:
        assert data["clauses"][0]["details"] == ["pod group b: 1 of 2 pods"]
