import pytest

from trio_sched.documents.errors import DocumentError
from trio_sched.documents.tree import compact
from trio_sched.documents.yaml_reader import read_yaml


@pytest.mark.parametrize(
    ("text", "as_json"),
    [
        ("[yes, Off, y, TRUE]", "[true,false,true,true]"),
        ("[010, 0x10, 0o17, 0b11, 1_000, +5, -0x1F]", "[8,16,15,3,1000,5,-31]"),
        ("[1.0, 1e2, .5, 08, 1.2345678901234567890123e22]", "[1,100,0.5,8,1.2345678901234568e+22]"),
        ("[18446744073709551615, 18446744073709551616]", "[18446744073709551615,18446744073709552000]"),
        ("['5', !!str 5, !!int '5', !foo 5, 2001-01-01, 1:30]", '["5","5",5,"5","2001-01-01","1:30"]'),
        ("[~, null, '', ]", '[null,null,""]'),
        ("{y: 1, 5: 2, 1.5: 3, b: {z: 1, a: 2}}", '{"1.5":3,"5":2,"b":{"a":2,"z":1},"true":1}'),
        ("a: &x {b: 1}\nc: {<<: *x, d: 2}", '{"a":{"b":1},"c":{"b":1,"d":2}}'),
        ("c: {<<: [{b: 1}, {b: 2}]}", '{"c":{"b":1}}'),
        ("a: |\n  b\n  c\n", '{"a":"b\\nc\\n"}'),
        ("a: 1\n---\n]not read[", '{"a":1}'),
        ("\ufeff%YAML 1.1\n---\r\na: 1\r\n...\r\n", '{"a":1}'),
        ("", "null"),
        ("---\n---\na: 1\n", "null"),
    ],
)
def test_the_first_document_is_read_as_yaml_1_1(text: str, as_json: str) -> None:
    assert compact(read_yaml(text).tree) == as_json


def test_duplicate_keys_are_collected_with_the_lines_of_their_values() -> None:
    document = read_yaml("a: 1\na: 2\nb:\n  1: x\n  1:\n    z\nc: {<<: {d: 1}, d: 2}\n")
    assert document.duplicates_text == (
        "yaml: unmarshal errors:\n"
        '  line 2: key "a" already set in map\n'
        "  line 6: key 1 already set in map\n"
        '  line 7: key "d" already set in map'
    )
    assert compact(document.tree) == '{"a":2,"b":{"1":"z"},"c":{"d":2}}'


def test_keys_that_only_python_holds_equal_are_no_duplicates() -> None:
    assert read_yaml("{1: a, true: b}").duplicates == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [\n", "yaml: line 1: did not find expected node content"),
        ("a:\n\tb: 1\n", "yaml: line 2: found character that cannot start any token"),
        ("a: *x\n", "yaml: unknown anchor 'x' referenced"),
        ("a: &x [*x]\n", "yaml: anchor 'x' value contains itself"),
        ("? [a]\n: 1\n", 'yaml: invalid map key: []interface {}{"a"}'),
        ("null: 2\n", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 2"),
        ("a: .inf\n", "json: unsupported value: +Inf"),
        ("a: !!int abc\n", "yaml: cannot decode !!str `abc` as a !!int"),
        ("a: {<<: 5}\n", "yaml: map merge requires map or sequence of maps as the value"),
        ("a: \x01\n", "yaml: control characters are not allowed"),
    ],
)
def test_what_cannot_be_read_is_refused_in_the_librarys_words(text: str, problem: str) -> None:
    with pytest.raises(DocumentError) as caught:
        read_yaml(text)
    assert str(caught.value) == problem


def test_a_document_that_explodes_through_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 7)]
    with pytest.raises(DocumentError, match="document contains excessive aliasing"):
        read_yaml("\n".join(lines))
