from trio_sched.engine.nominator import Nominator
from trio_sched.plugin_api import Pod
from trio_sched.testing import pod

A = pod("a", nominated_node_name="n1")
B = pod("b")


def nominator(*known: Pod) -> Nominator:
    return Nominator({each.key: each for each in known}.get)


def names(of: Nominator) -> dict[str, list[str]]:
    return {node: [each.name for each in pods.values()] for node, pods in of.nodes.items()}


def test_a_pod_is_nominated_to_the_given_node_or_that_of_its_status() -> None:
    promised = nominator(A, B)
    assert not promised
    promised.add(A, None)
    promised.add(B, "n1")
    assert names(promised) == {"n1": ["a", "b"]}
    assert promised.node_of(B.uid) == "n1"
    assert promised


def test_a_new_nomination_replaces_the_old_one() -> None:
    promised = nominator(A, B)
    promised.add(A, "n1")
    promised.add(B, "n1")
    promised.add(A, "n2")
    assert names(promised) == {"n1": ["b"], "n2": ["a"]}
    promised.add(A, None)
    assert names(promised) == {"n1": ["b", "a"]}


def test_a_pod_without_nomination_loses_its_earlier_one() -> None:
    promised = nominator(B)
    promised.add(B, "n1")
    promised.add(B, None)
    assert names(promised) == {}
    assert promised.node_of(B.uid) is None


def test_deleted_or_bound_pods_are_not_nominated() -> None:
    promised = nominator(pod("a", node_name="n3"))
    promised.add(A, None)
    promised.add(B, "n1")
    assert names(promised) == {}


def test_a_pod_may_be_nominated_to_the_empty_name() -> None:
    promised = nominator(B)
    promised.add(B, "")
    assert names(promised) == {"": ["b"]}


def test_an_update_keeps_a_nomination_that_is_not_in_the_status() -> None:
    promised = nominator(A, B)
    promised.add(B, "n1")
    promised.update(B, pod("b", labels={"new": "yes"}))
    assert names(promised) == {"n1": ["b"]}
    promised.update(B, pod("b", nominated_node_name="n2"))
    assert names(promised) == {"n2": ["b"]}
    promised.update(pod("b", nominated_node_name="n2"), B)
    assert names(promised) == {}
    promised.update(None, A)
    assert names(promised) == {"n1": ["a"]}


def test_deleting_twice_does_nothing() -> None:
    promised = nominator(A)
    promised.add(A, None)
    promised.delete(A.uid)
    promised.delete(A.uid)
    assert names(promised) == {}
