from typing import Any

import pytest
from simulator_api import Api

from trio_sched.simulator.printers.custom_tables import reader_of

FIELDS = {
    "metadata": {"name": "r", "labels": {"example.com/zone": "a"}},
    "spec": {"slots": [{"size": 1}, {"size": 2}]},
    "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
}
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["r"]),
        (".metadata.labels.example\\.com/zone", ["a"]),
        (".metadata.labels['example.com/zone']", ["a"]),
        (".spec.slots[0].size", [1]),
        (".spec.slots[-1].size", [2]),
        (".spec.slots[*].size", [1, 2]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.none.deeper", []),
        (".spec.slots.name", []),
    ],
)
def test_paths_select(path: str, found: list[Any]) -> None:
    read = reader_of(path)
    assert read is not None
    assert read(FIELDS) == found


@pytest.mark.parametrize("path", ["", "spec", ".spec[", ".spec[?(1)]", "..spec", ".a b[x]"])
def test_what_is_no_path_is_known_as_such(path: str) -> None:
    assert reader_of(path) is None


def definition(**version: Any) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, **version}
    names = {"plural": "racks", "kind": "Rack"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": "racks.example.com"}, "spec": spec}


DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_custom_resources_are_shown_with_the_columns_of_their_definition(api: Api) -> None:
    printed = [
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.slots[0].size", "priority": 1},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await api("POST", DEFINITIONS, definition(additionalPrinterColumns=printed))
    await api("POST", "/apis/example.com/v1/namespaces/default/racks", FIELDS)
    table = await api("GET", "/apis/example.com/v1/racks", accept=TABLE)
    assert [(one["name"], one["priority"]) for one in table["columnDefinitions"]] == [
        *(("Name", 0), ("Ready", 0), ("Size", 1), ("Color", 0), ("Age", 0))
    ]
    assert [one["cells"] for one in table["rows"]] == [["r", "True", 1, None, "0s"]]


async def test_paths_that_cannot_be_read_are_refused(api: Api) -> None:
    wrong = definition(
        additionalPrinterColumns=[{"name": "X", "jsonPath": ".spec"}],
        subresources={"scale": {"specReplicasPath": "spec.replicas"}},
    )
    status = await api("POST", DEFINITIONS, wrong, expect=422)
    assert [cause["field"].removeprefix("spec.versions[0].") for cause in status["details"]["causes"]] == [
        "subresources.scale.specReplicasPath",
        "subresources.scale.statusReplicasPath",
        "additionalPrinterColumns[0].type",
    ]
