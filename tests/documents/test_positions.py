import json

import pytest

from trio_sched.documents.positions import find, root_of_document, root_of_item

YAML = """\
# first
kind: Pod
---
kind: Pod
metadata:
  labels: {a.b/c: x}
spec:
  containers:
  - name: a
    image: i
  - name: b
    resources:
      requests:
        cpu: 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("kind", 4),
        ("metadata.labels[a.b/c]", 6),
        ("metadata.labels", 6),
        ("spec.containers[1].resources.requests[cpu]", 14),
        ("spec.containers[1].image", 11),
        ("spec.containers[7]", 8),
        ("spec.nothing", 7),
        ("", 4),
    ],
)
def test_a_path_leads_to_its_line_or_to_the_deepest_above(path: str, line: int) -> None:
    root = root_of_document(YAML, 2)
    assert root is not None
    assert find(root, path).line == line


def test_metadata_may_be_left_out_before_labels_and_annotations() -> None:
    root = root_of_document("template:\n  metadata:\n    name: x\n    annotations:\n      a.b/c: d\n", 1)
    assert root is not None
    assert find(root, "template.annotations[a.b/c]").line == 5
    assert find(root, "template.labels[a]").line == 1


def test_metadata_that_is_in_itself_ends_the_search() -> None:
    root = root_of_document("template:\n  metadata: &m\n    metadata: *m\n", 1)
    assert root is not None
    assert find(root, "template.labels[a]").line == 1


def test_json_is_searched_as_well() -> None:
    text = json.dumps(
        {"kind": "List", "items": [{"kind": "A", "é": 1}, {"kind": "B", "spec": {"x": [1, {"y": 2}]}}]}, indent=2
    )
    root = root_of_item(text, 1)
    assert root is not None
    assert text.split("\n")[find(root, "spec.x[1].y").line - 1].strip() == '"y": 2'
    whole = root_of_document(text, 1)
    assert whole is not None
    assert find(whole, "items[1].spec.x[1].y").line == find(root, "spec.x[1].y").line


def test_what_cannot_be_read_has_no_positions() -> None:
    assert root_of_document("{", 1) is None
    assert root_of_document("a: 1", 2) is None
    assert root_of_item("[]", 0) is None
    assert root_of_item('{"items": []}', 0) is None


def test_anchors_are_followed() -> None:
    root = root_of_document("a: &x\n  b: 1\nc: *x\n", 1)
    assert root is not None
    assert find(root, "c.b").line == 2
