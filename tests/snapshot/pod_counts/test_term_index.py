"""The terms of pods on nodes that match an incoming pod, through the public API: ``nodes.terms_about``."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from pod_infos import pod_info

from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.labels.affinity_terms import TermKind
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.pod_counts.term_index import MatchingTerms
from trio_sched.testing import make_table, node, pod

WEB = LabelSelector(match_labels={"app": "web"})
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))


def term(selector: LabelSelector | None = WEB, key: str = "zone", **more: Any) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector, topology_key=key, **more)


def terms_of(*required: PodAffinityTerm, preferred: dict[int, PodAffinityTerm] | None = None) -> PodAffinity:
    weighted = tuple(WeightedPodAffinityTerm(weight, one) for weight, one in (preferred or {}).items())
    return PodAffinity(required or None, weighted or None)


def with_affinity(name: str = "owner", *, affinity: Any = None, anti_affinity: Any = None, **more: Any) -> Pod:
    return pod(name, affinity=Affinity(pod_affinity=affinity, pod_anti_affinity=anti_affinity), **more)


NODES = [
    node("a", labels={"zone": "a"}),
    node("b", labels={"zone": "b"}),
    node("c", labels={"zone": "b"}),
    node("none"),
]
WEB_TERM = terms_of(term(WEB))
NAMESPACES: dict[str, dict[str, str]] = {"red": {"team": "one"}}


def labels_of(name: str) -> Mapping[str, str]:
    return NAMESPACES.get(name, {})


def terms_about(table: NodeTable, incoming: Pod) -> MatchingTerms:
    return NodeColumns(table).terms_about(incoming, labels_of)


def anti_affinity_per_zone(table: NodeTable, incoming: Pod) -> dict[str, int]:
    """The pods per zone with required anti-affinity that matches *incoming*."""
    zones = NodeColumns(table).label_vocabulary("zone")
    found: dict[str, int] = {}
    for one in terms_about(table, incoming).anti_affinity:
        for domain, count in enumerate(one.by_domain.counts.tolist()):
            if count:
                found[str(zones[domain])] = found.get(str(zones[domain]), 0) + count
    return found


def add(table: NodeTable, new: Pod) -> None:
    table.add_pod(table.row_of[new.node_name], pod_info(new))


INCOMING = pod("incoming", labels={"app": "web"})


def test_terms_that_match_the_pod_are_counted_per_domain() -> None:
    table = make_table(
        NODES,
        [
            with_affinity("1", anti_affinity=WEB_TERM, node_name="a"),
            with_affinity("2", anti_affinity=WEB_TERM, node_name="b"),
            with_affinity("3", anti_affinity=WEB_TERM, node_name="c"),
            with_affinity("4", anti_affinity=WEB_TERM, node_name="none"),
            with_affinity("5", anti_affinity=WEB_TERM, node_name="a", namespace="blue"),
            with_affinity("6", affinity=WEB_TERM, node_name="a"),
        ],
    )
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1, "b": 2}
    assert anti_affinity_per_zone(table, pod("x", labels={"app": "db"})) == {}
    assert anti_affinity_per_zone(table, pod("x", namespace="blue", labels={"app": "web"})) == {"a": 1}
    (required,) = terms_about(table, INCOMING).ranking
    assert required.term.kind is TermKind.REQUIRED_AFFINITY


def test_one_term_of_many_pods_is_one_term() -> None:
    table = make_table(NODES, [with_affinity(str(i), anti_affinity=WEB_TERM, node_name="a") for i in range(9)])
    (one,) = terms_about(table, INCOMING).anti_affinity
    assert one.by_domain.total == 9


def test_a_pod_with_the_same_term_twice_counts_twice() -> None:
    table = make_table(NODES, [with_affinity("1", anti_affinity=terms_of(term(), term()), node_name="a")])
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 2}
    table.remove_pod(0, pod("1").uid)
    assert anti_affinity_per_zone(table, INCOMING) == {}


def test_terms_follow_pods_that_come_and_go() -> None:
    table = make_table(NODES, [with_affinity("1", anti_affinity=WEB_TERM, node_name="a")])
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}
    add(table, with_affinity("2", anti_affinity=WEB_TERM, node_name="b"))
    add(table, with_affinity("3", anti_affinity=terms_of(term(LabelSelector())), node_name="b"))
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1, "b": 2}
    table.remove_pod(0, pod("1").uid)
    assert anti_affinity_per_zone(table, INCOMING) == {"b": 2}
    table.remove_pod(1, pod("3").uid)
    table.remove_pod(1, pod("2").uid)
    assert terms_about(table, INCOMING).anti_affinity == ()


def test_terms_follow_nodes_that_change_zone_or_get_another_row() -> None:
    table = make_table(
        NODES,
        [
            with_affinity("1", anti_affinity=WEB_TERM, node_name="a"),
            with_affinity("2", anti_affinity=WEB_TERM, node_name="none"),
        ],
    )
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}
    table.update_node(node("none", labels={"zone": "n"}))
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1, "n": 1}
    gone = table.remove_node("a")
    assert anti_affinity_per_zone(table, INCOMING) == {"n": 1}
    table.add_node(node("a", labels={"zone": "elsewhere"}), gone)
    assert anti_affinity_per_zone(table, INCOMING) == {"n": 1, "elsewhere": 1}


def test_the_terms_of_a_running_pod_follow_its_affinity() -> None:
    table = make_table(NODES, [with_affinity("1", anti_affinity=WEB_TERM, node_name="a")])
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}
    former = table.pods[0][pod("1").uid]
    table.update_pod(0, former, pod("1", node_name="a"))
    assert anti_affinity_per_zone(table, INCOMING) == {}
    table.update_pod(0, former, with_affinity("1", anti_affinity=WEB_TERM, node_name="a"))
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}


def test_a_running_pod_whose_labels_change_keeps_its_terms() -> None:
    table = make_table(NODES, [with_affinity("1", anti_affinity=WEB_TERM, node_name="a")])
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}
    former = table.pods[0][pod("1").uid]
    table.update_pod(0, former, with_affinity("1", anti_affinity=WEB_TERM, node_name="a", labels={"new": "label"}))
    going = msgspec.structs.replace(former.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    table.update_pod(0, former, msgspec.structs.replace(former.pod, metadata=going))
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}


def test_namespaces_are_selected_by_their_current_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    selecting = terms_of(term(namespace_selector=LabelSelector(match_labels={"team": "one"})))
    table = make_table(NODES, [with_affinity("1", anti_affinity=selecting, node_name="a")])
    red = pod("x", namespace="red", labels={"app": "web"})
    assert anti_affinity_per_zone(table, red) == {"a": 1}
    assert anti_affinity_per_zone(table, INCOMING) == {}
    monkeypatch.setitem(NAMESPACES, "red", {})
    assert anti_affinity_per_zone(table, red) == {}
    monkeypatch.setitem(NAMESPACES, "red", {"team": "one", "more": "labels"})
    assert anti_affinity_per_zone(table, red) == {"a": 1}


def test_a_term_that_names_and_selects_namespaces_is_not_counted_twice() -> None:
    both = terms_of(term(namespaces=("red",), namespace_selector=LabelSelector()))
    table = make_table(NODES, [with_affinity("1", anti_affinity=both, node_name="a")])
    assert anti_affinity_per_zone(table, pod("x", namespace="red", labels={"app": "web"})) == {"a": 1}
    table.remove_pod(0, pod("1").uid)
    assert anti_affinity_per_zone(table, pod("x", namespace="red", labels={"app": "web"})) == {}


def test_what_does_not_parse_of_a_running_pod_is_left_out() -> None:
    table = make_table(NODES, [with_affinity("1", affinity=terms_of(term(BAD)), anti_affinity=WEB_TERM, node_name="a")])
    assert anti_affinity_per_zone(table, INCOMING) == {"a": 1}
    assert terms_about(table, INCOMING).ranking == ()


def test_preferred_terms_of_different_weight_are_different_terms() -> None:
    table = make_table(
        NODES,
        [
            with_affinity("1", affinity=terms_of(preferred={5: term()}), node_name="a"),
            with_affinity("2", affinity=terms_of(preferred={9: term()}), node_name="a"),
            with_affinity("3", anti_affinity=terms_of(preferred={5: term()}), node_name="a"),
        ],
    )
    ranking = terms_about(table, INCOMING).ranking
    assert sorted((one.term.kind.value, one.term.weight) for one in ranking) == [
        ("preferredAffinityTerms", 5),
        ("preferredAffinityTerms", 9),
        ("preferredAntiAffinityTerms", 5),
    ]
