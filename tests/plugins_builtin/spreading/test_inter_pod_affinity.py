from typing import Any

import msgspec
import numpy as np
import pytest

from trio_sched.engine.hooks.hook_failure import HookFailed
from trio_sched.objects.affinity import Affinity, PodAffinity, PodAffinityTerm, WeightedPodAffinityTerm
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.namespace import Namespace
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod
from trio_sched.objects.selector import LabelSelector, LabelSelectorRequirement
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    CycleState,
    Hint,
    InterPodAffinityArgs,
    Resource,
)
from trio_sched.testing import FakeHandle, Outcome, ask_hint, make_plugin, node, pod, schedule

AFFINITY = "InterPodAffinity"
NEAR = "node(s) didn't match pod affinity rules"
FAR = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = LabelSelector(match_labels={"app": "web"}), LabelSelector(match_labels={"app": "db"})
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))
HOST = "kubernetes.io/hostname"


def term(selector: LabelSelector | None = WEB, key: str = "zone", **more: Any) -> PodAffinityTerm:
    return PodAffinityTerm(label_selector=selector, topology_key=key, **more)


def wish(*required: PodAffinityTerm, preferred: Any = ()) -> PodAffinity:
    return PodAffinity(required or None, tuple(WeightedPodAffinityTerm(*each) for each in preferred) or None)


def a_pod(name: str = "waiting", *, app: str = "", near: Any = None, far: Any = None, **more: Any) -> Pod:
    affinity = Affinity(pod_affinity=near, pod_anti_affinity=far) if near or far else None
    return pod(name, **{"labels": {"app": app} if app else None, "affinity": affinity, **more})


def zoned(name: str, zone: str, **labels: str) -> Node:
    return node(name, labels={"zone": zone, **labels})


NODES = [zoned("a1", "a"), zoned("a2", "a"), zoned("b1", "b")]


def ask(one: Pod, pods: Any = (), on: Any = NODES, **more: Any) -> Outcome:
    return schedule(one, on=on, pods=pods, plugins=[AFFINITY], **more)


def namespaces(**labels: dict[str, str]) -> FakeHandle:
    known = [Namespace(ObjectMeta(name, labels=has or None)) for name, has in labels.items()]
    return FakeHandle(known_objects={"Namespace": known})


# --- what the pod wants near ----------------------------------------------------------------------------------------


