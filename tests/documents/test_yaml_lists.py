import pytest
import yaml

from trio_sched.documents import yaml_lists
from trio_sched.documents.plain import read_plain
from trio_sched.documents.positions import find, root_of_document, root_of_item
from trio_sched.documents.yaml_lists import parts_of_list, read_list
from trio_sched.documents.yaml_reader import read_plain_documents

LISTED = """\
apiVersion: v1
items:
- a: 1
  text: |
    - not an item
    # nor a comment

    ---
- a: [2,
    3]
# between
- "quoted
  - text"
- - nested
  - b: {c: d}
kind: List
metadata:
  resourceVersion: ""
"""


@pytest.fixture(autouse=True)
def _short_lists_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_lists, "_SMALL", 0)


@pytest.mark.parametrize(
    "text",
    [
        LISTED,
        f"---\n{LISTED}",
        LISTED.replace("\n", "\r\n"),
        LISTED.partition("kind")[0],
        f"# at the beginning\n{LISTED}# at the end\n",
        yaml.safe_dump({"items": [{"a": {"b": [n, "x\ny"]}} for n in range(3)], "kind": "List"}),
    ],
)
def test_items_are_what_they_are_in_the_whole(text: str) -> None:
    (whole,) = read_plain_documents(text)
    read = read_list(text)
    assert read is not None
    assert read.value == whole.value
    assert [*read_plain(text)] == [read]


@pytest.mark.parametrize(
    "text",
    [
        f"{LISTED}---\na: b\n",
        "items:\n- &a {b: c}\n- *a\n",
        'items:\n- "a\n- b"\n',
        "items:\n- [a,\n- b]\n",
        "items:\n- a: 1\n  a: 2\n",
        "items:\n- a\nitems:\n- b\n",
        "items:\n- a\n b\n- c\nitems: []\n",
        "items:\n- a: b\n  c\n",
        "%YAML 1.1\n---\nitems:\n- a\n",
        "other:\n- a\n",
        "- items:\n  - a\n",
        "",
    ],
)
def test_what_makes_sense_only_as_a_whole_is_read_as_such(text: str) -> None:
    assert read_list(text) is None


def test_short_texts_are_read_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_lists, "_SMALL", len(LISTED) + 1)
    assert parts_of_list(LISTED) is None


@pytest.mark.parametrize("number", range(4))
def test_places_in_an_item_are_those_in_the_whole(number: int) -> None:
    item, whole = root_of_item(LISTED, number), root_of_document(LISTED, 1)
    assert item is not None
    assert whole is not None
    expected = find(whole, f"items[{number}]")
    assert item.line == expected.line
    for path in ("a", "a[1]", "text", "[1].b.c"):
        assert find(item, path).line == find(expected, path).line


def test_an_item_that_is_not_there_has_no_place() -> None:
    assert root_of_item(LISTED, 4) is None
    assert root_of_item("items:\n- [\n", 0) is None
