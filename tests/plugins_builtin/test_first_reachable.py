from plugins_builtin._first_reachable import FirstReachable
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


def ranks(*affinities: NodeSelector | None) -> dict[str, list[int]]:
    """Node → ranks of everything it reaches; the first must be its best."""
    found = FirstReachable(affinities, NODES)
    reached = {name: list(found.ranks_at(position)) for position, name in enumerate(NODES.names)}
    assert found.best.tolist() == [next(iter(reached[name]), found.none) for name in NODES.names]
    return reached


def test_things_are_found_by_one_label_by_several_and_without_any() -> None:
    assert ranks(on("zone In west"), on("zone In east west"), None, on("zone In east")) == {
        "a": [1, 2, 3],
        "b": [0, 1, 2],
        "c": [2],
    }


def test_order_counts_whatever_the_things_are_tied_to() -> None:
    assert ranks(on("zone In east"), None) == {"a": [0, 1], "b": [1], "c": [1]}
    assert ranks(None, on("zone In east")) == {"a": [0, 1], "b": [0], "c": [0]}
    assert ranks(on("cores Gt 5"), on("zone In west", "zone In east"), on("cores In 16")) == {
        "a": [1],
        "b": [0, 1],
        "c": [0, 2],
    }


def test_unreachable_and_unreadable_things_are_left_out() -> None:
    assert ranks(on("zone In north"), on("zone In"), on("zone Near west"), NodeSelector()) == {
        "a": [],
        "b": [],
        "c": [],
    }
    assert ranks() == {"a": [], "b": [], "c": []}


def test_a_value_that_is_named_twice_counts_once() -> None:
    assert ranks(on("zone In east east"))["a"] == [0]