def test_required_affinity_needs_a_matching_pod_in_the_domain() -> None:
    outcome = ask(a_pod(near=wish(term())), [a_pod("w", app="web", node_name="a1"), a_pod("d", node_name="b1")])
    assert outcome.feasible == ("a1", "a2")
    assert outcome.reasons == {"b1": [NEAR]}
    assert outcome.statuses["b1"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_a_node_without_the_key_is_unresolvable() -> None:
    outcome = ask(a_pod(near=wish(term())), [a_pod("w", app="web", node_name="a1")], [*NODES, node("bare")])
    assert outcome.reasons["bare"] == [NEAR]


def test_only_pods_that_meet_every_term_count() -> None:
    both = a_pod("both", labels={"app": "web", "track": "x"}, node_name="b1")
    web = a_pod("w", app="web", node_name="a1")
    track = a_pod("t", labels={"track": "x"}, node_name="a2")
    terms = wish(term(), term(LabelSelector(match_labels={"track": "x"}), key=HOST))
    assert ask(a_pod(near=terms), [web, track]).feasible == ()
    assert ask(a_pod(near=terms), [web, track, both]).feasible == ("b1",)


def test_each_term_has_its_own_domain() -> None:
    terms = wish(term(), term(key=HOST))
    assert ask(a_pod(near=terms), [a_pod("w", app="web", node_name="a1")]).feasible == ("a1",)


def test_pods_that_are_being_deleted_count_like_all_others() -> None:
    going = a_pod("w", app="web", node_name="a1")
    metadata = msgspec.structs.replace(going.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    going = msgspec.structs.replace(going, metadata=metadata)
    assert ask(a_pod(near=wish(term())), [going]).feasible == ("a1", "a2")
    assert ask(a_pod(far=wish(term())), [going]).feasible == ("b1",)


# --- the first of its kind ------------------------------------------------------------------------------------------


def test_the_first_pod_of_a_self_affine_group_may_go_to_any_node_with_the_key() -> None:
    first = a_pod(app="web", near=wish(term()))
    assert ask(first, [], [*NODES, node("bare")]).feasible == ("a1", "a2", "b1")
    assert ask(a_pod(app="db", near=wish(term()))).feasible == ()


def test_the_first_pod_must_meet_all_its_own_terms() -> None:
    assert ask(a_pod(app="web", near=wish(term(), term(DB)))).feasible == ()
    elsewhere = a_pod(app="web", near=wish(term(namespaces=("other",))))
    assert ask(elsewhere).feasible == ()


def test_with_a_matching_pod_anywhere_the_pod_is_not_the_first() -> None:
    second = a_pod(app="web", near=wish(term()))
    assert ask(second, [a_pod("w", app="web", node_name="b1")]).feasible == ("b1",)


def test_a_matching_pod_on_a_node_without_the_key_does_not_count() -> None:
    second = a_pod(app="web", near=wish(term()))
    outcome = ask(second, [a_pod("w", app="web", node_name="bare")], [*NODES, node("bare")])
    assert outcome.feasible == ("a1", "a2", "b1")


# --- what the pod wants far, and who wants it far -------------------------------------------------------------------


def test_required_anti_affinity_excludes_domains_with_matching_pods() -> None:
    outcome = ask(a_pod(far=wish(term())), [a_pod("w", app="web", node_name="a1")], [*NODES, node("bare")])
    assert outcome.feasible == ("b1", "bare")
    assert outcome.reasons == {"a1": [FAR], "a2": [FAR]}
    assert outcome.statuses["a1"].code == Code.UNSCHEDULABLE


def test_each_anti_affinity_term_excludes_by_itself() -> None:
    pods = [a_pod("w", app="web", node_name="a1"), a_pod("d", app="db", node_name="b1")]
    assert ask(a_pod(far=wish(term(key=HOST), term(DB, HOST))), pods).feasible == ("a2",)


def test_anti_affinity_of_existing_pods_excludes_their_domains() -> None:
    loner = a_pod("loner", far=wish(term()), node_name="a1")
    outcome = ask(a_pod(app="web"), [loner])
    assert outcome.reasons == {"a1": [EXISTING], "a2": [EXISTING]}
    assert outcome.statuses["a1"].code == Code.UNSCHEDULABLE
    assert AFFINITY in ask(a_pod(app="db"), [loner]).state.skip_filter


def test_affinity_is_reported_before_anti_affinity() -> None:
    loner = a_pod("loner", far=wish(term()), app="db", node_name="a1")
    everything = a_pod(app="web", near=wish(term(LabelSelector(match_labels={"no": "where"}))), far=wish(term(DB)))
    assert ask(everything, [loner]).reasons["a1"] == [NEAR]
    assert ask(a_pod(app="web", far=wish(term(DB))), [loner]).reasons["a1"] == [FAR]


def test_without_required_terms_filter_is_skipped() -> None:
    assert AFFINITY in ask(a_pod(app="web"), [a_pod("w", app="web", node_name="a1")]).state.skip_filter


@pytest.mark.parametrize(
    ("near", "far", "message"),
    [
        (wish(term(BAD)), None, "parsing pod: requiredAffinityTerms: values: "),
        (None, wish(term(BAD)), "parsing pod: requiredAntiAffinityTerms: values: "),
        (wish(preferred=[(1, term(BAD))]), None, "parsing pod: preferredAffinityTerms: values: "),
        (
            None,
            wish(preferred=[(1, term(namespace_selector=BAD))]),
            "parsing pod: preferredAntiAffinityTerms: values: ",
        ),
    ],
)
def test_a_pod_whose_terms_do_not_parse_fits_nowhere(near: Any, far: Any, message: str) -> None:
    outcome = ask(a_pod(near=near, far=far))
    assert outcome.message.startswith(f"0/3 nodes are available: {message}")
    assert {status.code for status in outcome.statuses.values()} == {Code.UNSCHEDULABLE_AND_UNRESOLVABLE}


# --- namespaces -----------------------------------------------------------------------------------------------------


def test_pods_of_other_namespaces_match_only_if_named() -> None:
    stranger = a_pod("w", app="web", namespace="other", node_name="a1")
    assert ask(a_pod(far=wish(term())), [stranger]).feasible == ("a1", "a2", "b1")
    assert ask(a_pod(far=wish(term(namespaces=("other",)))), [stranger]).feasible == ("b1",)


@pytest.mark.parametrize(("labels", "feasible"), [({"team": "one"}, ("b1",)), ({}, ("a1", "a2", "b1"))])
def test_namespaces_can_be_selected_by_their_labels(labels: dict[str, str], feasible: tuple[str, ...]) -> None:
    one = LabelSelector(match_labels={"team": "one"})
    stranger = a_pod("w", app="web", namespace="other", node_name="a1")
    handle = namespaces(default={}, other=labels)
    assert ask(a_pod(far=wish(term(namespace_selector=one))), [stranger], handle=handle).feasible == feasible
    loner = a_pod("loner", far=wish(term(namespace_selector=one)), node_name="a1")
    assert ask(a_pod(app="web", namespace="other"), [loner], handle=handle).feasible == feasible


def test_an_empty_namespace_selector_means_all_namespaces() -> None:
    stranger = a_pod("w", app="web", namespace="unheard-of", node_name="a1")
    assert ask(a_pod(far=wish(term(namespace_selector=LabelSelector()))), [stranger]).feasible == ("b1",)


NOT_TWO = LabelSelector(match_expressions=(LabelSelectorRequirement("team", "NotIn", ("two",)),))


def test_an_excluding_namespace_selector_does_not_exclude_existing_pods() -> None:
    """As in kube-scheduler, which asks the selector once more, about no labels at all."""
    excluded = a_pod("w", app="web", namespace="other", node_name="a1")
    handle = namespaces(default={}, other={"team": "two"})
    assert ask(a_pod(far=wish(term(namespace_selector=NOT_TWO))), [excluded], handle=handle).feasible == ("b1",)
    mixed = LabelSelector(match_labels={"team": "two"}, match_expressions=NOT_TWO.match_expressions)
    assert len(ask(a_pod(far=wish(term(namespace_selector=mixed))), [excluded], handle=handle).feasible) == 3


def test_an_excluding_namespace_selector_excludes_incoming_pods() -> None:
    loner = a_pod("loner", far=wish(term(namespace_selector=NOT_TWO)), node_name="a1")
    handle = namespaces(default={}, other={"team": "two"})
    assert AFFINITY in ask(a_pod(app="web", namespace="other"), [loner], handle=handle).state.skip_filter
    assert ask(a_pod(app="web"), [loner], handle=handle).feasible == ("b1",)


# --- score ----------------------------------------------------------------------------------------------------------


def scores(one: Pod, pods: Any, on: Any = NODES, **more: Any) -> list[int]:
    return list(ask(one, pods, on, **more).raw_scores.get(AFFINITY, {}).values())


WEBS = [
    a_pod("w1", app="web", node_name="a1"),
    a_pod("w2", app="web", node_name="a2"),
    a_pod("d", app="db", node_name="b1"),
]


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        (wish(preferred=[(5, term())]), None, [10, 10, 0]),
        (wish(preferred=[(5, term(key=HOST))]), None, [5, 5, 0]),
        (None, wish(preferred=[(5, term())]), [-10, -10, 0]),
        (wish(preferred=[(5, term()), (3, term(DB))]), None, [10, 10, 3]),
        (wish(preferred=[(5, term())]), wish(preferred=[(1, term(key=HOST))]), [9, 9, 0]),
    ],
)
def test_each_pod_matching_a_preferred_term_scores_its_weight(near: Any, far: Any, expected: list[int]) -> None:
    assert scores(a_pod(near=near, far=far), WEBS) == expected


