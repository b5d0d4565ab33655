from typing import Any

import msgspec
import pytest
from call_count import count_calls

from trio_sched.objects.affinity import Affinity
from trio_sched.objects.metadata import ObjectMeta, OwnerReference
from trio_sched.objects.node import Node
from trio_sched.objects.pod import Pod, TopologySpreadConstraint
from trio_sched.objects.pod_groups.workload import (
    LabelSelectorSpec,
    MapSelectorSpec,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from trio_sched.objects.selector import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from trio_sched.plugin_api import Code, PodTopologySpreadArgs
from trio_sched.testing import FakeHandle, Outcome, node, node_affinity, pod, schedule, term

SPREAD = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
MISSING = "node(s) didn't match pod topology spread constraints (missing required label)"
ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
APP = LabelSelector(match_labels={"app": "a"})
BAD = LabelSelector(match_expressions=(LabelSelectorRequirement("app", "In"),))


def hard(key: str = "zone", selector: LabelSelector | None = APP, **more: Any) -> TopologySpreadConstraint:
    given = {"max_skew": 1, "when_unsatisfiable": "DoNotSchedule", **more}
    return TopologySpreadConstraint(topology_key=key, label_selector=selector, **given)


def soft(key: str = "zone", selector: LabelSelector | None = APP, **more: Any) -> TopologySpreadConstraint:
    return hard(key, selector, when_unsatisfiable="ScheduleAnyway", **more)


def waiting(*constraints: TopologySpreadConstraint, **more: Any) -> Pod:
    return pod("waiting", spread=constraints, **{"labels": {"app": "a"}, **more})


def zoned(name: str, zone: str, **more: Any) -> Node:
    return node(name, labels={"zone": zone, ZONE: zone}, **more)


def pods_on(*names: str, **more: Any) -> list[Pod]:
    """A pod of the app on each of the nodes named."""
    return [pod(f"p{i}", node_name=name, **{"labels": {"app": "a"}, **more}) for i, name in enumerate(names)]


def going(one: Pod) -> Pod:
    return msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    )


def ask(one: Pod, on: Any, pods: Any = (), **more: Any) -> Outcome:
    return schedule(one, on=on, pods=pods, plugins=[SPREAD], **more)


NODES = [zoned("a", "x"), zoned("b", "y"), zoned("c", "z")]

# --- filter ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("max_skew", "feasible"), [(1, "c"), (2, "bc"), (3, "abc")])
def test_one_more_pod_must_keep_the_skew_within_bounds(max_skew: int, feasible: str) -> None:
    outcome = ask(waiting(hard(max_skew=max_skew)), NODES, pods_on("a", "a", "b"))
    assert "".join(outcome.feasible) == feasible
    for name in set("abc") - set(feasible):
        assert outcome.reasons[name] == [REASON]
        assert outcome.statuses[name].code == Code.UNSCHEDULABLE


def test_a_pod_that_does_not_match_itself_adds_nothing() -> None:
    pods = pods_on("a", "b", "b")
    assert ask(waiting(hard()), NODES[:2], pods).feasible == ("a",)
    assert ask(waiting(hard(), labels={"app": "other"}), NODES[:2], pods).feasible == ("a", "b")


