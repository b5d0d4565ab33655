from trio_sched.engine.queue.nominator import Nominator
from trio_sched.plugin_api import Pod
from trio_sched.testing import pod

A = pod("a", nominated_node_name="n1")
B = pod("b")


def nominator(*known: Pod) -> Nominator:
    return Nominator({each.key: each for each in known}.get)


def names(of: Nominator) -> dict[str, list[str]]:
    return {node: [each.name for each in pods.values()] for node, pods in of.nodes.items()}


def test_a_pod_is_nominated_to_the_given_node_or_that_of_its_status() -> None:
    nominated = nominator(A, B)
    assert not nominated
    nominated.add(A, None)
    nominated.add(B, "n1")
    assert names(nominated) == {"n1": ["a", "b"]}
    assert nominated.node_of(B.uid) == "n1"
    assert nominated


def test_a_new_nomination_replaces_the_old_one() -> None:
    nominated = nominator(A, B)
    nominated.add(A, "n1")
    nominated.add(B, "n1")
    nominated.add(A, "n2")
    assert names(nominated) == {"n1": ["b"], "n2": ["a"]}
    nominated.add(A, None)
    assert names(nominated) == {"n1": ["b", "a"]}


def test_a_pod_without_nomination_loses_its_earlier_one() -> None:
    nominated = nominator(B)
    nominated.add(B, "n1")
    nominated.add(B, None)
    assert names(nominated) == {}
    assert nominated.node_of(B.uid) is None


def test_deleted_or_bound_pods_are_not_nominated() -> None:
    nominated = nominator(pod("a", node_name="n3"))
    nominated.add(A, None)
    nominated.add(B, "n1")
    assert names(nominated) == {}


def test_a_pod_that_another_process_decides_on_is_nominated_without_being_known() -> None:
    nominated = nominator()
    nominated.add_of_other_process(A, "n2")
    nominated.add_of_other_process(A, "n1")
    assert names(nominated) == {"n1": ["a"]}
    assert nominated.take_changed() == {"n1", "n2"}


def test_a_pod_may_be_nominated_to_the_empty_name() -> None:
    nominated = nominator(B)
    nominated.add(B, "")
    assert names(nominated) == {"": ["b"]}


def test_an_update_keeps_a_nomination_that_is_not_in_the_status() -> None:
    nominated = nominator(A, B)
    nominated.add(B, "n1")
    nominated.update(B, pod("b", labels={"new": "yes"}))
    assert names(nominated) == {"n1": ["b"]}
    nominated.update(B, pod("b", nominated_node_name="n2"))
    assert names(nominated) == {"n2": ["b"]}
    nominated.update(pod("b", nominated_node_name="n2"), B)
    assert names(nominated) == {}
    nominated.update(None, A)
    assert names(nominated) == {"n1": ["a"]}


def test_deleting_twice_does_nothing() -> None:
    nominated = nominator(A)
    nominated.add(A, None)
    nominated.delete(A.uid)
    nominated.delete(A.uid)
    assert names(nominated) == {}


def test_what_the_nominator_knows_counts_before_the_status_of_a_pod() -> None:
    nominated = nominator(A, B)
    assert (nominated.node_name(A), nominated.node_name(B)) == ("n1", "")
    nominated.add(B, "n2")
    nominated.add(A, "n2")
    assert (nominated.node_name(A), nominated.node_name(B)) == ("n2", "n2")