@pytest.mark.parametrize(
    ("near", "far", "weight", "expected"),
    [
        (wish(preferred=[(7, term())]), None, 1, [7, 7, 0]),
        (None, wish(preferred=[(7, term())]), 1, [-7, -7, 0]),
        (wish(term()), None, 1, [1, 1, 0]),
        (wish(term()), None, 40, [40, 40, 0]),
        (wish(term()), None, 0, []),
    ],
)
def test_preferred_terms_of_existing_pods_count_too(near: Any, far: Any, weight: int, expected: list[int]) -> None:
    fan = a_pod("fan", near=near, far=far, node_name="a1")
    args = {AFFINITY: InterPodAffinityArgs(hard_pod_affinity_weight=weight)}
    assert scores(a_pod(app="web"), [fan], args=args) == expected
    assert scores(a_pod(app="db"), [fan], args=args) == []


def test_preferred_terms_of_existing_pods_can_be_ignored_for_pods_without_any() -> None:
    args = {AFFINITY: InterPodAffinityArgs(ignore_preferred_terms_of_existing_pods=True)}
    fan = a_pod("fan", near=wish(preferred=[(7, term())]), node_name="a1")
    assert scores(a_pod(app="web"), [fan], args=args) == []
    own = a_pod(app="web", near=wish(preferred=[(1, term(DB))]))
    assert scores(own, [fan, WEBS[2]], args=args) == [7, 7, 1]


