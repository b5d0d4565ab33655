"""Affinity terms, compiled and counted: what pods on nodes want of pods to come."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.objects.pod_requests import pod_usage
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.affinity_terms import AffinityTerm, TermKind, affinity_terms
from trio_sched.snapshot.node_table import NodeTable, PlacedPod
from trio_sched.snapshot.term_index import MatchingTerms
from trio_sched.testing import make_table, node, pod

WEB = LabelSelector(match_labels={"app": "web"})
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))


def term(selector: LabelSelector | None = WEB, key: str = "zone", **more: Any) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector, topology_key=key, **more)


def wish(*required: PodAffinityTerm, preferred: dict[int, PodAffinityTerm] | None = None) -> PodAffinity:
    weighted = tuple(WeightedPodAffinityTerm(weight, one) for weight, one in (preferred or {}).items())
    return PodAffinity(required or None, weighted or None)


def wishing(name: str = "owner", *, near: Any = None, far: Any = None, **more: Any) -> Pod:
    return pod(name, affinity=Affinity(pod_affinity=near, pod_anti_affinity=far), **more)


def only(one: Pod) -> AffinityTerm:
    (found,) = affinity_terms(one).all
    return found


# --- parsing --------------------------------------------------------------------------------------------------------


def test_each_list_becomes_terms_of_its_kind() -> None:
    terms = affinity_terms(
        wishing(near=wish(term(), preferred={7: term(key="rack")}), far=wish(term(), term(), preferred={3: term()}))
    )
    assert [one.kind for one in terms.required_affinity] == [TermKind.REQUIRED_AFFINITY]
    assert [one.kind for one in terms.required_anti_affinity] == [TermKind.REQUIRED_ANTI_AFFINITY] * 2
    assert [(one.topology_key, one.weight) for one in terms.preferred_affinity] == [("rack", 7)]
    assert [(one.topology_key, one.weight) for one in terms.preferred_anti_affinity] == [("zone", 3)]
    assert len(terms.all) == 5
    assert terms.problem == ""


@pytest.mark.parametrize("affinity", [None, Affinity()])
def test_pods_without_affinity_have_no_terms(affinity: Affinity | None) -> None:
    assert affinity_terms(pod(affinity=affinity)).all == ()


@pytest.mark.parametrize(
    ("more", "matching"),
    [
        ({}, {"default"}),
        ({"namespaces": ("blue", "red")}, {"blue", "red"}),
        ({"namespaces": (), "namespace_selector": None}, {"default"}),
        ({"namespace_selector": LabelSelector(match_labels={"team": "one"})}, {"red"}),
        ({"namespaces": ("blue",), "namespace_selector": LabelSelector(match_labels={"team": "one"})}, {"blue", "red"}),
        ({"namespace_selector": LabelSelector()}, {"default", "blue", "red"}),
    ],
)
def test_a_term_means_its_own_namespace_unless_it_names_or_selects_some(more: Any, matching: set[str]) -> None:
    namespaces: dict[str, dict[str, str]] = {"default": {}, "blue": {}, "red": {"team": "one"}}
    found = only(wishing(near=wish(term(**more))))
    assert {name for name, labels in namespaces.items() if found.matches(name, {"app": "web"}, labels)} == matching
    assert not found.matches("red", {"app": "db"}, {"team": "one"})


def test_a_term_without_a_selector_means_nobody_and_with_an_empty_one_everybody() -> None:
    assert not only(wishing(near=wish(term(None)))).matches("default", {"app": "web"}, {})
    assert only(wishing(near=wish(term(LabelSelector())))).matches("default", {}, {})


def test_match_label_keys_are_not_read_because_the_api_server_has_merged_them() -> None:
    keyed = term(match_label_keys=("app",), mismatch_label_keys=("track",))
    assert only(wishing(near=wish(keyed))) == only(wishing(near=wish(term())))


def test_a_list_that_does_not_parse_is_empty_and_the_others_stay() -> None:
    terms = affinity_terms(wishing(near=wish(term(), term(BAD)), far=wish(term())))
    assert terms.required_affinity == ()
    assert len(terms.required_anti_affinity) == 1
    assert terms.problem == (
        "requiredAffinityTerms: values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    )


def test_all_lists_that_do_not_parse_are_named() -> None:
    bad = wish(term(BAD), preferred={1: term(namespace_selector=BAD)})
    problem = affinity_terms(wishing(near=bad, far=bad)).problem
    assert problem.startswith("[requiredAffinityTerms: ")
    kinds = ("requiredAntiAffinityTerms: ", "preferredAffinityTerms: ", "preferredAntiAffinityTerms: ")
    assert [problem.count(f", {kind}") for kind in kinds] == [1, 1, 1]
    assert problem.endswith("]")


def test_pods_that_want_the_same_share_their_terms_but_not_across_namespaces() -> None:
    here, there = wishing("a", near=wish(term())), wishing("b", near=wish(term()))
    assert affinity_terms(here) is affinity_terms(there)
    elsewhere = affinity_terms(wishing("c", near=wish(term()), namespace="blue"))
    assert elsewhere.all[0].namespaces == {"blue"}


# --- counting -------------------------------------------------------------------------------------------------------

NODES = [
    node("a", labels={"zone": "a"}),
    node("b", labels={"zone": "b"}),
    node("c", labels={"zone": "b"}),
    node("none"),
]
LONER = wish(term(WEB))
NAMESPACES: dict[str, dict[str, str]] = {"red": {"team": "one"}}


def labels_of(name: str) -> Mapping[str, str]:
    return NAMESPACES.get(name, {})


def about(table: NodeTable, incoming: Pod) -> MatchingTerms:
    return table.columns.terms_about(incoming, labels_of)


def keeping_away(table: NodeTable, incoming: Pod) -> dict[str, int]:
    """The pods per zone that do not want *incoming* near."""
    zones = table.columns.label_vocabulary("zone")
    found: dict[str, int] = {}
    for one in about(table, incoming).anti_affinity:
        for domain, count in enumerate(one.by_domain.counts.tolist()):
            if count:
                found[str(zones[domain])] = found.get(str(zones[domain]), 0) + count
    return found


def add(table: NodeTable, new: Pod) -> None:
    table.add_pod(table.row_of[new.node_name], PlacedPod(new, pod_usage(new)))


INCOMING = pod("incoming", labels={"app": "web"})


def test_terms_that_mean_the_pod_are_counted_per_domain() -> None:
    table = make_table(
        NODES,
        [
            wishing("1", far=LONER, node_name="a"),
            wishing("2", far=LONER, node_name="b"),
            wishing("3", far=LONER, node_name="c"),
            wishing("4", far=LONER, node_name="none"),
            wishing("5", far=LONER, node_name="a", namespace="blue"),
            wishing("6", near=LONER, node_name="a"),
        ],
    )
    assert keeping_away(table, INCOMING) == {"a": 1, "b": 2}
    assert keeping_away(table, pod("x", labels={"app": "db"})) == {}
    assert keeping_away(table, pod("x", namespace="blue", labels={"app": "web"})) == {"a": 1}
    (drawing,) = about(table, INCOMING).ranking
    assert drawing.term.kind is TermKind.REQUIRED_AFFINITY


def test_one_term_of_many_pods_is_one_term() -> None:
    table = make_table(NODES, [wishing(str(i), far=LONER, node_name="a") for i in range(9)])
    (one,) = about(table, INCOMING).anti_affinity
    assert one.by_domain.total == 9


def test_a_pod_that_says_a_thing_twice_counts_twice() -> None:
    table = make_table(NODES, [wishing("1", far=wish(term(), term()), node_name="a")])
    assert keeping_away(table, INCOMING) == {"a": 2}
    table.remove_pod(0, pod("1").uid)
    assert keeping_away(table, INCOMING) == {}


def test_terms_follow_pods_that_come_and_go() -> None:
    table = make_table(NODES, [wishing("1", far=LONER, node_name="a")])
    assert keeping_away(table, INCOMING) == {"a": 1}
    add(table, wishing("2", far=LONER, node_name="b"))
    add(table, wishing("3", far=wish(term(LabelSelector())), node_name="b"))
    assert keeping_away(table, INCOMING) == {"a": 1, "b": 2}
    table.remove_pod(0, pod("1").uid)
    assert keeping_away(table, INCOMING) == {"b": 2}
    table.remove_pod(1, pod("3").uid)
    table.remove_pod(1, pod("2").uid)
    assert about(table, INCOMING).anti_affinity == ()  # what nobody wants any more is forgotten


def test_terms_follow_nodes_that_change_zone_or_get_another_row() -> None:
    table = make_table(NODES, [wishing("1", far=LONER, node_name="a"), wishing("2", far=LONER, node_name="none")])
    assert keeping_away(table, INCOMING) == {"a": 1}
    table.update_node(node("none", labels={"zone": "n"}))
    assert keeping_away(table, INCOMING) == {"a": 1, "n": 1}
    gone = table.remove_node("a")
    assert keeping_away(table, INCOMING) == {"n": 1}
    table.add_node(node("a", labels={"zone": "elsewhere"}), gone)
    assert keeping_away(table, INCOMING) == {"n": 1, "elsewhere": 1}


def test_a_running_pod_whose_affinity_changes_takes_its_old_terms_back() -> None:
    table = make_table(NODES, [wishing("1", far=LONER, node_name="a")])
    assert keeping_away(table, INCOMING) == {"a": 1}
    placed = table.pods[0][pod("1").uid]
    table.update_pod(0, placed, pod("1", node_name="a"))
    assert keeping_away(table, INCOMING) == {}
    table.update_pod(0, placed, wishing("1", far=LONER, node_name="a"))
    assert keeping_away(table, INCOMING) == {"a": 1}


def test_a_running_pod_whose_labels_change_keeps_its_terms() -> None:
    table = make_table(NODES, [wishing("1", far=LONER, node_name="a")])
    assert keeping_away(table, INCOMING) == {"a": 1}
    placed = table.pods[0][pod("1").uid]
    table.update_pod(0, placed, wishing("1", far=LONER, node_name="a", labels={"new": "label"}))
    going = msgspec.structs.replace(placed.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    table.update_pod(0, placed, msgspec.structs.replace(placed.pod, metadata=going))
    assert keeping_away(table, INCOMING) == {"a": 1}


def test_selected_namespaces_are_known_by_their_labels_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    selecting = wish(term(namespace_selector=LabelSelector(match_labels={"team": "one"})))
    table = make_table(NODES, [wishing("1", far=selecting, node_name="a")])
    red = pod("x", namespace="red", labels={"app": "web"})
    assert keeping_away(table, red) == {"a": 1}
    assert keeping_away(table, INCOMING) == {}
    monkeypatch.setitem(NAMESPACES, "red", {})
    assert keeping_away(table, red) == {}
    monkeypatch.setitem(NAMESPACES, "red", {"team": "one", "more": "labels"})
    assert keeping_away(table, red) == {"a": 1}


def test_a_term_that_names_and_selects_namespaces_is_not_counted_twice() -> None:
    both = wish(term(namespaces=("red",), namespace_selector=LabelSelector()))
    table = make_table(NODES, [wishing("1", far=both, node_name="a")])
    assert keeping_away(table, pod("x", namespace="red", labels={"app": "web"})) == {"a": 1}
    table.remove_pod(0, pod("1").uid)
    assert keeping_away(table, pod("x", namespace="red", labels={"app": "web"})) == {}


def test_what_does_not_parse_of_a_running_pod_is_left_out() -> None:
    table = make_table(NODES, [wishing("1", near=wish(term(BAD)), far=LONER, node_name="a")])
    assert keeping_away(table, INCOMING) == {"a": 1}
    assert about(table, INCOMING).ranking == ()


def test_preferred_terms_of_different_weight_are_different_terms() -> None:
    table = make_table(
        NODES,
        [
            wishing("1", near=wish(preferred={5: term()}), node_name="a"),
            wishing("2", near=wish(preferred={9: term()}), node_name="a"),
            wishing("3", far=wish(preferred={5: term()}), node_name="a"),
        ],
    )
    ranking = about(table, INCOMING).ranking
    assert sorted((one.term.kind.value, one.term.weight) for one in ranking) == [
        ("preferredAffinityTerms", 5),
        ("preferredAffinityTerms", 9),
        ("preferredAntiAffinityTerms", 5),
    ]
