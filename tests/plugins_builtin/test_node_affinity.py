from typing import Any

import msgspec
import pytest

from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.plugin_api import Action, ClusterEvent, Code, Hint, NodeAffinityArgs, NodeSelector, Pod, Resource
from trio_sched.testing import ask_hint, make_plugin, node, node_affinity, pod, schedule, term

AFFINITY = "NodeAffinity"
REASON = "node(s) didn't match Pod's node affinity/selector"
NODES = [node("a", labels={"disk": "ssd", "zone": "x"}), node("b", labels={"disk": "hdd"}), node("c")]


def added(*required: Any, preferred: Any = ()) -> dict[str, NodeAffinityArgs]:
    affinity = node_affinity(*required, preferred=preferred).node_affinity
    return {AFFINITY: NodeAffinityArgs(added_affinity=affinity)}


@pytest.mark.parametrize(
    ("waiting", "feasible"),
    [
        (pod(), "abc"),
        (pod(node_selector={}), "abc"),
        (pod(node_selector={"disk": "ssd"}), "a"),
        (pod(affinity=node_affinity(term("disk Exists"))), "ab"),
        (pod(affinity=node_affinity(term("disk In hdd"), term("zone In x"))), "ab"),
        (pod(node_selector={"disk": "ssd"}, affinity=node_affinity(term("disk In hdd"))), ""),
        (pod(affinity=node_affinity(preferred=[(1, term("disk Exists"))])), "abc"),
        (pod(affinity=node_affinity(term(fields=["metadata.name In b"]))), "b"),
    ],
)
def test_selector_and_affinity_must_both_match(waiting: Any, feasible: str) -> None:
    outcome = schedule(waiting, on=NODES, plugins=[AFFINITY])
    assert "".join(outcome.feasible) == feasible
    if not waiting.spec.affinity or not waiting.spec.affinity.node_affinity or feasible != "b":
        assert outcome.reasons == {name: [REASON] for name in "abc" if name not in feasible}


def test_without_selector_and_affinity_it_is_skipped() -> None:
    outcome = schedule(pod(), on=NODES, plugins=[AFFINITY])
    assert outcome.state.skip_filter == outcome.state.skip_score == {AFFINITY}
    assert schedule(pod(node_selector={}), on=NODES, plugins=[AFFINITY]).state.skip_filter == frozenset()


def test_terms_that_all_name_nodes_narrow_the_search() -> None:
    named = [term(fields=["metadata.name In b"]), term("disk Exists", fields=["metadata.name In c"])]
    outcome = schedule(pod(affinity=node_affinity(*named)), on=NODES, plugins=[AFFINITY])
    assert outcome.feasible == ("b",)
    assert outcome.reasons == {"a": ["node(s) didn't satisfy plugin(s) [NodeAffinity]"], "c": [REASON]}
    one_without = node_affinity(named[0], term("disk In ssd"))
    assert schedule(pod(affinity=one_without), on=NODES, plugins=[AFFINITY]).feasible == ("a", "b")


def test_terms_that_name_no_common_node_conflict() -> None:
    conflicting = term(fields=["metadata.name In a", "metadata.name In b"])
    outcome = schedule(pod(affinity=node_affinity(conflicting)), on=NODES, plugins=[AFFINITY])
    assert outcome.message == "0/3 nodes are available: pod affinity terms conflict."
    assert {status.code for status in outcome.statuses.values()} == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


def test_an_empty_required_selector_matches_nothing() -> None:
    waiting = msgspec.convert(
        {
            "metadata": {"name": "p"},
            "spec": {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}},
        },
        Pod,
    )
    affinity = waiting.spec.affinity
    assert affinity is not None
    assert affinity.node_affinity is not None
    assert affinity.node_affinity.required_during_scheduling_ignored_during_execution == NodeSelector()
    assert schedule(waiting, on=NODES, plugins=[AFFINITY]).feasible == ()


def test_added_affinity_holds_for_every_pod() -> None:
    outcome = schedule(pod(), on=NODES, plugins=[AFFINITY], args=added(term("disk Exists")))
    assert outcome.feasible == ("a", "b")
    assert outcome.reasons == {"c": ["node(s) didn't match scheduler-enforced node affinity"]}
    both = schedule(pod(node_selector={"disk": "hdd"}), on=NODES, plugins=[AFFINITY], args=added(term("disk Exists")))
    assert both.reasons == {"a": [REASON], "c": ["node(s) didn't match scheduler-enforced node affinity"]}


def test_preferences_add_up_and_the_best_node_becomes_100() -> None:
    waiting = pod(
        affinity=node_affinity(
            preferred=[(30, term("disk Exists")), (10, term("zone In x")), (0, term("bad Like x")), (50, term())]
        )
    )
    outcome = schedule(waiting, on=NODES, plugins=[AFFINITY])
    assert outcome.raw_scores[AFFINITY] == {"a": 40, "b": 30, "c": 0}
    assert outcome.scores[AFFINITY] == {"a": 100, "b": 75, "c": 0}
    more = schedule(waiting, on=NODES, plugins=[AFFINITY], args=added(preferred=[(5, term("disk DoesNotExist"))]))
    assert more.raw_scores[AFFINITY] == {"a": 40, "b": 30, "c": 5}


def test_a_preference_that_does_not_parse_fails_the_attempt() -> None:
    waiting = pod(affinity=node_affinity(preferred=[(1, term("cores Gt many"))]))
    outcome = schedule(waiting, on=NODES, plugins=[AFFINITY])
    assert outcome.message.startswith('running PreScore plugin "NodeAffinity": ')
    assert outcome.error is not None


def test_an_invalid_added_affinity_is_reported_at_start() -> None:
    with pytest.raises(BadPlugin, match=r"parsing addedAffinity's selector: .*Unsupported value: \"Like\""):
        schedule(pod(), on=NODES, plugins=[AFFINITY], args=added(term("disk Like ssd")))


NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
WAITING = pod("waiting", node_selector={"disk": "ssd"}, affinity=node_affinity(term("zone Exists")))


@pytest.mark.parametrize(
    ("event", "old", "new", "expected"),
    [
        (NODE_ADD, None, NODES[0], Hint.QUEUE),
        (NODE_ADD, None, NODES[1], Hint.SKIP),
        (NODE_ADD, None, node("n", labels={"disk": "ssd"}), Hint.SKIP),
        (NODE_LABEL, NODES[2], NODES[0], Hint.QUEUE),
        (NODE_LABEL, NODES[0], NODES[0], Hint.SKIP),
        (NODE_LABEL, NODES[0], NODES[2], Hint.SKIP),
        (ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT), NODES[2], NODES[0], Hint.QUEUE),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), pod(), None, None),
    ],
)
def test_hints(event: ClusterEvent, old: Any, new: Any, expected: Hint | None) -> None:
    assert ask_hint(AFFINITY, event, WAITING, old=old, new=new) is expected


def test_hints_consider_the_added_affinity() -> None:
    args = added(term("gpu Exists"))[AFFINITY]
    assert ask_hint(AFFINITY, NODE_ADD, WAITING, new=NODES[0], args=args) is Hint.SKIP


def test_pods_with_the_same_wishes_have_one_signature() -> None:
    sign = make_plugin(AFFINITY).sign
    first, second = (pod(name, affinity=node_affinity(term("x Exists"))) for name in "ab")
    assert sign(first) == sign(second) != sign(pod())
    assert sign(pod(node_selector={})) != sign(pod())
    assert sign(pod(node_selector={"a": "b"})) != sign(pod(node_selector={"a": "c"}))
