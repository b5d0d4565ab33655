import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.label_matching import matches_labels


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"a": "1"}}, True),
        ({"matchLabels": {"a": "2"}}, False),
        ({"matchExpressions": [{"key": "a", "operator": "In", "values": ["1"]}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["1"]}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}, False),
        ({"matchExpressions": [{"key": "a", "operator": "Unknown"}]}, True),
    ],
)
def test_label_selector_objects_select_as_documented(selector: Json | None, selected: bool) -> None:
    assert matches_labels(selector, {"a": "1"}) is selected
