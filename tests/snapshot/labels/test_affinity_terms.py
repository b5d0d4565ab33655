"""Affinity terms, compiled."""

from typing import Any

import pytest

from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot.labels.affinity_terms import AffinityTerm, TermKind, affinity_terms
from trio_sched.testing import pod

WEB = LabelSelector(match_labels={"app": "web"})
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))


def term(selector: LabelSelector | None = WEB, key: str = "zone", **more: Any) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector, topology_key=key, **more)


def terms_of(*required: PodAffinityTerm, preferred: dict[int, PodAffinityTerm] | None = None) -> PodAffinity:
    weighted = tuple(WeightedPodAffinityTerm(weight, one) for weight, one in (preferred or {}).items())
    return PodAffinity(required or None, weighted or None)


def with_affinity(name: str = "owner", *, affinity: Any = None, anti_affinity: Any = None, **more: Any) -> Pod:
    return pod(name, affinity=Affinity(pod_affinity=affinity, pod_anti_affinity=anti_affinity), **more)


def only(one: Pod) -> AffinityTerm:
    (found,) = affinity_terms(one).all
    return found


def test_each_list_becomes_terms_of_its_kind() -> None:
    terms = affinity_terms(
        with_affinity(
            affinity=terms_of(term(), preferred={7: term(key="rack")}),
            anti_affinity=terms_of(term(), term(), preferred={3: term()}),
        )
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
def test_a_term_matches_in_its_own_namespace_unless_it_names_or_selects_some(more: Any, matching: set[str]) -> None:
    namespaces: dict[str, dict[str, str]] = {"default": {}, "blue": {}, "red": {"team": "one"}}
    found = only(with_affinity(affinity=terms_of(term(**more))))
    assert {name for name, labels in namespaces.items() if found.matches(name, {"app": "web"}, labels)} == matching
    assert not found.matches("red", {"app": "db"}, {"team": "one"})


def test_a_term_without_a_selector_matches_no_pod_and_with_an_empty_one_every_pod() -> None:
    assert not only(with_affinity(affinity=terms_of(term(None)))).matches("default", {"app": "web"}, {})
    assert only(with_affinity(affinity=terms_of(term(LabelSelector())))).matches("default", {}, {})


def test_match_label_keys_are_not_read_because_the_api_server_has_merged_them() -> None:
    keyed = term(match_label_keys=("app",), mismatch_label_keys=("track",))
    assert only(with_affinity(affinity=terms_of(keyed))) == only(with_affinity(affinity=terms_of(term())))


def test_a_list_that_does_not_parse_is_empty_and_the_others_stay() -> None:
    terms = affinity_terms(with_affinity(affinity=terms_of(term(), term(BAD)), anti_affinity=terms_of(term())))
    assert terms.required_affinity == ()
    assert len(terms.required_anti_affinity) == 1
    assert terms.problem == (
        "requiredAffinityTerms: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )


def test_all_lists_that_do_not_parse_are_named() -> None:
    bad = terms_of(term(BAD), preferred={1: term(namespace_selector=BAD)})
    problem = affinity_terms(with_affinity(affinity=bad, anti_affinity=bad)).problem
    assert problem.startswith("[requiredAffinityTerms: ")
    kinds = ("requiredAntiAffinityTerms: ", "preferredAffinityTerms: ", "preferredAntiAffinityTerms: ")
    assert [problem.count(f", {kind}") for kind in kinds] == [1, 1, 1]
    assert problem.endswith("]")


def test_pods_with_equal_affinity_share_their_terms_but_not_across_namespaces() -> None:
    here, there = with_affinity("a", affinity=terms_of(term())), with_affinity("b", affinity=terms_of(term()))
    assert affinity_terms(here) is affinity_terms(there)
    elsewhere = affinity_terms(with_affinity("c", affinity=terms_of(term()), namespace="blue"))
    assert elsewhere.all[0].namespaces == {"blue"}