def test_a_node_without_the_label_can_never_do() -> None:
    outcome = ask(waiting(hard()), [*NODES, node("bare")])
    assert outcome.reasons == {"bare": [MISSING]}
    assert outcome.statuses["bare"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE


def test_the_first_constraint_that_fails_gives_the_reason() -> None:
    pods = pods_on("a", "a")
    one, other = hard("zone"), hard("rack")
    assert ask(waiting(one, other), NODES[:2], pods).reasons == {"a": [MISSING], "b": [MISSING]}
    racks = [node("a", labels={"zone": "x", "rack": "1"}), node("b", labels={"zone": "y"})]
    bound = waiting(hard("zone"), hard("rack", max_skew=9))
    # Only nodes with every key count, so nothing is skewed in the only zone that counts.
    assert ask(bound, racks, pods).reasons == {"b": [MISSING]}
    in_order = waiting(hard("zone", max_skew=1), hard("rack", max_skew=9))
    skewed = [*racks, node("c", labels={"zone": "z", "rack": "2"})]
    assert ask(in_order, skewed, pods).reasons == {"a": [REASON], "b": [MISSING]}


@pytest.mark.parametrize(
    "other",
    [
        pod("q", namespace="other", labels={"app": "a"}, node_name="a"),
        pod("q", labels={"app": "b"}, node_name="a"),
        going(pod("q", labels={"app": "a"}, node_name="a")),
    ],
    ids=["namespace", "labels", "terminating"],
)
def test_pods_that_do_not_count(other: Pod) -> None:
    assert ask(waiting(hard()), NODES[:2], [other]).feasible == ("a", "b")
    assert ask(waiting(hard()), NODES[:2], pods_on("a")).feasible == ("b",)


def test_an_empty_selector_counts_no_pod_although_it_matches_the_pod() -> None:
    everything = LabelSelector()
    assert ask(waiting(hard(selector=everything)), NODES[:2], pods_on("a", "a", "a")).feasible == ("a", "b")


def test_a_missing_selector_matches_no_pod() -> None:
    outcome = ask(waiting(hard(selector=None)), NODES[:2], pods_on("a", "a", "a"))
    assert outcome.feasible == ("a", "b")


def test_match_label_keys_narrow_the_selector_to_the_values_of_the_pod() -> None:
    pods = pods_on("a", "a", labels={"app": "a", "version": "1"})
    one = hard(match_label_keys=("version", "not-there"))
    assert ask(waiting(one, labels={"app": "a", "version": "1"}), NODES[:2], pods).feasible == ("b",)
    assert ask(waiting(one, labels={"app": "a", "version": "2"}), NODES[:2], pods).feasible == ("a", "b")
    assert ask(waiting(one), NODES[:2], pods).feasible == ("b",)
    nothing = hard(selector=None, match_label_keys=("version",))
    assert ask(waiting(nothing, labels={"app": "a", "version": "1"}), NODES[:2], pods).feasible == ("a", "b")


@pytest.mark.parametrize(("min_domains", "feasible"), [(None, "ab"), (2, "ab"), (3, "")])
def test_with_too_few_domains_the_smallest_count_is_taken_as_zero(min_domains: int | None, feasible: str) -> None:
    outcome = ask(waiting(hard(min_domains=min_domains)), NODES[:2], pods_on("a", "b"))
    assert "".join(outcome.feasible) == feasible


def test_a_selector_that_does_not_parse_fails_the_attempt() -> None:
    outcome = ask(waiting(hard(selector=BAD)), NODES)
    assert outcome.error is not None
    assert outcome.message == (
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology spread '
        "constraints: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )


def test_without_hard_constraints_filter_is_skipped() -> None:
    assert SPREAD in ask(waiting(soft()), NODES).state.skip_filter
    assert SPREAD in ask(pod(), NODES).state.skip_filter


# --- which nodes count ----------------------------------------------------------------------------------------------

TAINTED = zoned("t", "t", taints=["x:NoSchedule"])


@pytest.mark.parametrize(("policy", "feasible"), [(None, "abc"), ("Honor", "abc"), ("Ignore", "c")])
def test_nodes_that_the_pods_own_affinity_rules_out_do_not_count(policy: str | None, feasible: str) -> None:
    nodes = [node("a", labels={"zone": "x", "disk": "ssd"}), zoned("b", "y"), zoned("c", "z")]
    one = waiting(hard(node_affinity_policy=policy), node_selector={"disk": "ssd"})
    assert "".join(ask(one, nodes, pods_on("a", "b", "b")).feasible) == feasible


def test_required_affinity_rules_out_like_the_selector() -> None:
    nodes = [node("a", labels={"zone": "x", "disk": "ssd"}), zoned("b", "y")]
    affinity: Affinity = node_affinity(term("disk In ssd"))
    assert ask(waiting(hard(), affinity=affinity), nodes, pods_on("a")).feasible == ("a", "b")
    assert ask(waiting(hard()), nodes, pods_on("a")).feasible == ("b",)


@pytest.mark.parametrize(("policy", "feasible"), [(None, "t"), ("Ignore", "t"), ("Honor", "abt")])
def test_tainted_nodes_count_unless_the_constraint_says_otherwise(policy: str | None, feasible: str) -> None:
    outcome = ask(waiting(hard(node_taints_policy=policy)), [*NODES[:2], TAINTED], pods_on("a", "b"))
    assert "".join(outcome.feasible) == feasible


def test_taints_that_the_pod_tolerates_do_not_matter() -> None:
    one = waiting(hard(node_taints_policy="Honor"), tolerations=["x"])
    assert ask(one, [*NODES[:2], TAINTED], pods_on("a", "b")).feasible == ("t",)


def test_a_node_that_does_not_count_is_judged_by_its_domain_all_the_same() -> None:
    one = waiting(hard(node_taints_policy="Honor"))
    nodes = [zoned("a", "x"), zoned("b", "y"), zoned("t", "x", taints=["x:NoSchedule"])]
    assert ask(one, nodes, pods_on("a")).reasons == {"a": [REASON], "t": [REASON]}
    assert ask(one, nodes, pods_on("t", "t")).feasible == ("a", "b", "t")


# --- score ----------------------------------------------------------------------------------------------------------


def test_the_fewer_pods_the_better_in_the_measure_of_kube_scheduler() -> None:
    """The check vector: (pods on the host, pods in the zone) = (0, 3), (1, 3), (2, 2), (0, 2)."""
    nodes = [zoned("a", "x"), zoned("b", "x"), zoned("c", "y"), zoned("d", "y"), zoned("far", "x")]
    pods = pods_on("b", "c", "c", "far", "far")
    constraints = (soft(HOSTNAME, max_skew=3), soft(ZONE, max_skew=5))
    # The fifth node has pods that count in the zone, and does not fit itself.
    one = waiting(*constraints, cpu=4)
    full = pod("full", cpu=4, node_name="far")
    outcome = schedule(
        one, on=nodes, pods=[*pods, full], plugins=["NodeResourcesFit", SPREAD], weights={"NodeResourcesFit": 0}
    )
    assert outcome.feasible == ("a", "b", "c", "d")
    assert outcome.raw_scores[SPREAD] == {"a": 10, "b": 12, "c": 12, "d": 9}
    assert outcome.scores[SPREAD] == {"a": 91, "b": 75, "c": 75, "d": 100}


def test_nodes_that_lack_a_key_get_nothing() -> None:
    outcome = ask(waiting(soft()), [*NODES[:2], node("bare")], pods_on("a"))
    assert outcome.scores[SPREAD] == {"a": 0, "b": 100, "bare": 0}
    assert outcome.raw_scores[SPREAD]["bare"] == 0


def test_where_nothing_counts_all_nodes_are_equally_good() -> None:
    assert ask(waiting(soft()), NODES).scores[SPREAD] == {"a": 100, "b": 100, "c": 100}


def test_domains_are_those_of_the_nodes_that_passed() -> None:
    three = ask(waiting(soft()), NODES, pods_on("a", "a", "a", "a", "a")).raw_scores[SPREAD]
    two = ask(waiting(soft()), NODES[:2], pods_on("a", "a", "a", "a", "a")).raw_scores[SPREAD]
    assert (three["a"], two["a"]) == (8, 7)  # 5 ln 5 and 5 ln 4


def test_terminating_pods_and_other_namespaces_do_not_count_in_scores_either() -> None:
    others = [going(pods_on("a")[0]), pod("q", namespace="other", labels={"app": "a"}, node_name="b")]
    for key in ("zone", HOSTNAME):
        assert set(ask(waiting(soft(key)), NODES, others).raw_scores[SPREAD].values()) == {0}


def test_policies_hold_for_zones_but_not_for_single_nodes() -> None:
    nodes = [zoned("a", "x"), zoned("t", "x", taints=["x:NoSchedule"]), zoned("b", "y")]
    pods = pods_on("t", "t", "t")
    by_zone = ask(waiting(soft(node_taints_policy="Honor")), nodes, pods).raw_scores[SPREAD]
    assert set(by_zone.values()) == {0}
    by_host = ask(waiting(soft(HOSTNAME, node_taints_policy="Honor")), nodes, pods).raw_scores[SPREAD]
    assert by_host == {"a": 0, "t": 5, "b": 0}


def test_a_soft_selector_that_does_not_parse_fails_the_attempt() -> None:
    outcome = ask(waiting(soft(selector=BAD)), NODES)
    assert outcome.message.startswith(
        'running PreScore plugin "PodTopologySpread": calculating preScoreState: obtaining pod\'s soft topology '
        "spread constraints: values: Invalid value: null"
    )


def test_without_soft_constraints_score_is_skipped() -> None:
    assert SPREAD in ask(waiting(hard()), NODES).state.skip_score


# --- constraints of pods that state none ----------------------------------------------------------------------------


def service(selector: dict[str, str] | None, namespace: str = "default") -> Service:
    return Service(ObjectMeta("s", namespace), MapSelectorSpec(selector))


def owned(api_version: str, kind: str, name: str = "o", *, controller: bool = True) -> Pod:
    return pod(
        "waiting",
        labels={"app": "a"},
        owner=OwnerReference(api_version=api_version, kind=kind, name=name, controller=controller),
    )


OWNER = {
    "ReplicaSet": [ReplicaSet(ObjectMeta("o", "default"), LabelSelectorSpec(APP))],
    "StatefulSet": [StatefulSet(ObjectMeta("o", "default"), LabelSelectorSpec(APP))],
    "ReplicationController": [ReplicationController(ObjectMeta("o", "default"), MapSelectorSpec({"app": "a"}))],
}


def has_defaults(one: Pod, **objects: list[Any]) -> bool:
    outcome = ask(one, NODES, pods_on("a"), handle=FakeHandle(known_objects=objects))
    return SPREAD not in outcome.state.skip_score


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (owned("apps/v1", "ReplicaSet"), True),
        (owned("apps/v1", "StatefulSet"), True),
        (owned("v1", "ReplicationController"), True),
        (owned("apps/v1beta1", "ReplicaSet"), False),
        (owned("batch/v1", "Job"), False),
        (owned("apps/v1", "ReplicaSet", "unknown"), False),
        (owned("apps/v1", "ReplicaSet", controller=False), False),
    ],
)
def test_default_constraints_use_the_selector_of_the_controller(one: Pod, expected: bool) -> None:
    assert has_defaults(one, **OWNER) is expected


