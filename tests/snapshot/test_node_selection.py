import pytest

from trio_sched.objects.selector import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from trio_sched.plugin_api import NodeColumns
from trio_sched.snapshot.node_selection import (
    match_labels,
    match_node_selector,
    match_term,
    node_selector_matches,
    term_is_empty,
    term_problem,
)
from trio_sched.testing import make_table, node, requirement, term

NODES = [
    node("a", labels={"disk": "ssd", "cores": "8"}),
    node("b", labels={"disk": "hdd", "cores": "-3"}),
    node("c", labels={"cores": "many", "disk": ""}),
    node("d"),
]


def names(selector: NodeSelector, nodes: NodeColumns) -> str:
    matched = match_node_selector(selector, nodes)
    return "".join(name for name, hit in zip(nodes.names, matched.tolist(), strict=True) if hit)


def selector(*terms: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(node_selector_terms=terms)


MATCHES = [
    (selector(term("disk In ssd hdd")), "ab"),
    (selector(term("disk In tape")), ""),
    (selector(term("disk NotIn ssd")), "bcd"),
    (selector(term("disk Exists")), "abc"),
    (selector(term("disk DoesNotExist")), "d"),
    (selector(term("cores Gt 5")), "a"),
    (selector(term("cores Lt 5")), "b"),
    (selector(term("cores Gt 007")), "a"),
    (selector(term("disk Exists", "cores Gt 5")), "a"),
    (selector(term("disk In ssd"), term("disk DoesNotExist")), "ad"),
    (selector(term(fields=["metadata.name In b"])), "b"),
    (selector(term(fields=["metadata.name NotIn b"])), "acd"),
    (selector(term(fields=["metadata.name In nowhere"])), ""),
    (selector(term("disk Exists", fields=["metadata.name In a"])), "a"),
    (selector(term("disk Exists", fields=["metadata.name In d"])), ""),
    (selector(term(fields=["spec.nodeName In x"])), ""),
    (selector(term(fields=["spec.nodeName NotIn x"])), "abcd"),
    (selector(term("absent.example.com/everywhere Gt 0")), ""),
    (selector(), ""),
    (NodeSelector(), ""),
    (selector(term()), ""),
    (selector(term(), term("disk In ssd")), "a"),
]


@pytest.mark.parametrize(("wanted", "expected"), MATCHES)
def test_nodes_match_one_of_the_terms_entirely(wanted: NodeSelector, expected: str) -> None:
    assert names(wanted, NodeColumns(make_table(NODES))) == expected


@pytest.mark.parametrize(("wanted", "expected"), MATCHES)
def test_a_single_node_matches_as_it_does_among_others(wanted: NodeSelector, expected: str) -> None:
    found = [each.name for each in NODES if node_selector_matches(wanted, each.name, each.labels)]
    assert "".join(found) == expected


BROKEN = [
    (term("disk In"), "values set can't be empty"),
    (term("disk NotIn"), "values set can't be empty"),
    (term("disk Exists ssd"), "values set must be empty for exists and does not exist"),
    (term("cores Gt"), "exactly one value is required"),
    (term("cores Lt 1 2"), "exactly one value is required"),
    (term("cores Gt many"), "the value must be an integer"),
    (term("cores Gt 9223372036854775808"), "the value must be an integer"),
    (term("cores Gt -5"), 'matchExpressions[0].values[0][cores]: Invalid value: "-5": a valid label must be'),
    (
        term("cores Like 5"),
        'matchExpressions[0].operator: Unsupported value: "Like": supported values: "In", "NotIn", "Exists"',
    ),
    (term("-bad- Exists"), 'matchExpressions[0].key: Invalid value: "-bad-": name part must consist of'),
    (term("disk In " + "x" * 64), "must be no more than 63 bytes"),
    (
        term(fields=["metadata.name Exists"]),
        'matchFields[0].operator: Unsupported value: "Exists": supported values: "In", "NotIn"',
    ),
    (term(fields=["metadata.name In a b"]), 'matchFields[0].values: Invalid value: ["a","b"]: must have one element'),
    (term("disk In ssd", fields=["metadata.name In"]), "must have one element"),
]


@pytest.mark.parametrize(("broken", "problem"), BROKEN)
def test_a_term_that_does_not_parse_matches_nothing_and_says_why(broken: NodeSelectorTerm, problem: str) -> None:
    assert problem in (term_problem(broken) or "")
    assert names(selector(broken), NodeColumns(make_table(NODES))) == ""
    assert names(selector(broken, term("disk In hdd")), NodeColumns(make_table(NODES))) == "b"
    with pytest.raises(ValueError, match=r".") as caught:
        node_selector_matches(selector(broken), "a", NODES[0].labels)
    assert problem in str(caught.value)
    assert node_selector_matches(selector(broken, term("disk In ssd")), "a", NODES[0].labels)


def test_an_operator_is_needed() -> None:
    broken = NodeSelectorTerm(match_expressions=(NodeSelectorRequirement(key="disk"),))
    supported = '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
    assert term_problem(broken) == f'matchExpressions[0].operator: Unsupported value: "": supported values: {supported}'


def test_a_term_asks_for_nothing_only_without_labels_and_fields() -> None:
    assert term_is_empty(NodeSelectorTerm(match_expressions=()))
    assert not term_is_empty(term("disk Exists"))
    assert not term_is_empty(term(fields=["metadata.name In a"]))


def test_all_labels_must_be_there() -> None:
    nodes = NodeColumns(make_table(NODES))
    assert match_labels({"disk": "ssd", "cores": "8"}, nodes).tolist() == [True, False, False, False]
    assert match_labels({"disk": ""}, nodes).tolist() == [False, False, True, False]
    assert match_labels({}, nodes).all()


def test_columns_of_some_nodes_give_the_same_answers() -> None:
    nodes = NodeColumns(make_table(NODES))
    whole = match_term(term("cores Gt 5"), nodes).tolist()
    assert match_term(term("cores Gt 5"), nodes.take(slice(0, 2))).tolist() == whole[:2]


def test_requirements_are_read_from_words() -> None:
    assert requirement("disk In ssd") == NodeSelectorRequirement(key="disk", operator="In", values=("ssd",))
