import pytest

from trio_sched.documents.lines import FieldLines

TEXT = """\
a: 1
list:
- b: &anchor {deep: x}
  c:
    d: 2
- *anchor
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("a", 1),
        ("list", 2),
        ("list[0]", 3),
        ("list[0].b.deep", 3),
        ("list[0].c.d", 5),
        ("list[0].c.none.at.all", 4),
        ("list[1].deep", 3),
        ("list[7].x", 2),
        ("list[99999999999999999999]", 2),
        ("nothing", None),
        ("", None),
    ],
)
def test_a_field_has_the_line_of_its_name_or_of_what_is_around_it(path: str, line: int | None) -> None:
    assert FieldLines(TEXT).line(path) == line


def test_json_has_lines_as_well_and_a_broken_text_has_none() -> None:
    assert FieldLines('{"a":\n {"b":\n 1}}').line("a.b") == 2
    assert FieldLines("a: [").line("a") is None
    assert FieldLines("").line("a") is None
