import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.meta.metadata import label_problems, metadata_problems, name_problem


@pytest.mark.parametrize(
    ("plural", "name", "fits"),
    [
        ("pods", "a.b-c", True),
        ("pods", "A", False),
        ("pods", "-a", False),
        ("pods", "a" * 253, True),
        ("pods", "a" * 254, False),
        ("namespaces", "a-b", True),
        ("namespaces", "a.b", False),
        ("namespaces", "a" * 64, False),
        ("clusterroles", "system:kube-scheduler", True),
        ("clusterroles", "a/b", False),
    ],
)
def test_names_fit_their_kind(plural: str, name: str, fits: bool) -> None:
    assert (name_problem(plural, name) is None) is fits


@pytest.mark.parametrize(
    ("labels", "fits"),
    [
        ({"app": "x"}, True),
        ({"app.example.com/name": "x_y.z-1"}, True),
        ({"app": ""}, True),
        ({"app": "x" * 64}, False),
        ({"app": "a b"}, False),
        ({"a" * 64: "x"}, False),
        ({"example.com/": "x"}, False),
        ({"Bad_Prefix/name": "x"}, False),
    ],
)
def test_labels_follow_the_rules(labels: Json, fits: bool) -> None:
    assert (not list(label_problems(labels, "metadata.labels"))) is fits


def test_annotations_have_keys_like_labels_in_any_case() -> None:
    assert metadata_problems("pods", {"name": "p", "annotations": {"Example.com/Key": "any thing"}}) == []
    (problem,) = metadata_problems("pods", {"name": "p", "annotations": {"a b": "x"}})
    assert problem.field == "metadata.annotations"


def test_an_owner_reference_needs_all_its_fields() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r"}
    (problem,) = metadata_problems("pods", {"name": "p", "ownerReferences": [owner]})
    assert (problem.field, problem.message) == (
        "metadata.ownerReferences[0].uid",
        'Invalid value: "": must not be empty',
    )
