"""Expressions are parsed as cel-go parses them, and refused with its words where these are its own."""

from typing import Any

import pytest
from attrs import fields
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_sched.cel.errors import InvalidExpression
from trio_sched.cel.syntax.lexer import MAX_CODE_POINTS
from trio_sched.cel.syntax.nodes import Call, Constant, Entry, Logical, Node
from trio_sched.cel.syntax.parser import parse


def shape(node: Any) -> Any:
    """*node* as nested tuples, without positions."""
    if isinstance(node, Constant):
        return node.value if node.kind != "uint" else f"{node.value}u"
    if isinstance(node, Call):
        target = () if node.target is None else (shape(node.target),)
        return (node.function, *target, *map(shape, node.arguments))
    if isinstance(node, tuple):
        return tuple(map(shape, node))
    if hasattr(node, "__attrs_attrs__"):
        values = [getattr(node, field.name) for field in fields(type(node)) if field.name != "at"]
        return (type(node).__name__, *map(shape, values))
    return node


def problem(source: str) -> str:
    with pytest.raises(InvalidExpression) as caught:
        parse(source)
    return str(caught.value).removeprefix("compilation failed: ERROR: <input>:").split("\n")[0]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2 * 3 - 4", ("_-_", ("_+_", 1, ("_*_", 2, 3)), 4)),
        ("1 - -1", ("_-_", 1, -1)),
        ("-9223372036854775808", -(2**63)),
        ("!!true", True),
        ("!!!true", ("!_", True)),
        ("--5", 5),
        ("- 5", -5),
        ("-x", ("-_", ("Name", "x"))),
        ("0x1F + 2u", ("_+_", 31, "2u")),
        (".5 < 1e3", ("_<_", 0.5, 1000.0)),
        ("a in [1] == true", ("_==_", ("@in", ("Name", "a"), ("ListLiteral", (1,), frozenset())), True)),
        ("a ? 1 : b ? 2 : 3", ("_?_:_", ("Name", "a"), 1, ("_?_:_", ("Name", "b"), 2, 3))),
        ("a.b[0].c()", ("c", ("_[_]", ("Select", ("Name", "a"), "b", False, False), 0))),
        ("a.?b[?0]", ("_[?_]", ("Select", ("Name", "a"), "b", True, False), 0)),
        ("[1, ?x,]", ("ListLiteral", (1, ("Name", "x")), frozenset({1}))),
        ("[,]", ("ListLiteral", (), frozenset())),
        ('{"a": 1, ?"b": x}', ("MapLiteral", (("Entry", "a", 1, False), ("Entry", "b", ("Name", "x"), True)))),
        ("a.B{c: 1}", ("MessageLiteral", "a.B", (("Entry", "c", 1, False),))),
        ("x.if", ("Select", ("Name", "x"), "if", False, False)),
        ("has(a.b)", ("Select", ("Name", "a"), "b", False, True)),
        ("a.all(x, x > 0)", ("Comprehension", "all", ("Name", "a"), ("x",), ("_>_", ("Name", "x"), 0), None)),
        ("a.map(x, f, t)", ("Comprehension", "map", ("Name", "a"), ("x",), ("Name", "t"), ("Name", "f"))),
        ("a.transformMap(k, v, v)", ("Comprehension", "transformMap", ("Name", "a"), ("k", "v"), ("Name", "v"), None)),
        ("cel.bind(x, 1, x)", ("Bind", "x", 1, ("Name", "x"))),
        ("o.optFlatMap(x, x)", ("OptionalMap", ("Name", "o"), "x", ("Name", "x"), True)),
        ("a.all(x)", ("all", ("Name", "a"), ("Name", "x"))),
        ("1 // one\n + 2", ("_+_", 1, 2)),
    ],
)
def test_expressions_have_the_shape_of_the_language(source: str, expected: Any) -> None:
    assert shape(parse(source)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (r'"\a\n\"\x41\u00e9\U0001F600\101"', '\a\n"A\u00e9\U0001f600A'),
        (r"r'\n'", "\\n"),
        ('"""a"b\nc"""', 'a"b\nc'),
        (r'b"\x41\377é"', b"A\xff\xc3\xa9"),
        (r"br'\x41'", b"\\x41"),
        ("''", ""),
    ],
)
def test_texts_are_read_with_their_escapes(source: str, expected: Any) -> None:
    assert shape(parse(source)) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("9223372036854775808", "1:1: invalid int literal"),
        ("18446744073709551616u", "1:1: invalid uint literal"),
        ("1e400", "1:1: invalid double literal"),
        ('"\\ud800"', "1:1: invalid unicode code point"),
        ('b"\\u0041"', "1:1: unable to unescape string"),
        ("if", "1:1: reserved identifier: if"),
        ("x.`y`", "1:3: unsupported syntax: '`'"),
        ("has(x)", "1:5: invalid argument to has() macro"),
        ("has(x.?y)", "1:6: invalid argument to has() macro"),
        ("[1].all(x.y, true)", "1:10: argument must be a simple name"),
        ("[1].all(i, i, true)", "1:12: duplicate variable name: i"),
        ("[1].all(__result__, true)", "1:9: iteration variable overwrites accumulator variable"),
        ("cel.bind(a.b, 1, 2)", "1:11: cel.bind() variable names must be simple identifiers"),
        ("a\n  + `", "2:5: Syntax error: token recognition error at: '`'"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(source: str, expected: str) -> None:
    assert problem(source) == expected


@pytest.mark.parametrize(
    "source",
    [
        "",
        "1 +",
        "(1",
        "[1",
        "{1}",
        "a.1",
        "a b",
        "5.",
        "0X1F",
        "a ? b ? c : d : e",
        "f(1,)",
        "[1,,]",
        '"a',
        "'\n'",
        "#",
    ],
)
def test_syntax_errors_are_errors(source: str) -> None:
    assert "yntax error" in problem(source)


def test_an_error_shows_its_line() -> None:
    with pytest.raises(InvalidExpression) as caught:
        parse('"é" +\n\t1 + if')
    assert str(caught.value) == (
        "compilation failed: ERROR: <input>:2:6: reserved identifier: if\n |  1 + if\n | .....^"
    )


@pytest.mark.parametrize(
    ("opening", "inner", "closing", "most"),
    [
        ("(", "1", ")", 249),
        ("[", "", "]", 250),
        ('{"a": ', "1", "}", 249),
        ("dyn(", "1", ")", 249),
        ("true ? 1 : ", "1", "", 249),
    ],
)
def test_nesting_is_limited(opening: str, inner: str, closing: str, most: int) -> None:
    parse(opening * most + inner + closing * most)
    deeper = opening * (most + 1) + inner + closing * (most + 1)
    assert problem(deeper) == "-1:0: expression recursion limit exceeded: 250"


@pytest.mark.parametrize("link", [" + 1", ".a", ".f()", "[0]"])
def test_chains_are_limited_but_those_of_and_and_or_are_not(link: str) -> None:
    parse("x" + link * 250)
    assert problem("x" + link * 251) == "-1:0: max recursion depth exceeded"
    chain = parse("true" + " && true" * 5_000)
    assert isinstance(chain, Logical)
    assert len(chain.operands) == 5_001


def test_length_is_limited() -> None:
    parse("1" + " " * (MAX_CODE_POINTS - 1))
    assert problem("1" + " " * MAX_CODE_POINTS) == (
        "-1:0: expression code point size exceeds limit: size: 100001, limit 100000"
    )


@settings(derandomize=True, deadline=None, database=None, max_examples=300)
@given(st.text(alphabet="ab1.?:()[]{},+-!&|\"'\\ \nhasin=<rtrue0x`é", max_size=40))
def test_any_text_is_parsed_or_refused(source: str) -> None:
    try:
        parsed = parse(source)
    except InvalidExpression as error:
        refused = error
    else:
        assert_positions(parsed, len(source))
        return
    assert all(issue.offset <= len(source) for issue in refused.issues)


def assert_positions(node: Node | Entry | str | None, length: int) -> None:
    """Everything that was parsed points into the text."""
    if node is None or isinstance(node, str):
        return
    assert 0 <= node.at < length
    for field in fields(type(node)):
        value = getattr(node, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if hasattr(part, "at"):
                assert_positions(part, length)
