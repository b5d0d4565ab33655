"""Which pods the required anti-affinities of others are about."""

from trio_sched.engine.sharding.repelling_terms import RepellingTerms
from trio_sched.objects.pod import Pod
from trio_sched.testing import pod, pod_anti_affinity, pod_term


def repelling(name: str, selector: str = "app=b", *, namespace: str = "default", all_namespaces: bool = False) -> Pod:
    term = pod_term(selector, namespace_selector="" if all_namespaces else None)
    return pod(name, namespace=namespace, affinity=pod_anti_affinity(term))


def test_a_term_is_known_as_long_as_a_pod_has_it() -> None:
    terms = RepellingTerms()
    one, other, b = repelling("one"), repelling("other"), pod("b", labels={"app": "b"})
    assert not terms.selects(b)
    assert terms.add(one, 7)
    assert not terms.add(other, 8)
    assert list(terms.since.values()) == [7]
    assert terms.selects(b)
    assert not terms.remove(one)
    assert terms.selects(b)
    assert terms.remove(other)
    assert not terms.selects(b)
    assert terms.since == {}


def test_a_term_is_about_pods_of_its_namespace_unless_it_selects_namespaces() -> None:
    terms = RepellingTerms()
    elsewhere = pod("b", namespace="elsewhere", labels={"app": "b"})
    terms.add(repelling("one"), 1)
    assert not terms.selects(elsewhere)
    assert not terms.selects(pod("c", labels={"app": "c"}))
    terms.add(repelling("two", all_namespaces=True), 2)
    assert terms.selects(elsewhere)


def test_a_pod_that_comes_again_counts_once() -> None:
    terms = RepellingTerms()
    one = repelling("one")
    assert terms.add(one, 1)
    assert not terms.add(one, 2)
    assert terms.remove(one)
    assert not terms.remove(one)


def test_what_was_agreed_on_is_forgotten_with_the_last_pod() -> None:
    terms = RepellingTerms()
    one = repelling("one")
    terms.add(one, 3)
    assert not terms.are_agreed(one)
    assert terms.are_agreed(pod("b", labels={"app": "b"}))
    ((term, since),) = terms.open().items()
    assert not terms.agree([(term, since - 1)])  # the term was gone since, and came again
    assert terms.agree([(term, since)])
    assert terms.are_agreed(one)
    assert terms.open() == {}
    terms.remove(one)
    terms.add(one, 9)
    assert not terms.are_agreed(one)
