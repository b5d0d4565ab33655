"""Whose task it is to decide on a pod."""

import pytest

from trio_sched.engine.sharding.pod_scope import Scope, owner_of, pinned_node, scope_of
from trio_sched.engine.sharding.repelling_terms import RepellingTerms
from trio_sched.objects.metadata import OwnerReference
from trio_sched.objects.pod import Pod
from trio_sched.objects.storage.volume import ImageVolumeSource, Volume
from trio_sched.testing import (
    node_affinity,
    pod,
    pod_affinity,
    pod_anti_affinity,
    pod_term,
    spread_constraint,
    term,
)


def is_device(name: str) -> bool:
    return name == "example.com/gpu"


@pytest.mark.parametrize(
    ("one", "scope"),
    [
        (pod("p", cpu=1, host_ports=[80], node_selector={"a": "b"}), Scope.LOCAL),
        (pod("p", affinity=node_affinity(term("a In b"))), Scope.LOCAL),
        (pod("p", requests={"example.com/fpga": 1}), Scope.LOCAL),
        (pod("p", spread=[spread_constraint(hard=False)]), Scope.LOCAL),
        (pod("p", affinity=pod_affinity(preferred=[(5, pod_term("a=b"))])), Scope.LOCAL),
        (pod("p", volumes=[Volume(name="v", image=ImageVolumeSource())]), Scope.LOCAL),
        (pod("p", spread=[spread_constraint()]), Scope.LANE),
        (pod("p", affinity=pod_affinity(pod_term("a=b"))), Scope.LANE),
        (pod("p", affinity=pod_anti_affinity(pod_term("a=b"))), Scope.LANE),
        (pod("p", labels={"app": "b"}), Scope.LANE),
        (pod("p", volumes=["claim"]), Scope.CLAIMS),
        (pod("p", claims=["claim"]), Scope.CLAIMS),
        (pod("p", requests={"example.com/gpu": 1}), Scope.DEVICES),
        (pod("p", requests={"example.com/gpu": 1}, claims=["claim"]), Scope.DEVICES),
        (pod("p", group="group"), Scope.GROUP),
        (pod("p", group="group", labels={"app": "b"}), Scope.GROUP),
        (pod("p", group="group", claims=["claim"]), Scope.GROUP),
        (pod("p", group="group", requests={"example.com/gpu": 1}), Scope.GROUP),
        (pod("p", group="group", spread=[spread_constraint()]), Scope.GROUP),
        (pod("p", group="group", affinity=pod_anti_affinity(pod_term("a=b"))), Scope.GROUP),
    ],
)
def test_the_scope_of_a_pod_is_how_far_its_required_rules_reach(one: Pod, scope: Scope) -> None:
    terms = RepellingTerms()
    terms.add(pod("a", affinity=pod_anti_affinity(pod_term("app=b"))), 1)
    assert scope_of(one, terms, is_device) is scope


def test_the_owner_of_a_pod_is_its_controller_or_itself() -> None:
    reference = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", uid="uid-of-web", controller=True)
    assert owner_of(pod("p", owner=reference)) == "uid-of-web"
    assert owner_of(pod("p", uid="its-own")) == "its-own"


def test_a_pod_is_pinned_where_it_requires_one_node_by_its_name() -> None:
    assert pinned_node(pod("p", affinity=node_affinity(term("a In b", fields=["metadata.name In n1"])))) == "n1"
    two = node_affinity(term(fields=["metadata.name In n1"]), term(fields=["metadata.name In n2"]))
    for affinity in (None, node_affinity(term("a In b")), two):
        assert pinned_node(pod("p", affinity=affinity)) == ""
    assert pinned_node(pod("p", affinity=node_affinity(term(fields=["metadata.name NotIn n1"])))) == ""
