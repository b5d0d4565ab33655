"""Counts of pods per node, through the public API: ``nodes.pod_counts``."""

import msgspec
import numpy as np
import pytest
from call_count import count_calls
from pod_infos import pod_info

from trio_sched.objects.pod import Pod
from trio_sched.snapshot.labels.label_selection import EVERYTHING, NOTHING, LabelMatcher, selector_of_map
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_counts import pod_index
from trio_sched.testing import make_table, node, pod


def selecting(labels: dict[str, str] | None = None, *namespaces: str, without_terminating: bool = False) -> PodSelector:
    where = frozenset(namespaces) if namespaces else None
    return PodSelector((NamespacedMatcher(where, selector_of_map(labels or {})),), without_terminating)


def selecting_not(number: str) -> PodSelector:
    return PodSelector((NamespacedMatcher(None, LabelMatcher((("number", "NotIn", frozenset({number})),))),))


def a_pod(name: str, on: str, *, namespace: str = "default", app: str = "web", is_terminating: bool = False) -> Pod:
    made = pod(name, namespace=namespace, node_name=on, labels={"app": app})
    return terminating(made) if is_terminating else made


def terminating(one: Pod) -> Pod:
    metadata = msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    return msgspec.structs.replace(one, metadata=metadata)


def add(table: NodeTable, new: Pod) -> None:
    table.add_pod(table.row_of[new.node_name], pod_info(new))


def counted(table: NodeTable, selector: PodSelector) -> list[int]:
    return NodeColumns(table).pod_counts(selector).tolist()  # type: ignore[no-any-return]


NODES = [node("a"), node("b"), node("c")]
PODS = [
    a_pod("p", "a"),
    a_pod("q", "a"),
    a_pod("r", "b", app="db"),
    a_pod("s", "b", namespace="other"),
    a_pod("t", "c", is_terminating=True),
]
WEB = selecting({"app": "web"}, "default")


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        (WEB, [2, 0, 1]),
        (selecting({"app": "web"}), [2, 1, 1]),
        (selecting({"app": "web"}, "default", "other"), [2, 1, 1]),
        (selecting({"app": "web"}, "nowhere"), [0, 0, 0]),
        (selecting({}, "other"), [0, 1, 0]),
        (selecting({"app": "web"}, "default", without_terminating=True), [2, 0, 0]),
        (selecting(), [2, 2, 1]),
        (PodSelector((NamespacedMatcher(None, NOTHING),)), [0, 0, 0]),
        (PodSelector((NamespacedMatcher(frozenset(), EVERYTHING),)), [0, 0, 0]),
    ],
)
def test_pods_are_counted_by_namespace_labels_and_whether_they_are_terminating(
    selector: PodSelector, expected: list[int]
) -> None:
    assert counted(make_table(NODES, PODS), selector) == expected


def test_a_pod_must_match_every_part() -> None:
    web = NamespacedMatcher(frozenset({"default", "other"}), selector_of_map({"app": "web"}))
    here = NamespacedMatcher(frozenset({"default"}), EVERYTHING)
    both = PodSelector((web, here))
    assert both.namespaces == {"default"}
    assert counted(make_table(NODES, PODS), both) == [2, 0, 1]
    apart = PodSelector((NamespacedMatcher(frozenset({"other"}), EVERYTHING), here))
    assert counted(make_table(NODES, PODS), apart) == [0, 0, 0]
    anywhere = PodSelector((NamespacedMatcher(None, EVERYTHING), here))
    assert anywhere.namespaces == {"default"}


def test_counts_follow_each_placement() -> None:
    table = make_table(NODES, PODS)
    assert counted(table, WEB) == [2, 0, 1]
    add(table, a_pod("new", "b"))
    add(table, a_pod("of-another-namespace", "b", namespace="other"))
    table.remove_pod(0, pod("p").uid)
    assert counted(table, WEB) == [1, 1, 1]
    table.remove_pod(0, pod("q").uid)
    assert counted(table, WEB) == [0, 1, 1]
    add(table, a_pod("again", "a"))
    assert counted(table, WEB) == [1, 1, 1]


def test_counts_follow_labels_of_running_pods() -> None:
    table = make_table(NODES, PODS)
    assert counted(table, WEB) == [2, 0, 1]
    former = table.pods[1][pod("r").uid]
    table.update_pod(1, former, a_pod("r", "b"))
    assert counted(table, WEB) == [2, 1, 1]
    table.update_pod(1, former, a_pod("r", "b", app="mail"))
    assert counted(table, WEB) == [2, 0, 1]


def test_a_pod_that_starts_terminating_is_counted_only_by_selectors_that_include_such_pods() -> None:
    table = make_table(NODES, PODS)
    staying = selecting({"app": "web"}, "default", without_terminating=True)
    assert (counted(table, staying), counted(table, WEB)) == ([2, 0, 0], [2, 0, 1])
    former = table.pods[0][pod("p").uid]
    table.update_pod(0, former, terminating(former.pod))
    assert (counted(table, staying), counted(table, WEB)) == ([1, 0, 0], [2, 0, 1])
    table.remove_pod(0, pod("p").uid)
    assert (counted(table, staying), counted(table, WEB)) == ([1, 0, 0], [1, 0, 1])


