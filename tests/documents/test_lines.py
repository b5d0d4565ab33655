import pytest

from trio_sched.documents.lines import FieldLines

TEXT = """\
a: 1
list:
- b: &anchor {deep: x}
  c:
    d: 2
- *anchor
zones:
  eu-1a:
    size: 1
  gpu.example.com/[x]: 2
  it's: 3
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
        ("zones['eu-1a'].size", 9),
        ("zones['gpu.example.com/[x]']", 10),
        ('zones["it\'s"]', 11),
        ("zones['us'].size", 7),
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
