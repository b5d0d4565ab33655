from plugins_builtin.volumes.first_match import FirstMatch
from trio_sched.plugin_api import NodeSelector
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import node, term
from trio_sched.testing.plugin_harness import make_table

NODES = NodeColumns(
    make_table(
        [
            node("a", labels={"zone": "east", "cores": "4"}),
            node("b", labels={"zone": "west", "cores": "8"}),
            node("c", labels={"cores": "16"}),
        ]
    )
)


def on(*expressions: str) -> NodeSelector:
    return NodeSelector(node_selector_terms=tuple(term(expression) for expression in expressions))


def indexes(*affinities: NodeSelector | None) -> dict[str, list[int]]:
    """Node → indexes of the affinities that it matches."""
    found = FirstMatch(affinities, NODES)
    matched = {name: list(found.all_at(position)) for position, name in enumerate(NODES.names)}
    assert found.first.tolist() == [next(iter(matched[name]), found.no_match) for name in NODES.names]
    return matched


def test_affinities_to_one_value_to_several_and_to_all_nodes_are_matched() -> None:
    assert indexes(on("zone In west"), on("zone In east west"), None, on("zone In east")) == {
        "a": [1, 2, 3],
        "b": [0, 1, 2],
        "c": [2],
    }


def test_indexes_are_in_order_whatever_form_the_affinities_have() -> None:
    assert indexes(on("zone In east"), None) == {"a": [0, 1], "b": [1], "c": [1]}
    assert indexes(None, on("zone In east")) == {"a": [0, 1], "b": [0], "c": [0]}
    assert indexes(on("cores Gt 5"), on("zone In west", "zone In east"), on("cores In 16")) == {
        "a": [1],
        "b": [0, 1],
        "c": [0, 2],
    }


def test_affinities_that_match_no_node_or_do_not_parse_are_left_out() -> None:
    assert indexes(on("zone In north"), on("zone In"), on("zone Near west"), NodeSelector()) == {
        "a": [],
        "b": [],
        "c": [],
    }
    assert indexes() == {"a": [], "b": [], "c": []}


def test_a_value_that_is_named_twice_counts_once() -> None:
    assert indexes(on("zone In east east"))["a"] == [0]
