from typing import Any

import pytest

from trio_sched.documents.json_values import Json
from trio_sched.simulator.endpoints.patches.patches import PatchError, PatchTestFailed, json_patch, merge_patch


@pytest.mark.parametrize(
    ("current", "patch", "outcome"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ({}, {"a": None}, {}),
    ],
)
def test_merge_patches_follow_rfc_7386(current: Json, patch: Json, outcome: Json) -> None:
    assert merge_patch(current, patch) == outcome


@pytest.mark.parametrize(
    ("operation", "outcome"),
    [
        ({"op": "add", "path": "/m/new", "value": 1}, {"m": {"a/b": 1, "new": 1}, "l": [1, 2]}),
        ({"op": "add", "path": "/l/1", "value": 9}, {"m": {"a/b": 1}, "l": [1, 9, 2]}),
        ({"op": "add", "path": "/l/-", "value": 9}, {"m": {"a/b": 1}, "l": [1, 2, 9]}),
        ({"op": "remove", "path": "/m/a~1b"}, {"m": {}, "l": [1, 2]}),
        ({"op": "remove", "path": "/l/0"}, {"m": {"a/b": 1}, "l": [2]}),
        ({"op": "replace", "path": "/l/0", "value": 5}, {"m": {"a/b": 1}, "l": [5, 2]}),
        ({"op": "move", "from": "/l/0", "path": "/first"}, {"m": {"a/b": 1}, "l": [2], "first": 1}),
        ({"op": "copy", "from": "/l", "path": "/m/l"}, {"m": {"a/b": 1, "l": [1, 2]}, "l": [1, 2]}),
        ({"op": "test", "path": "/l", "value": [1, 2]}, {"m": {"a/b": 1}, "l": [1, 2]}),
    ],
)
def test_json_patches_follow_rfc_6902(operation: Json, outcome: Json) -> None:
    current = {"m": {"a/b": 1}, "l": [1, 2]}
    assert json_patch(current, [operation]) == outcome
    assert current == {"m": {"a/b": 1}, "l": [1, 2]}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/missing"}],
        [{"op": "replace", "path": "/missing", "value": 1}],
        [{"op": "add", "path": "/missing/deep", "value": 1}],
        [{"op": "add", "path": "/l/7", "value": 1}],
        [{"op": "add", "path": "/l/x", "value": 1}],
        [{"op": "add", "path": "/x"}],
        [{"op": "explode", "path": "/l"}],
        [{"op": "add", "path": "no-slash", "value": 1}],
        ["nonsense"],
        {"not": "a list"},
        [{"op": "replace", "path": "", "value": 1}],
    ],
)
def test_json_patches_with_unknown_paths_are_refused(operations: Any) -> None:
    with pytest.raises(PatchError):
        json_patch({"l": [1]}, operations)


def test_a_failed_test_says_where() -> None:
    with pytest.raises(PatchTestFailed, match="testing path /a failed"):
        json_patch({"a": 1}, [{"op": "test", "path": "/a", "value": 2}])