def test_a_controller_with_an_invalid_selector_is_ignored() -> None:
    assert not has_defaults(
        owned("apps/v1", "ReplicaSet"), ReplicaSet=[ReplicaSet(ObjectMeta("o", "default"), LabelSelectorSpec(BAD))]
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (service({"app": "a"}), True),
        (service({"app": "b"}), False),
        (service({}), False),
        (service(None), False),
        (service({"app": "a"}, "other"), False),
    ],
)
def test_default_constraints_use_the_selectors_of_services_too(made: Service, expected: bool) -> None:
    assert has_defaults(pod("waiting", labels={"app": "a"}), Service=[made]) is expected


def test_twice_the_services_are_twice_the_work_and_not_four_times() -> None:
    def work(count: int) -> int:
        services = [service({"app": "a", f"key-{i}": "x"}) for i in range(count)]
        waiting_pod = pod("waiting", labels={"app": "a", **{f"key-{i}": "x" for i in range(count)}})
        return count_calls(lambda: has_defaults(waiting_pod, Service=services))

    assert work(400) < 2.5 * work(200)


def test_a_large_affinity_is_hashed_and_compared_once_for_many_constraints() -> None:
    class Counted(str):
        __slots__ = ()
        seen = 0

        def __hash__(self) -> int:
            Counted.seen += 1
            return super().__hash__()

        def __eq__(self, other: object) -> bool:
            Counted.seen += 1
            return super().__eq__(other)

    def work(count: int) -> int:
        expression = NodeSelectorRequirement(key="zone", operator="NotIn", values=(Counted("v"),))
        affinity = node_affinity(NodeSelectorTerm(match_expressions=(expression,)))
        many = [hard(selector=LabelSelector(match_labels={"app": f"{number}"})) for number in range(count)]
        asked = waiting(*many, affinity=affinity)
        Counted.seen = 0
        assert ask(asked, NODES).feasible == ("a", "b", "c")
        return Counted.seen

    work(1)
    assert work(50) == work(5)


