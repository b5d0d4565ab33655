import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.go.csv import CsvError, csv_line, read_csv_line


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        (",", ["", ""]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a""b"', ['a"b']),
        ('"",x', ["", "x"]),
        ("a\r\nb", ["a"]),
        ('"a\nb",c\nd', ["a\nb", "c"]),
        (" a ,b", [" a ", "b"]),
    ],
)
def test_a_line_has_fields_of_which_some_are_in_quotes(text: str, fields: list[str]) -> None:
    assert read_csv_line(text) == fields


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('a"b', 'parse error on line 1, column 2: bare " in non-quoted field'),
        ('a,b"', 'parse error on line 1, column 4: bare " in non-quoted field'),
        ('"a', 'parse error on line 1, column 3: extraneous or missing " in quoted-field'),
        ('"a"b', 'parse error on line 1, column 3: extraneous or missing " in quoted-field'),
        ('x,"é"b', 'parse error on line 1, column 6: extraneous or missing " in quoted-field'),
        (
            '"a\nb"c',
            'record on line 1; parse error on line 2, column 2: extraneous or missing " in quoted-field',
        ),
    ],
)
def test_misplaced_quotes_are_told_as_go_does(text: str, problem: str) -> None:
    with pytest.raises(CsvError) as caught:
        read_csv_line(text)
    assert str(caught.value) == problem


_VALUES = st.text(st.characters(blacklist_characters="\r", blacklist_categories=("Cs",)))


@given(st.lists(_VALUES, min_size=2))
def test_what_is_written_reads_back_here_and_elsewhere(values: list[str]) -> None:
    line = csv_line(values)
    assert read_csv_line(line) == values
    assert next(csv.reader(io.StringIO(line, newline=""), strict=True)) == values
