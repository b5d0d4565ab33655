"""Whatever an expression is, compiling and evaluating it ends soon and takes little memory."""

import sys
import time
from contextlib import suppress

import pytest
from cel_cases import DEVICE, DRIVER, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from trio_sched.cel.device_selector import compile_device_selector
from trio_sched.cel.errors import COST_EXCEEDED, CompileError, EvaluationError
from trio_sched.cel.runtime import activation
from trio_sched.cel.runtime.activation import COST_LIMIT

EXCEEDED = f"error: {COST_EXCEEDED}"


def nested(levels: int, next_value: str, use: str, first: str = "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1]") -> str:
    """Bindings of which each is made of the one before, which ``@`` stands for."""
    text = f"cel.bind(v0, {first}, "
    for level in range(1, levels):
        text += f"cel.bind(v{level}, {next_value.replace('@', f'v{level - 1}')}, "
    return text + use.replace("@", f"v{levels - 1}") + ")" * levels


TENFOLD = "[@, @, @, @, @, @, @, @, @, @]"


@pytest.mark.parametrize(
    "expression",
    [
        "lists.range(1000001).size() > 0",
        "lists.range(9223372036854775807).size() > 0",
        "lists.range(1001).map(x, lists.range(1001)).size() > 0",
        "lists.range(400).exists(x, lists.range(400).exists(y, x * y == -1))",
        "lists.range(400).exists(x, lists.range(400).exists(y, x * y == -1)) || true",
        "lists.range(400).exists(x, lists.range(400).exists(y, x * y == -1)) ? true : true",
        "lists.range(800).distinct().size() > 0",
        nested(100, TENFOLD, "@ == @"),
        nested(100, TENFOLD, "[@].indexOf(@) == 0"),
        nested(100, TENFOLD, '"%s".format([@]) == ""'),
        nested(200, "@ + @", "@.size() > 0"),
        nested(200, "@ + @", "@.size() > 0", '"text"'),
        nested(200, "@ + @", "@.size() > 0", 'b"text"'),
        nested(200, '@.replace("", @)', "@.size() > 0", '"text"'),
        nested(200, '"%s%s".format([@, @])', "@.size() > 0", '"text"'),
        nested(200, "[@, @].join()", "@.size() > 0", '"text"'),
        nested(100, "google.protobuf.ListValue{values: [dyn(@), dyn(@)]}", "@.size() > 0", "[dyn(1)]"),
        '"%.1000000000f".format([1.0]) == ""',
        nested(8, '@.replace("", "aaaaaaa")', '@.findAll("").size() > 0', '"aaaaaaa"'),
        '"%1000000000".format([1.0]) == "" || "%.2000000000e".format([1.0]) == ""',
    ],
)
def test_what_is_too_much_work_is_given_up(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activation, "WORK_LIMIT", 100_000)  # a twentieth of what it is, so that the tests are fast
    found, _cost = outcome(expression)
    assert found == EXCEEDED or found.startswith("refused: compilation failed")


def test_no_operator_takes_the_exceeded_limit_away() -> None:
    found, cost = outcome(f"lists.range({COST_LIMIT - 20}).size() > 0 || true")
    assert (found, cost) == ("true", COST_LIMIT - 20 + 11 + 2)
    assert outcome(f"lists.range({COST_LIMIT}).size() > 0 || true")[0] == EXCEEDED


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 240 + "true" + ")" * 240,
        "!" * 50_000 + "true",
        "[" + "[]," * 5_000 + "] == []",
        " || ".join(["device.driver == 'x'"] * 4_000),
        f"device.driver in [{','.join(map(repr, range(10_000)))}]".replace("[0", "['0'").replace(",", "','")[:-2]
        + "']",
        '"a".matches("' + "(" * 40_000 + "a" + ")" * 40_000 + '")',
        '"' + "a" * 50_000 + '".matches("(a*)*(a*)*b")',
        'quantity("1e999999999").compareTo(quantity("1")) > 0',
        'lists.range(20000).all(x, quantity("1e1000").add(quantity("1e-9")).compareTo(quantity("1n")) > 0)',
        'isIP("' + "1" * 90_000 + '") || isCIDR("' + "1" * 5_000 + '/24")',
        'isSemver("' + "1" * 90_000 + '.0.0")',
        'double(dyn("' + "1" * 9_000 + '")) > 0.0',
        'format.dns1123Subdomain().validate("' + "a." * 40_000 + '").hasValue()',
        'isURL("http://' + "%41" * 30_000 + '")',
        nested(100, TENFOLD, "[?dyn(@)] == []"),
        nested(120, '{"a": @, "b": @}', "@.size() > 0", '{"a": 1}'),
    ],
)
def test_hostile_expressions_end_soon(expression: str) -> None:
    begun = time.perf_counter()
    with suppress(CompileError, EvaluationError):
        compile_device_selector(expression).matches(DRIVER, DEVICE)
    assert time.perf_counter() - begun < 10  # they take at most one second