def test_a_changed_service_costs_nothing_for_the_large_selectors_of_others() -> None:
    def work(size: int) -> int:
        services = [service({f"key-{i}": "x" for i in range(size)}) for _ in range(10)]
        waiting_pod = pod("waiting", labels={"app": "a"})
        return count_calls(lambda: has_defaults(waiting_pod, Service=[*services, service({"app": "a"})]))

    assert work(200) < work(2) + 20


def test_service_and_controller_must_both_select() -> None:
    handle = FakeHandle(known_objects={**OWNER, "Service": [service({"track": "x"})]})
    one = owned("apps/v1", "ReplicaSet")
    one = msgspec.structs.replace(
        one, metadata=msgspec.structs.replace(one.metadata, labels={"app": "a", "track": "x"})
    )
    pods = [*pods_on("a"), pod("both", labels={"app": "a", "track": "x"}, node_name="b")]
    scores = ask(one, NODES, pods, handle=handle).scores[SPREAD]
    assert scores["b"] < scores["a"] == scores["c"]


HANDLE = FakeHandle(known_objects={"Service": [service({"app": "a"})]})
LIST = {SPREAD: PodTopologySpreadArgs(default_constraints=(hard(selector=None),), defaulting_type="List")}


def test_by_default_pods_are_spread_over_hosts_and_zones_but_never_refused() -> None:
    outcome = ask(pod("w", labels={"app": "a"}), [*NODES, node("bare")], pods_on("a", "a", "a"), handle=HANDLE)
    assert SPREAD in outcome.state.skip_filter
    scores = outcome.scores[SPREAD]
    assert scores["a"] < scores["b"] == scores["c"]
    assert scores["bare"] == 100  # a missing zone counts as one of its own, and costs nothing


def test_constraints_can_be_given_in_the_configuration() -> None:
    outcome = ask(pod("w", labels={"app": "a"}), NODES, pods_on("a"), handle=HANDLE, args=LIST)
    assert outcome.feasible == ("b", "c")
    assert SPREAD in outcome.state.skip_score
    assert ask(pod("w"), NODES, pods_on("a"), handle=HANDLE, args=LIST).feasible == ("a", "b", "c")


def test_a_pod_with_any_constraint_of_its_own_gets_none_of_the_others() -> None:
    own = waiting(soft("rack"))
    outcome = ask(own, NODES, pods_on("a"), handle=HANDLE, args=LIST)
    assert outcome.feasible == ("a", "b", "c")
    assert SPREAD in outcome.state.skip_filter


def test_with_a_list_nodes_that_lack_a_key_are_left_out_of_the_ranking() -> None:
    args = {SPREAD: PodTopologySpreadArgs(default_constraints=(soft(selector=None),), defaulting_type="List")}
    outcome = ask(pod("w", labels={"app": "a"}), [*NODES, node("bare")], handle=HANDLE, args=args)
    assert outcome.scores[SPREAD] == {"a": 100, "b": 100, "c": 100, "bare": 0}
