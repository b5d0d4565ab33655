"""The reference pages about what modules define: complete, and made from the right parts of the source."""

from collections import Counter
from importlib import import_module

import pytest

from contrib.docs.api_pages import PLUGIN_API, TESTING, ApiPage, api_pages
from contrib.docs.definitions import Class, Definition, Method, define
from contrib.docs.docstrings import to_markdown

PUBLIC = (PLUGIN_API, f"{PLUGIN_API}.expressions", TESTING, f"{TESTING}.strategies")
per_page = pytest.mark.parametrize("page", api_pages(), ids=lambda page: page.name)


def definitions(page: ApiPage) -> list[Definition]:
    return [one for group in page.groups for one in group.definitions()]


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_on_a_page(module: str) -> None:
    listed = {name for page in api_pages() for group in page.groups for name in group.names}
    assert set(import_module(module).__all__) - listed == set()


@per_page
def test_names_and_headings_of_a_page_are_unique(page: ApiPage) -> None:
    headings = [line for line in page.text().splitlines() if line.startswith(("## ", "### ", "#### "))]
    assert [heading for heading, count in Counter(headings).items() if count > 1] == []


@per_page
def test_everything_that_is_described_has_a_text(page: ApiPage) -> None:
    for one in definitions(page):
        assert one.text, one.name
        for method in one.methods if isinstance(one, Class) else ():
            assert method.text, f"{one.name}.{method.name}"


def test_a_class_has_its_members_in_order_with_their_types() -> None:
    verdicts = define(PLUGIN_API, "Verdicts")
    assert isinstance(verdicts, Class)
    assert [one.name for one in verdicts.attributes] == ["codes", "explain", "may_fail", "passes"]
    assert verdicts.attributes[2].value == "False"
    assert verdicts.methods[0].signatures == (
        "@classmethod\ndef where(passes: NDArray[np.bool_], otherwise: Status) -> Verdicts",
    )


def test_members_of_bases_that_have_no_page_are_those_of_the_class() -> None:
    cluster = define(TESTING, "VirtualCluster")
    assert isinstance(cluster, Class)
    assert {"wait_scheduled", "settle"} <= {method.name for method in cluster.methods}
    assert not [one.name for one in cluster.attributes if one.name.startswith("_")]


def test_an_overloaded_method_has_all_of_its_signatures() -> None:
    handle = define(PLUGIN_API, "Handle")
    assert isinstance(handle, Class)
    (found,) = [method for method in handle.methods if method.name == "objects"]
    assert len(found.signatures) == 4


def test_a_name_that_is_not_there_is_an_error() -> None:
    with pytest.raises(LookupError, match=r"trio_sched\.plugin_api does not define Nothing"):
        define(PLUGIN_API, "Nothing")


def test_docstrings_become_markdown() -> None:
    text = "See `Pod`, ``x``::\n\n    a = 1\n\nArgs:\n    one: is\n        long.\n\nRaises:\n    Bad: if so.\n"
    assert to_markdown(text, lambda name: f"[{name}]") == (
        "See [Pod], `x`:\n\n```python\na = 1\n```\n\n*Args:*\n\n- *one*: is\n  long.\n\n*Raises:*\n\n- [Bad]: if so."
    )


def test_a_function_is_described_with_its_defaults() -> None:
    found = define(PLUGIN_API, "unschedulable")
    assert found == Method("unschedulable", ("def unschedulable(*reasons: str) -> Status",), found.text)
