from typing import Any

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.pods.pod_defaults import fill_spec
from trio_sched.simulator.validation.core import pods
from trio_sched.simulator.validation.meta.field_problems import FieldProblem


def spec_of(**spec: Any) -> Json:
    spec = {"containers": [{"name": "main", "image": "app:1"}], **spec}
    fill_spec(spec)
    return spec


def pod_problems(spec: Json) -> list[FieldProblem]:
    return list(pods.pod_problems({"metadata": {"name": "p"}, "spec": spec}))


def container(**fields: Any) -> list[Json]:
    return [{"name": "main", "image": "app:1", **fields}]


def test_a_plain_pod_has_no_problems() -> None:
    assert pod_problems(spec_of()) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"containers": []}, "spec.containers: Required value"),
        ({"containers": [{"image": "i"}]}, "spec.containers[0].name: Required value"),
        ({"containers": [{"name": "c"}]}, "spec.containers[0].image: Required value"),
        ({"containers": container() + container()}, 'spec.containers[1].name: Duplicate value: "main"'),
        (
            {"containers": container(name="A")},
            'spec.containers[0].name: Invalid value: "A": a lowercase RFC 1123 label',
        ),
        ({"restartPolicy": "Maybe"}, 'spec.restartPolicy: Unsupported value: "Maybe": supported values: "Always"'),
        (
            {"containers": container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})},
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
        ),
        (
            {"containers": container(resources={"requests": {"cpu": "-1"}})},
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
        ),
        (
            {"containers": container(resources={"requests": {"a.b/c": "1"}, "limits": {"a.b/c": "2"}})},
            "must be equal to a.b/c limit of 2",
        ),
        (
            {"containers": container(ports=[{"containerPort": 70000}])},
            "spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
        ),
        ({"tolerations": [{"operator": "Equal"}]}, "spec.tolerations[0].operator: Invalid value"),
        ({"tolerations": [{"key": "k", "effect": "Never"}]}, 'spec.tolerations[0].effect: Unsupported value: "Never"'),
        (
            {"tolerations": [{"key": "k", "tolerationSeconds": 1}]},
            "effect must be 'NoExecute' when `tolerationSeconds` is set",
        ),
        (
            {"nodeName": "n", "schedulingGates": [{"name": "g"}]},
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
        ),
        (
            {"topologySpreadConstraints": [{"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero",
        ),
    ],
)
def test_violations_have_the_text_of_kube_apiserver(spec: Json, expected: str) -> None:
    problems = [f"{problem.field}: {problem.message}" for problem in pod_problems(spec_of(**spec))]
    assert len(problems) == 1
    assert expected in problems[0]
