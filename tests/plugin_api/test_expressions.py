"""Plugins evaluate expressions about plain values."""

from typing import Any

import pytest
from markdown_pages import blocks

from trio_sched.plugin_api import expressions
from trio_sched.plugin_api.expressions import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    CompileError,
    EvaluationError,
    Type,
    compile_expression,
    list_of,
    map_of,
)


def test_all_is_exactly_what_a_plugin_author_can_see() -> None:
    visible = {name for name in vars(expressions) if not name.startswith(("_", "@"))}  # @: what pytest adds
    assert sorted(expressions.__all__) == sorted(visible)


def test_the_example_of_the_module_is_true() -> None:
    lines = [line for line in (expressions.__doc__ or "").splitlines() if line.startswith("    ")]
    names: dict[str, Any] = {}
    exec("\n".join(line.strip() for line in lines[:-1]), names)
    call, _, answer = lines[-1].strip().partition("  # ")
    assert eval(call, names) is eval(answer)


def test_the_page_about_expressions_is_right() -> None:
    (block,) = [one for one in blocks("python") if one.page.name == "use_expressions_in_a_plugin.md"]
    names: dict[str, Any] = {}
    exec(block.text, names)
    assert names.keys() > {"__builtins__"}


@pytest.mark.parametrize(
    ("text", "types", "values", "expected"),
    [
        ("a + b * 2", {"a": INT, "b": INT}, {"a": 1, "b": 2}, 5),
        ('names.filter(n, n.startsWith("a"))', {"names": list_of(STRING)}, {"names": ("ab", "c")}, ["ab"]),
        ('labels.?tier.orValue("none")', {"labels": map_of(STRING, STRING)}, {"labels": {}}, "none"),
        ("labels.?tier", {"labels": map_of(STRING, STRING)}, {"labels": {}}, None),
        ('{"load": load, "ok": ok}', {"load": DYN, "ok": DYN}, {"load": 0.5, "ok": True}, {"load": 0.5, "ok": True}),
        ("any.x[1].y == null", {"any": DYN}, {"any": {"x": [0, {"y": None}]}}, True),
        ("load > 0.5 && ok", {"load": DOUBLE, "ok": BOOL}, {"load": 0.75, "ok": True}, True),
    ],
)
def test_values_go_in_and_come_out_as_python_has_them(
    text: str, types: dict[str, Type], values: dict[str, Any], expected: object
) -> None:
    assert compile_expression(text, types).evaluate(values) == expected


def test_what_does_not_fit_is_named() -> None:
    with pytest.raises(CompileError, match="undeclared reference to 'b'"):
        compile_expression("a + b", {"a": INT})
    expression = compile_expression("a == 1", {"a": DYN})
    assert str(expression.type) == "bool"
    endless: list[Any] = []
    endless.append(endless)
    for value, problem in (
        (1 << 64, "variable 'a': 65 bits do not fit into an int of 64 bits"),
        ({1: 2}, "variable 'a': keys of dicts must be text, not int"),
        ([object()], "variable 'a': a value of the class object is none of an expression"),
        (endless, "variable 'a': lists and dicts are nested deeper than 100 levels"),
    ):
        with pytest.raises(EvaluationError) as caught:
            expression.evaluate({"a": value})
        assert str(caught.value) == problem
    with pytest.raises(EvaluationError, match="no value is given for the variable 'a'"):
        expression.evaluate({})
