import pytest

from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.labels.label_selection import (
    EVERYTHING,
    NOTHING,
    SelectorError,
    compile_selector,
    selector_of_map,
)


def expression(key: str, operator: str, *values: str) -> LabelSelector:
    return LabelSelector(match_expressions=(LabelSelectorRequirement(key, operator, values),))


WEB = LabelSelector(match_labels={"app": "web"})


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        (WEB, {"app": "web", "x": "y"}, True),
        (WEB, {"app": "db"}, False),
        (WEB, {}, False),
        (expression("app", "In", "web", "db"), {"app": "db"}, True),
        (expression("app", "In", "web", "db"), {"app": "mail"}, False),
        (expression("app", "In", "web"), {}, False),
        (expression("app", "NotIn", "web"), {"app": "web"}, False),
        (expression("app", "NotIn", "web"), {"app": "db"}, True),
        (expression("app", "NotIn", "web"), {}, True),
        (expression("app", "Exists"), {"app": ""}, True),
        (expression("app", "Exists"), {}, False),
        (expression("app", "DoesNotExist"), {}, True),
        (expression("app", "DoesNotExist"), {"app": ""}, False),
        (expression("app", "In", ""), {"app": ""}, True),
    ],
)
def test_each_operator_matches_as_in_kubernetes(
    selector: LabelSelector, labels: dict[str, str], expected: bool
) -> None:
    assert compile_selector(selector).matches(labels) is expected


def test_labels_and_expressions_must_all_hold() -> None:
    both = compile_selector(
        LabelSelector(
            match_labels={"app": "web"}, match_expressions=(LabelSelectorRequirement("track", "NotIn", ("canary",)),)
        )
    )
    assert both.matches({"app": "web", "track": "stable"})
    assert not both.matches({"app": "web", "track": "canary"})
    assert not both.matches({"app": "db"})


@pytest.mark.parametrize("labels", [{}, {"app": "web"}])
def test_a_missing_selector_matches_nothing_and_an_empty_one_everything(labels: dict[str, str]) -> None:
    assert not compile_selector(None).matches(labels)
    assert compile_selector(LabelSelector()).matches(labels)


def test_only_everything_is_everything() -> None:
    assert (EVERYTHING.is_everything, NOTHING.is_everything) == (True, False)
    assert compile_selector(LabelSelector(match_labels={}, match_expressions=())).is_everything
    assert not compile_selector(WEB).is_everything


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (expression("app", "In"), r"for 'in', 'notin' operators, values set can't be empty"),
        (expression("app", "NotIn"), r"for 'in', 'notin' operators, values set can't be empty"),
        (expression("app", "Exists", "x"), r"values set must be empty for exists and does not exist"),
        (expression("app", "DoesNotExist", "x"), r"values set must be empty for exists and does not exist"),
        (expression("app", "Gt", "3"), r'^"Gt" is not a valid label selector operator$'),
        (expression("a b", "Exists"), r'^key: Invalid value: "a b"'),
        (
            LabelSelector(match_labels={"app": "no spaces"}),
            r'^values\[0\]\[app\]: Invalid value: "no spaces": a valid',
        ),
    ],
)
def test_a_selector_that_does_not_parse_says_why(selector: LabelSelector, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        compile_selector(selector)


def test_a_selector_that_does_not_parse_goes_on_not_to() -> None:
    for _ in range(2):
        with pytest.raises(SelectorError):
            compile_selector(expression("app", "In"))


def test_selectors_that_say_the_same_in_other_words_are_equal() -> None:
    twice = LabelSelector({"app": "web"}, (LabelSelectorRequirement("app", "In", ("web",)),))
    assert compile_selector(twice) == compile_selector(WEB)
    one = compile_selector(LabelSelector({"a": "1", "b": "2"}))
    other = compile_selector(LabelSelector({"b": "2", "a": "1"}))
    assert one == other
    assert hash(one) == hash(other)
    assert one != compile_selector(WEB)


def test_a_map_selects_what_carries_all_its_labels() -> None:
    matcher = selector_of_map({"app": "web", "track": "x"})
    assert matcher.matches({"app": "web", "track": "x", "more": "1"})
    assert not matcher.matches({"app": "web"})
    assert selector_of_map({}).is_everything


def test_labels_can_be_demanded_on_top() -> None:
    canary = compile_selector(WEB).and_equal({"track": "canary"})
    assert canary.matches({"app": "web", "track": "canary"})
    assert not canary.matches({"app": "web"})
    assert EVERYTHING.and_equal({"app": "web"}) == compile_selector(WEB)
    assert compile_selector(WEB).and_equal({}) == compile_selector(WEB)


def test_what_matches_nothing_matches_nothing_whatever_is_added() -> None:
    assert NOTHING.and_equal({"app": "web"}) == NOTHING
    assert NOTHING.both(EVERYTHING) == EVERYTHING.both(NOTHING) == NOTHING


def test_both_selectors_match_only_what_each_matches() -> None:
    web, canary = compile_selector(WEB), selector_of_map({"track": "canary"})
    together = web.both(canary)
    assert together == canary.both(web)
    assert together.matches({"app": "web", "track": "canary"})
    assert not together.matches({"app": "web"})
    assert web.both(EVERYTHING) == web
    assert not web.both(selector_of_map({"app": "db"})).matches({"app": "db"})