def test_scores_that_sum_to_zero_are_not_skipped() -> None:
    torn = a_pod(near=wish(preferred=[(5, term())]), far=wish(preferred=[(5, term())]))
    outcome = ask(torn, WEBS)
    assert outcome.raw_scores[AFFINITY] == outcome.scores[AFFINITY] == {"a1": 0, "a2": 0, "b1": 0}


def test_without_matching_preferred_terms_score_is_skipped() -> None:
    assert AFFINITY in ask(a_pod(near=wish(preferred=[(5, term())])), [WEBS[2]]).state.skip_score
    assert AFFINITY in ask(a_pod(app="web"), WEBS).state.skip_score


def test_the_best_node_becomes_100_and_the_worst_0_and_fractions_are_cut_off() -> None:
    near = wish(preferred=[(29, term(LabelSelector(match_labels={"app": "c"}), HOST)), (100, term(DB, HOST))])
    pods = [a_pod("c", app="c", node_name="a1"), a_pod("d", app="db", node_name="b1")]
    outcome = ask(a_pod(near=near), pods)
    assert outcome.raw_scores[AFFINITY] == {"a1": 29, "a2": 0, "b1": 100}
    assert outcome.scores[AFFINITY] == {"a1": 28, "a2": 0, "b1": 100}  # 100 * 0.29 is a little less than 29


@pytest.mark.parametrize("nodes", [5, 300])
def test_many_nodes_are_measured_like_few(nodes: int) -> None:
    raw = np.array([0, 29, 57, 58, 100, *[0] * (nodes - 5)], dtype=np.int64)
    normalized = make_plugin(AFFINITY).normalize_score(pod(), raw - 40, CycleState())
    assert normalized[:5].tolist() == [0, 28, 56, 57, 100]
    assert set(normalized[5:].tolist()) <= {0}


# --- hints -----------------------------------------------------------------------------------------------------------


def hint(one: Pod, action: Action, old: Any, new: Any, resource: Resource = Resource.ASSIGNED_POD) -> Hint | None:
    return ask_hint(AFFINITY, ClusterEvent(resource, action), one, old=old, new=new)


def there(app: str = "web", **more: Any) -> Pod:
    return a_pod("other", app=app, **{"node_name": "a1", **more})


NEAR_WEB, FAR_WEB = a_pod(app="db", near=wish(term())), a_pod(app="db", far=wish(term()))
HATES_DB = there(far=wish(term(DB)))


