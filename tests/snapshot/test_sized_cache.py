"""Caches that one tenant's selectors must not fill with what is gone."""

import pytest

from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.snapshot import sized_cache
from trio_sched.snapshot.labels import affinity_terms, label_selection
from trio_sched.snapshot.labels.label_selection import LabelMatcher, compile_selector
from trio_sched.snapshot.labels.pod_selector import NamespacedMatcher, PodSelector
from trio_sched.snapshot.node_table import NodeTable
from trio_sched.snapshot.sized_cache import SizedCache
from trio_sched.testing import node, pod


def large_selector(number: int) -> LabelSelector:
    values = tuple(f"{number}-{i}" for i in range(60))
    return LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In", values),))


def pod_with_terms(number: int) -> Pod:
    term = PodAffinityTerm(label_selector=large_selector(number), topology_key="zone")
    terms = PodAffinity(required_during_scheduling_ignored_during_execution=(term,))
    return pod(f"p-{number}", affinity=Affinity(pod_anti_affinity=terms))


def test_all_is_dropped_when_it_is_too_many_or_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 10)
    cache: SizedCache[str, int] = SizedCache()
    assert cache.keep("a", 1, texts=1, max_entries=2) == 1
    cache.keep("b", 2, texts=9, max_entries=2)
    assert (cache.get("a"), cache.get("b")) == (1, 2)
    cache.keep("c", 3, texts=1, max_entries=2)
    assert (cache.get("a"), cache.get("b"), cache.get("c")) == (None, None, 3)
    cache.keep("d", 4, texts=10, max_entries=2)
    assert (cache.get("c"), cache.get("d")) == (None, 4)
    cache.keep("e", 5, texts=1000, max_entries=2)
    assert (cache.get("d"), cache.get("e")) == (None, 5)  # the largest one can still be used again and again


def test_compiled_selectors_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 200)
    for number in range(50):
        compile_selector(large_selector(number))
    assert len(label_selection._compiled) <= 3


def test_parsed_terms_are_bounded_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 200)
    for number in range(50):
        affinity_terms.affinity_terms(pod_with_terms(number))
    assert len(affinity_terms._parsed) <= 3


def test_counts_are_bounded_by_the_size_of_their_selectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 200)
    table = NodeTable()
    for number in range(50):
        matcher = NamespacedMatcher(None, compile_selector(large_selector(number)))
        table.pod_index.counts(PodSelector((matcher,)))
    assert len(table.pod_index._counters) <= 3


def test_a_selector_that_is_too_large_alone_is_counted_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 5)
    table = NodeTable()
    selector = PodSelector((NamespacedMatcher(None, compile_selector(large_selector(1))),))
    assert table.pod_index.counts(selector) is table.pod_index.counts(selector)


def test_terms_that_match_are_bounded_by_the_labels_of_the_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sized_cache, "MAX_TEXTS", 200)
    table = NodeTable()
    table.add_node(node("n"))
    table.term_index.matching(pod("first"), lambda _name: {})
    table.term_index.add(0, pod_with_terms(1))
    for number in range(50):
        labelled = pod(f"p-{number}", labels={f"{number}-{i}": "x" for i in range(60)})
        table.term_index.matching(labelled, lambda _name: {})
    assert len(table.term_index._matches) <= 3


def test_the_texts_of_a_matcher_are_its_keys_and_values() -> None:
    assert LabelMatcher().texts == 0
    assert compile_selector(large_selector(1)).texts == 61