def test_deep_expressions_leave_the_recursion_limit_as_it_was() -> None:
    before = sys.getrecursionlimit()
    deep = "(" * 120 + "device.driver" + ' + "x")' * 120
    assert outcome(f"{deep}.size() > 0")[0] == "true"
    assert sys.getrecursionlimit() == before


_PARTS = st.sampled_from(
    [
        *("1", "2u", "1.5", '"a"', 'b"a"', "true", "null", "[1]", '{"a": 1}', "[]", "{}", "int"),
        *('duration("1s")', 'timestamp("2024-01-01T00:00:00Z")', "optional.of(1)", "optional.none()"),
        *('quantity("1Gi")', 'semver("1.2.3")', 'ip("10.0.0.1")', 'cidr("10.0.0.0/8")', 'url("https://h/")'),
        *("format.date()", "device", "device.driver", "device.attributes", f'device.attributes["{DRIVER}"].model'),
        *(f'device.attributes["{DRIVER}"].firmware', f'device.capacity["{DRIVER}"].memory'),
    ]
)
_CALLS = st.sampled_from(
    [
        *("dyn({0}) == dyn({1})", "dyn({0}) + dyn({1})", "dyn({0}) < dyn({1})", "dyn({0}) in [dyn({1})]"),
        *("[dyn({0}), dyn({1})].sort()", "[dyn({0}), dyn({1})].map(x, x + x)", "dyn({0}).includes(dyn({1}))"),
        *('"%s%d".format([dyn({0}), dyn({1})])', "dyn({0}).indexOf(dyn({1}))", "string(dyn({0}))", "int(dyn({0}))"),
        *("dyn({0})[dyn({1})]", "dyn({0}).?x.orValue(dyn({1}))", "{{dyn({0}): dyn({1})}}", "type(dyn({0}))"),
        *("dyn({0}).exists(x, x == dyn({1}))", "dyn({0}).all(k, v, k == v)", "optional.of(dyn({0})).optMap(x, x)"),
        *("cel.bind(x, dyn({0}), [x, dyn({1})])", "[dyn({0}), dyn({1})].distinct()", "dyn({0}).size()"),
        *("[dyn({0})].sum()", "[dyn({0}), dyn({1})].min()", "dyn({0}).compareTo(dyn({1}))", "-dyn({0})"),
        *("dyn({0}) ? dyn({0}) : dyn({1})", "dyn({0}) || dyn({1})", "has(dyn({0}).x)", "dyn({0}).matches(dyn({1}))"),
    ]
)


@settings(max_examples=200, deadline=None)
@given(_CALLS, _CALLS, _PARTS, _PARTS, _PARTS)
def test_values_of_any_types_meet_without_an_internal_error(
    outer: str, inner: str, one: str, other: str, third: str
) -> None:
    found, cost = outcome(outer.format(inner.format(one, other), third))
    known = ("hash of unhashable type", "interface conversion")  # those are the original's
    assert "internal error" not in found or any(text in found for text in known)
    assert cost >= 0


MANY = 'lists.range(100000).exists(i, "{text}".matches("{pattern}" + string(i)))'


@pytest.mark.parametrize(
    "expression",
    [
        MANY.format(text="abc", pattern="\\\\pL{60}"),  # slow to compile
        MANY.format(text="abc", pattern="[\\\\pL\\\\pN]{900}"),  # too large, which takes long to find out
        MANY.format(text="x" * 9_000, pattern="x\\\\w{1000}"),  # slow to match
        f"lists.range(4000).exists(i, \"{'x' * 9_000}\".matches('x[^y]{{900}}y'))",
        f"lists.range(4000).exists(i, \"{'x' * 9_000}\".find('x[^y]{{900}}y') != '')",
        f'lists.range(4000).exists(i, isIP("{"x" * 9_000}"))',
    ],
    ids=["compile", "too large", "match", "matches", "find", "isIP"],
)
def test_regular_expressions_end_soon(expression: str) -> None:
    begun = time.perf_counter()
    assert outcome(expression)[0] == EXCEEDED
    assert time.perf_counter() - begun < 10  # they take at most one second


def test_the_patterns_of_an_expression_are_bounded_together() -> None:
    patterns = " || ".join(
        f"device.driver.{function}('\\\\pL{{90}}{i}') != x" for i in range(60) for function in ["find"]
    )
    found, _cost = outcome(f"cel.bind(x, '', {patterns})")
    assert found.startswith("refused: the regular expressions are too large together")
