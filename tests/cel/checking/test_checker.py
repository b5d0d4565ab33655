"""Expressions are checked as cel-go checks them; recorded verdicts, texts and types are in the golden area ``cel``."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_sched.cel.checking.checker import check
from trio_sched.cel.checking.environment import Environment
from trio_sched.cel.errors import CompileError, InvalidExpression
from trio_sched.cel.syntax.parser import parse
from trio_sched.cel.values.types import ANY, STRING, Type, map_of

ENVIRONMENT = Environment(
    {"device": Type("kubernetes.DRADevice"), "any": ANY},
    {
        "kubernetes.DRADevice": {
            "driver": STRING,
            "attributes": map_of(STRING, map_of(STRING, ANY)),
            "capacity": map_of(STRING, map_of(STRING, Type("kubernetes.Quantity"))),
        }
    },
)


def type_of(source: str) -> str:
    return str(check(source, parse(source), ENVIRONMENT).type)


def problems(source: str) -> list[str]:
    with pytest.raises(InvalidExpression) as caught:
        type_of(source)
    return [f"{issue.offset + 1}: {issue.message}" for issue in caught.value.issues]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1 + 2", "int"),
        ("device", "kubernetes.DRADevice"),
        ("device.attributes", "map(string, map(string, any))"),
        ('device.attributes["a"].b', "any"),
        ("device.attributes.a.b.c[0]", "dyn"),
        ('device.attributes["a"].b + 1', "int"),
        ('device.attributes["a"].b + device.attributes["a"].c', "dyn"),
        ('true ? any : "x"', "any"),
        ("1 < 2.5", "bool"),
        ("[]", "list(dyn)"),
        ("[[], [1]]", "list(list(int))"),
        ("{}", "map(dyn, dyn)"),
        ('{"a": [1u]}', "map(string, list(uint))"),
        ("[1].map(x, [x])", "list(list(int))"),
        ('{"a": 1}.map(k, k)', "list(string)"),
        ('{"a": 1}.transformList(k, v, v)', "list(int)"),
        ('{"a": 1}.transformMap(k, v, [v])', "map(string, list(int))"),
        ('["b"].sortBy(x, x.size())', "list(string)"),
        ("[].sortBy(x, x)", "list(int)"),
        ("cel.bind(x, 1.5, [x])", "list(double)"),
        ("optional.of(1)", "optional_type(int)"),
        ("device.?driver", "optional_type(string)"),
        ('device.attributes[?"a"].b.orValue(1)', "any"),
        ("optional.of(1).optMap(x, string(x))", "optional_type(string)"),
        ("optional.of(1).optFlatMap(x, optional.of([x]))", "optional_type(list(int))"),
        ('device.capacity["a"].b.compareTo(quantity("1"))', "int"),
        ("type(1)", "type(int)"),
        ("int", "type(int)"),
        ("google.protobuf.Int32Value{value: 1}", "wrapper(int)"),
        ('"%s %d".format(["a", 1])', "string"),
        ("[1].exists(int, int > 0)", "bool"),
        (".device.driver", "string"),
    ],
)
def test_types_are_found(source: str, expected: str) -> None:
    assert type_of(source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x", "1: undeclared reference to 'x' (in container '')"),
        ("f(1)", "2: undeclared reference to 'f' (in container '')"),
        ('1 + "a"', "3: found no matching overload for '_+_' applied to '(int, string)'"),
        ('"a".startsWith(5)', "15: found no matching overload for 'startsWith' applied to 'string.(int)'"),
        ("1 == 1.0", "3: found no matching overload for '_==_' applied to '(int, double)'"),
        ("1 in [1.0]", "3: found no matching overload for '@in' applied to '(int, list(double))'"),
        ("1 && true", "1: expected type 'bool' but found 'int'"),
        ("device.foo", "7: undefined field 'foo'"),
        ("device.driver.foo", "14: type 'string' does not support field selection"),
        ('quantity("1").foo', "14: unexpected failed resolution of 'kubernetes.Quantity'"),
        ("any.all(x, true)", "1: expression of type 'any' cannot be range of a comprehension"),
        ("[1, 2.0]", "5: expected type 'int' but found 'double'"),
        ("[any, 7]", "7: expected type 'any' but found 'int'"),
        ('{"a": 1, 2: 3}', "10: expected type 'string' but found 'int'"),
        ("[1, ?2]", "6: expected type 'optional_type(int)' but found 'int'"),
        ("[1].filter(x, x)", "11: found no matching overload for '_?_:_' applied to '(int, list(int), list(int))'"),
        ("[1].sortBy(x, [x])", "11: found no matching overload for '@sortByAssociatedKeys'"),
        ("[1].transformMapEntry(i, v, v)", "22: found no matching overload for 'cel.@mapInsert'"),
        ("optional.of(3).optFlatMap(v, v)", "26: found no matching overload for '_?_:_'"),
        ("google.protobuf.Int32Value{value: true}", "33: expected type of field 'value' is 'int'"),
        ("google.protobuf.Int32Value{other: 1}", "33: undefined field 'other'"),
        ("No{a: 1}", "3: undeclared reference to 'No' (in container '')"),
    ],
)
def test_what_does_not_fit_is_named(source: str, expected: str) -> None:
    (problem,) = problems(source)
    assert problem.startswith(expected)


def test_all_issues_are_reported_in_the_order_of_the_text() -> None:
    assert [issue.partition(":")[0] for issue in problems("[x, y, 1 && z]")] == ["2", "5", "8", "13"]


def test_a_failing_part_is_an_error_to_what_contains_it() -> None:
    assert problems("[x, 1].size() == 1") == ["2: undeclared reference to 'x' (in container '')"]


def test_what_is_formatted_may_differ() -> None:
    assert type_of('"%s".format([[1, "a"]])') == "string"


def test_types_that_double_are_refused() -> None:
    doubling = "1"
    for level in reversed(range(40)):
        doubling = f"cel.bind(x{level}, {'[1]' if not level else f'{{x{level - 1}: x{level - 1}}}'}, {doubling})"
    with pytest.raises(CompileError, match="more than 1,000 parts"):
        type_of(doubling)


@given(st.text(alphabet=" .,:?[](){}\"'+-*/%=!<>&|0123456789abinrueltsmpo", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_is_checked_or_refused(source: str) -> None:
    with suppress(CompileError):
        assert type_of(source)


PARTS = ("1", "2u", "1.5", '"a"', "true", "null", "[]", "{}", "[1]", "any", "device", "x", 'b"a"', "int", "dyn(1)")


@given(
    st.recursive(
        st.sampled_from(PARTS),
        lambda inner: st.one_of(
            st.builds("({} + {})".format, inner, inner),
            st.builds("[{}, {}]".format, inner, inner),
            st.builds("{{{}: {}}}".format, inner, inner),
            st.builds("({}).map(x, {})".format, inner, inner),
            st.builds("({}).all(x, y, {})".format, inner, inner),
            st.builds("(true ? {} : {})".format, inner, inner),
            st.builds("({} == {})".format, inner, inner),
            st.builds("({}).orValue({})".format, inner, inner),
            st.builds("optional.of({})".format, inner),
            st.builds("({})[{}]".format, inner, inner),
            st.builds("({}).a".format, inner),
            st.builds("cel.bind(x, {}, {})".format, inner, inner),
        ),
        max_leaves=12,
    )
)
@settings(max_examples=300, deadline=None)
def test_nested_parts_of_any_types_are_checked_or_refused(source: str) -> None:
    with suppress(InvalidExpression):
        assert type_of(source)
