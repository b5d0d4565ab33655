"""Annotations that fields have replaced. What else is wrong with annotations is in ``manifest_changes.yaml``."""

from typing import Final

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.validation.core.annotations import (
    deletion_cost,
    pod_annotation_changes,
    pod_annotation_problems,
    profile_mismatches,
)

MIRROR: Final = "kubernetes.io/config.mirror"
COST: Final = "controller.kubernetes.io/pod-deletion-cost"
SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/main"
APP_ARMOR: Final = "container.apparmor.security.beta.kubernetes.io/main"
PROFILES: Final = {
    "Unconfined": {"type": "Unconfined"},
    "RuntimeDefault": {"type": "RuntimeDefault"},
    "Localhost": {"type": "Localhost", "localhostProfile": "a/b"},
}
SAID: Final = ("unconfined", "runtime/default", "docker/default", "localhost/a/b", "localhost/c", "")
FITTING: Final = {"Unconfined": {"unconfined"}, "RuntimeDefault": {"runtime/default"}, "Localhost": {"localhost/a/b"}}


def mismatch(annotation: str, said: str, field: str, type_: str, *, is_pod: bool, of_pod: bool = False) -> list[str]:
    security = {"securityContext": {field: PROFILES[type_]}}
    container = {"name": "main", **({} if of_pod else security)}
    spec: Json = {"containers": [container], **(security if of_pod else {})}
    problems = profile_mismatches({annotation: said}, spec, "spec", is_pod=is_pod)
    return [problem.field.removeprefix("spec.") for problem in problems]


@pytest.mark.parametrize("type_", PROFILES)
@pytest.mark.parametrize("is_pod", [True, False])
def test_profiles_are_those_that_annotations_name(type_: str, is_pod: bool) -> None:
    for said in SAID:
        armor = mismatch(APP_ARMOR, said, "appArmorProfile", type_, is_pod=is_pod)
        assert bool(armor) == (said not in FITTING[type_]), said
        seccomp = mismatch(SECCOMP, said, "seccompProfile", type_, is_pod=is_pod)
        also = {"docker/default"} if type_ == "RuntimeDefault" else set()
        assert bool(seccomp) == (said not in FITTING[type_] | also), said


def test_the_field_that_differs_is_named() -> None:
    where = "containers[0].securityContext.seccompProfile"
    assert mismatch(SECCOMP, "unconfined", "seccompProfile", "Localhost", is_pod=True) == [f"{where}.type"]
    found = mismatch(SECCOMP, "localhost/c", "seccompProfile", "Localhost", is_pod=True)
    assert found == [f"{where}.localhostProfile"]


def test_an_annotation_becomes_the_field_of_a_pod_but_not_of_a_template() -> None:
    of_pod = [
        mismatch(APP_ARMOR, "unconfined", "appArmorProfile", "RuntimeDefault", is_pod=is_pod, of_pod=True)
        for is_pod in (True, False)
    ]
    assert of_pod == [[], ["containers[0].securityContext.appArmorProfile.type"]]


def test_windows_has_no_app_armor() -> None:
    spec = {"os": {"name": "windows"}, "containers": [{"name": "main", "securityContext": {"appArmorProfile": {}}}]}
    assert list(profile_mismatches({APP_ARMOR: "x"}, spec, "spec", is_pod=True)) == []


def test_a_mirror_pod_has_a_node() -> None:
    (problem,) = pod_annotation_problems({MIRROR: "x"}, {}, "metadata.annotations")
    assert problem.message == 'Invalid value: "x": must set spec.nodeName if mirror pod annotation is set'
    assert list(pod_annotation_problems({MIRROR: "x"}, {"nodeName": "n"}, "metadata.annotations")) == []


@pytest.mark.parametrize(
    ("text", "cost"),
    [("0", 0), ("7", 7), ("-1", -1), ("-007", -7), (f"-{'0' * 5000}9", -9), (str(1 << 31), None), ("-", None)],
)
def test_a_deletion_cost_is_an_integer_of_32_bits(text: str, cost: int | None) -> None:
    assert deletion_cost({COST: text}) == cost


def test_nothing_said_costs_nothing() -> None:
    assert deletion_cost({}) == 0


@pytest.mark.parametrize("text", ["[" * 100_000, '["\\ud800"]', "[1]", '[{"key": "\ud800"}]'])
def test_hostile_lists_of_tolerations_are_refused(text: str) -> None:
    problems = pod_annotation_problems({"scheduler.alpha.kubernetes.io/tolerations": text}, {}, "metadata.annotations")
    assert [problem.field for problem in problems] == ["metadata.annotations"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": "b"}, {"a": "c", "d": "e"}, None),
        ({MIRROR: "x"}, {MIRROR: "x"}, None),
        ({MIRROR: "x"}, {MIRROR: "y"}, "may not remove or update mirror pod annotation"),
        ({MIRROR: "x"}, {}, "may not remove or update mirror pod annotation"),
        ({}, {MIRROR: "x"}, "may not add mirror pod annotation"),
        ({APP_ARMOR: "unconfined"}, {}, "may not remove or update AppArmor annotations"),
        ({}, {APP_ARMOR: "unconfined"}, "may not add AppArmor annotations"),
    ],
)
def test_some_annotations_of_pods_stay(before: Json, after: Json, expected: str | None) -> None:
    problems = [problem.message for problem in pod_annotation_changes(before, after)]
    assert problems == ([f"Forbidden: {expected}"] if expected else [])