def test_counts_follow_nodes_that_get_another_row() -> None:
    table = make_table(NODES, PODS)
    assert counted(table, WEB) == [2, 0, 1]
    table.remove_node("a")
    assert table.names == ["c", "b"]
    assert counted(table, WEB) == [1, 0]
    table.remove_node("b")
    table.remove_node("c")
    assert counted(table, WEB) == []
    table.add_node(node("d"))
    assert counted(table, WEB) == [0]


def test_a_node_comes_back_with_the_pods_that_were_on_it() -> None:
    table = make_table(NODES, PODS)
    assert counted(table, WEB) == [2, 0, 1]
    gone = table.remove_node("a")
    table.add_node(node("a"), gone)
    assert dict(zip(table.names, counted(table, WEB), strict=True)) == {"a": 2, "b": 0, "c": 1}


def test_a_count_that_was_dropped_starts_over_and_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_MAX_COUNTS", 2)
    table = make_table(NODES, PODS)
    others = [selecting({"app": "db"}, "default"), selecting({"app": "db"}), selecting()]
    assert counted(table, WEB) == [2, 0, 1]
    for other in others:
        counted(table, other)
    add(table, a_pod("new", "b"))
    assert counted(table, WEB) == [2, 1, 1]
    table.remove_pod(0, pod("p").uid)
    assert counted(table, WEB) == [1, 1, 1]
    assert counted(table, others[2]) == [1, 3, 1]


def test_the_count_used_longest_ago_is_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_MAX_COUNTS", 2)
    table = make_table(NODES, PODS)
    index, other, third = table.pod_index, selecting({"app": "db"}), selecting()
    kept, dropped = index.counts(WEB), index.counts(other)
    index.counts(WEB)
    index.counts(third)
    assert index.counts(WEB) is kept
    assert index.counts(other) is not dropped


def test_nothing_is_done_any_more_for_a_count_that_was_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_index, "_MAX_COUNTS", 1)
    table = make_table(NODES, PODS)
    dropped = table.pod_index.counts(WEB)
    before = dropped.per_node.tolist()
    table.pod_index.counts(selecting())
    add(table, a_pod("new", "b"))
    add(table, pod("of-a-new-kind", labels={"app": "web", "more": "labels"}, node_name="b"))
    assert dropped.per_node.tolist() == before


def test_counts_can_be_had_of_some_of_the_nodes() -> None:
    nodes = NodeColumns(make_table(NODES, PODS))
    assert nodes.take(np.array([2, 0])).pod_counts(WEB).tolist() == [1, 2]
    assert nodes.take(slice(0, 2)).pod_counts(WEB).tolist() == [2, 0]


def test_a_selector_is_not_compared_with_one_class_of_pods_after_the_other() -> None:
    def calls(classes: int) -> int:
        pods = [pod(f"p{n}", node_name="a", labels={"number": f"{n}"}) for n in range(classes)]
        nodes = NodeColumns(make_table(NODES, pods))
        assert nodes.pod_counts(selecting()).tolist() == [classes, 0, 0]
        others = [selecting_not(f"{number}") for number in range(20)]
        return count_calls(lambda: [nodes.domain_counts(other, "zone") for other in others])

    assert calls(900) < calls(300) + 20  # the garbage collector may call something


def test_a_placement_is_compared_only_with_the_selectors_of_its_class() -> None:
    table = make_table(NODES, [])
    for number in range(100):
        counted(table, selecting_not(f"{number}"))
    new = [pod(f"p{n}", node_name="a", labels={"number": "7"}) for n in range(3)]
    add(table, new[0])
    first = count_calls(lambda: add(table, new[1]))
    counted(table, selecting({"number": "7"}))
    assert count_calls(lambda: add(table, new[2])) < first + 10
    assert counted(table, selecting_not("7")) == [0, 0, 0]
    assert counted(table, selecting_not("8")) == [3, 0, 0]


def test_a_selector_of_many_namespaces_counts_their_pods() -> None:
    names = [f"team-{number}" for number in range(40)]
    table = make_table(NODES, [a_pod("p", "a", namespace="team-3"), a_pod("q", "a", namespace="elsewhere")])
    of_teams = selecting({"app": "web"}, *names)
    assert counted(table, of_teams) == [1, 0, 0]
    add(table, a_pod("r", "b", namespace="team-39"))
    add(table, a_pod("s", "b", namespace="elsewhere"))
    assert counted(table, of_teams) == [1, 1, 0]


def test_pods_on_many_nodes_are_counted() -> None:
    many = [node(f"n{number}") for number in range(600)]
    table = make_table(many, [a_pod(f"p{number}", f"n{number}") for number in range(0, 600, 2)])
    assert counted(table, WEB) == [1, 0] * 300
    add(table, a_pod("new", "n599"))
    table.add_node(node("later"))
    add(table, a_pod("newer", "later"))
    for number in range(500):
        table.remove_node(f"n{number}")
    found = dict(zip(table.names, counted(table, WEB), strict=True))
    assert found == {"later": 1, "n599": 1} | {f"n{n}": int(n % 2 == 0) for n in range(500, 599)}
