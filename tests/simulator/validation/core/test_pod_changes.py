"""What may change in a pod."""

from typing import Any

import pytest

from trio_sched.simulator.pods.pod_defaults import fill_spec
from trio_sched.simulator.validation.core.pod_changes import pod_changes
from trio_sched.simulator.validation.meta.field_problems import FieldProblem

Json = dict[str, Any]


def spec_of(**spec: Any) -> Json:
    spec = {"containers": container(), **spec}
    fill_spec(spec)
    return spec


def container(**fields: Any) -> list[Json]:
    return [{"name": "main", "image": "app:1", **fields}]


def problems(before: Json, after: Json) -> list[FieldProblem]:
    return list(pod_changes({"metadata": {}, "spec": before}, {"metadata": {}, "spec": after}))


def node_affinity(*terms: Json) -> Json:
    required = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def term(*keys: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "Exists"} for key in keys]}


GATES = [{"name": "g"}]
HAVE = [{"key": "k", "operator": "Exists", "effect": "NoExecute"}]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param({}, {"containers": container(image="app:2")}, id="image"),
        pytest.param({}, {"activeDeadlineSeconds": 5}, id="deadline set"),
        pytest.param({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 4}, id="deadline nearer"),
        pytest.param({}, {"tolerations": HAVE}, id="toleration added"),
        pytest.param({"tolerations": HAVE}, {"tolerations": [{**HAVE[0], "tolerationSeconds": 9}]}, id="seconds"),
        pytest.param({"terminationGracePeriodSeconds": -3}, {"terminationGracePeriodSeconds": 1}, id="grace"),
        pytest.param({"schedulingGates": GATES}, {}, id="gate removed"),
        pytest.param({}, {"volumes": [], "nodeSelector": {}, "affinity": None}, id="empty"),
        pytest.param(
            {"schedulingGates": GATES}, {"schedulingGates": GATES, "nodeSelector": {"a": "b"}}, id="gated: selector"
        ),
        pytest.param(
            {"schedulingGates": GATES},
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"))},
            id="gated: node",
        ),
        pytest.param(
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"))},
            {"schedulingGates": GATES, "affinity": node_affinity(term("a", "b"))},
            id="gated: expression added",
        ),
    ],
)
def test_what_may_change(before: Json, after: Json) -> None:
    assert problems(spec_of(**before), spec_of(**after)) == []


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({}, {"nodeName": "n"}, "spec"),
        ({}, {"containers": container(name="other")}, "spec"),
        ({}, {"priority": 7}, "spec"),
        ({}, {"nodeSelector": {"a": "b"}}, "spec"),
        ({}, {"schedulerName": "other"}, "spec"),
        ({}, {"terminationGracePeriodSeconds": 1}, "spec"),
        ({}, {"containers": [*container(), *container(name="second")]}, "spec.containers"),
        ({}, {"initContainers": container(name="first")}, "spec.initContainers"),
        ({"activeDeadlineSeconds": 5}, {"activeDeadlineSeconds": 6}, "spec.activeDeadlineSeconds"),
        ({"activeDeadlineSeconds": 5}, {}, "spec.activeDeadlineSeconds"),
        ({"tolerations": HAVE}, {"tolerations": []}, "spec.tolerations"),
        ({"tolerations": HAVE}, {"tolerations": [{**HAVE[0], "key": "other"}]}, "spec.tolerations"),
        ({}, {"schedulingGates": GATES}, "spec.schedulingGates[0].name"),
        ({}, {"schedulingGates": [{}]}, "spec.schedulingGates[0].name"),
        (
            {"schedulingGates": GATES, "nodeSelector": {"a": "b"}},
            {"schedulingGates": GATES, "nodeSelector": {"a": "c"}},
            "spec.nodeSelector",
        ),
        (
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"))},
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"), term("b"))},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
        (
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"))},
            {"schedulingGates": GATES, "affinity": node_affinity(term("b"))},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
        ),
        (
            {"schedulingGates": GATES, "affinity": node_affinity({})},
            {"schedulingGates": GATES, "affinity": node_affinity(term("a"))},
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]",
        ),
        (
            {"schedulingGates": GATES},
            {"schedulingGates": GATES, "affinity": {"podAffinity": {}, **node_affinity(term("a"))}, "hostname": "h"},
            "spec",
        ),
    ],
)
def test_what_may_not_change(before: Json, after: Json, field: str) -> None:
    assert [problem.field for problem in problems(spec_of(**before), spec_of(**after))] == [field]


def test_what_may_change_is_listed() -> None:
    (problem,) = problems(spec_of(), spec_of(hostname="h"))
    assert problem.message.startswith("Forbidden: pod updates may not change fields other than")
