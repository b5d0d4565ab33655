"""The texts were printed by the functions of Kubernetes 1.36 for the same selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trio_sched.objects.selector import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from trio_sched.snapshot.labels.label_selection import SelectorError, compile_selector
from trio_sched.snapshot.labels.selector_problems import term_problems
from trio_sched.snapshot.node_selection import term_problem, terms_problem

ENDS = "and must start and end with an alphanumeric character (e.g."
VALUE = (
    f"a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', {ENDS} 'MyValue',  "
    "or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
KEY = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', {ENDS} 'MyName',  or 'my.name',  or "
    "'123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def term(key: str, operator: str, *values: str) -> NodeSelectorTerm:
    return NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key=key, operator=operator, values=values),))


def test_everything_that_is_wrong_with_terms_is_said_in_one_text_with_values_in_quotes() -> None:
    terms = [
        None,
        term("a", "In", "esc\x1b[31m", "x\u2028y"),
        term("cores", "Gt", "-5"),
        term("cores", "Gt", "many"),
        NodeSelectorTerm(),
    ]
    assert terms_problem(terms) == (
        rf'[[1].matchExpressions[0].values[0][a]: Invalid value: "esc\x1b[31m": {VALUE}, '
        rf'[1].matchExpressions[0].values[1][a]: Invalid value: "x\u2028y": {VALUE}, '
        f'[2].matchExpressions[0].values[0][cores]: Invalid value: "-5": {VALUE}, '
        "[3].matchExpressions[0].values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value must be an "
        "integer]"
    )


def test_a_single_problem_stands_without_brackets() -> None:
    assert terms_problem([term("a", "In", 'we"ird')]) == (
        rf'[0].matchExpressions[0].values[0][a]: Invalid value: "we\"ird": {VALUE}'
    )


def test_a_label_selector_says_everything_that_is_wrong_with_its_first_bad_requirement() -> None:
    requirement = LabelSelectorRequirement("a b", "In", ('we"ird', "ok", "x y"))
    with pytest.raises(SelectorError) as caught:
        compile_selector(LabelSelector(match_expressions=(requirement,)))
    assert str(caught.value) == (
        rf'[key: Invalid value: "a b": {KEY}, values[0][a b]: Invalid value: "we\"ird": {VALUE}, '
        f'values[2][a b]: Invalid value: "x y": {VALUE}]'
    )


def test_a_pod_with_a_hundred_thousand_bad_values_makes_no_text_of_megabytes() -> None:
    many = term("a", "In", *(f"bad {number}" for number in range(100_000)))
    assert len(terms_problem([many]) or "") < 100_000


OPERATORS = st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "", "Like"])
WORDS = st.sampled_from(["a", "", "5", "-5", "a b", "x" * 64, "example.com/a", "/a", "a/b/c", "ä", "00", "+1"])


@given(WORDS, OPERATORS, st.lists(WORDS, max_size=3), st.booleans())
def test_a_term_has_a_problem_exactly_if_it_cannot_be_evaluated(
    key: str, operator: str, values: list[str], is_field: bool
) -> None:
    requirement = (NodeSelectorRequirement(key=key, operator=operator, values=tuple(values)),)
    one = NodeSelectorTerm(match_fields=requirement) if is_field else NodeSelectorTerm(match_expressions=requirement)
    assert (term_problem(one) is not None) == bool(list(term_problems(one, "")))