@pytest.mark.parametrize(
    ("one", "old", "new", "expected"),
    [
        (NEAR_WEB, None, there(), Hint.QUEUE),
        (NEAR_WEB, None, there("db"), Hint.SKIP),
        (NEAR_WEB, None, there(node_name="", nominated_node_name="a1"), Hint.QUEUE),
        (NEAR_WEB, None, there(node_name=""), Hint.SKIP),
        (FAR_WEB, None, there(), Hint.SKIP),
        (FAR_WEB, there(), None, Hint.QUEUE),
        (FAR_WEB, there("db"), None, Hint.SKIP),
        (NEAR_WEB, there(), None, Hint.SKIP),
        (a_pod(app="db"), HATES_DB, None, Hint.QUEUE),
        (a_pod(app="mail"), HATES_DB, None, Hint.SKIP),
        (NEAR_WEB, there("db"), there("web"), Hint.QUEUE),
        (NEAR_WEB, there("web"), there("web"), Hint.SKIP),
        (NEAR_WEB, there("web"), there("db"), Hint.SKIP),
        (FAR_WEB, there("web"), there("db"), Hint.QUEUE),
        (FAR_WEB, there("db"), there("web"), Hint.SKIP),
        (a_pod(near=wish(term(), term(DB))), None, there(), Hint.SKIP),
    ],
)
def test_hints_for_matching_pods(one: Pod, old: Any, new: Any, expected: Hint) -> None:
    action = Action.ADD if old is None else Action.DELETE if new is None else Action.UPDATE_POD_LABEL
    assert hint(one, action, old, new) is expected


def test_hints_for_updates_of_the_pod_itself() -> None:
    assert hint(NEAR_WEB, Action.UPDATE_POD_LABEL, NEAR_WEB, NEAR_WEB, Resource.UNSCHEDULABLE_POD) is Hint.QUEUE


@pytest.mark.parametrize(
    ("one", "old", "new", "expected"),
    [
        (NEAR_WEB, None, NODES[0], Hint.QUEUE),
        (NEAR_WEB, None, node("bare"), Hint.SKIP),
        (NEAR_WEB, node("n"), zoned("n", "a"), Hint.QUEUE),
        (NEAR_WEB, zoned("n", "a"), zoned("n", "b"), Hint.QUEUE),
        (NEAR_WEB, zoned("n", "a"), node("n"), Hint.SKIP),
        (NEAR_WEB, zoned("n", "a"), zoned("n", "a", more="labels"), Hint.SKIP),
        (FAR_WEB, None, node("bare"), Hint.QUEUE),
        (FAR_WEB, zoned("n", "a"), node("n"), Hint.QUEUE),
        (FAR_WEB, zoned("n", "a"), zoned("n", "b"), Hint.QUEUE),
        (FAR_WEB, node("n"), zoned("n", "a"), Hint.SKIP),
        (a_pod(), None, NODES[0], Hint.SKIP),
    ],
)
def test_hints_for_nodes(one: Pod, old: Any, new: Any, expected: Hint) -> None:
    action = Action.ADD if old is None else Action.UPDATE_NODE_LABEL
    assert hint(one, action, old, new, Resource.NODE) is expected


def test_a_hint_for_a_pod_with_invalid_terms_raises() -> None:
    with pytest.raises(HookFailed, match=r"raised SelectorError: requiredAffinityTerms: values: "):
        hint(a_pod(near=wish(term(BAD))), Action.ADD, None, there())


def test_deleted_nodes_are_not_registered() -> None:
    assert hint(FAR_WEB, Action.DELETE, NODES[0], None, Resource.NODE) is None


@pytest.mark.parametrize(("version", "expected"), [((1, 36), Hint.SKIP), ((1, 37), Hint.QUEUE)])
def test_a_pod_that_one_of_two_terms_excludes_wakes_the_other_since_1_37(version: Any, expected: Hint) -> None:
    handle, deleted = FakeHandle(emulated_version=version), ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
    plugin = make_plugin(AFFINITY, handle=handle)
    waits = a_pod(app="mail", far=wish(term(), term(DB)))
    assert ask_hint(plugin, deleted, waits, old=there("web"), new=None) is expected
    excluding = there("cache", far=wish(term(), term(DB)))
    assert ask_hint(plugin, deleted, a_pod(app="web"), old=excluding, new=None) is expected
    assert ask_hint(plugin, deleted, waits, old=there("mail"), new=None) is Hint.SKIP
