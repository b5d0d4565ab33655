from collections.abc import Callable, Iterable
from typing import Any

import pytest
from attrs import define, field
from gangs import member
from msgspec import convert
from msgspec.structs import replace

from plugins_builtin.preemption.group_preemption import NO_VICTIMS, victims_at_placement, victims_of_group
from trio_sched.objects.pod import PodCondition
from trio_sched.plugin_api import Code, Pod, PodDisruptionBudget, PodGroup, PodGroupInfo, Status, unschedulable
from trio_sched.plugin_api.preemption_units import DisruptionRules
from trio_sched.snapshot.node_columns import NodeColumns
from trio_sched.testing import FakeHandle, make_plugin, make_table, node, pod

GROUPS = {"GenericWorkload": True}


@define(eq=False)
class Trial:
    """A group that fits once enough pods have left each of some nodes."""

    pods: list[tuple[Pod, str]]
    needs_gone: dict[str, int]
    """Node → how many pods have to leave it."""
    elsewhere: str = ""
    """A pod that has to leave too, though the group is not placed on its node."""
    removed: set[str] = field(factory=set)
    runs: int = 0
    node_names: frozenset[str] = frozenset()

    @property
    def assigned_pods(self) -> Iterable[tuple[Pod, str]]:
        return self.pods

    def remove(self, pods: Iterable[Pod]) -> None:
        self.removed |= {one.name for one in pods}

    def restore(self, pods: Iterable[Pod]) -> None:
        self.removed -= {one.name for one in pods}

    def run(self) -> Status | None:
        self.runs += 1
        if not self.still_fits():
            return unschedulable("no room")
        self.node_names = frozenset(self.needs_gone)
        return None

    def still_fits(self) -> bool:
        gone: dict[str, int] = {}
        for one, node_name in self.pods:
            gone[node_name] = gone.get(node_name, 0) + (one.name in self.removed)
        fits = all(gone.get(name, 0) >= count for name, count in self.needs_gone.items())
        return fits and (not self.elsewhere or self.elsewhere in self.removed)


def running(name: str, *, priority: int = 0, start: int = 0, group: str = "", **fields: Any) -> Pod:
    made = member(name, group, priority=priority, **fields) if group else pod(name, priority=priority, **fields)
    return replace(made, status=replace(made.status, start_time=f"2026-01-01T00:00:{start:02}Z"))


def budget(labels: dict[str, str], allowed: int) -> PodDisruptionBudget:
    fields = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed},
    }
    return convert(fields, PodDisruptionBudget)


def group(name: str = "important", priority: int | None = 10, **spec: Any) -> PodGroup:
    more = {} if priority is None else {"priority": priority}
    return convert(
        {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {**more, **spec}}, PodGroup
    )


Victims = Callable[..., list[str] | Status]


@pytest.fixture(params=[victims_of_group, victims_at_placement], ids=["1.36", "1.37"])
def victims(request: pytest.FixtureRequest) -> Victims:
    """Finds the names of the victims of a group of priority 10."""

    def find(
        trial: Trial, *, together: tuple[PodGroup, ...] = (), budgets: Iterable[PodDisruptionBudget] = ()
    ) -> list[str] | Status:
        known = {one.name: replace(one, spec=replace(one.spec, disruption_mode="PodGroup")) for one in together}
        rules = DisruptionRules(find_group=lambda _kind, name, _namespace: known.get(name))
        found = request.param(group(), trial, budgets, rules)
        return found if isinstance(found, Status) else [one.name for one in found.victims]

    return find


def test_only_pods_of_lower_priority_are_evicted(victims: Victims) -> None:
    assert victims(Trial([(running("a", priority=10), "n")], {"n": 1})) == NO_VICTIMS
    assert victims(Trial([(running("a", priority=9), "n")], {"n": 1})) == ["a"]


def test_if_no_eviction_helps_that_is_the_answer(victims: Victims) -> None:
    found = victims(Trial([(running("a"), "n")], {"n": 2}))
    assert isinstance(found, Status)
    assert found.message == "no room"


def test_the_more_important_pods_are_reprieved(victims: Victims) -> None:
    pods = [running("young", start=30), running("old", start=10), running("high", priority=5, start=50)]
    assert victims(Trial([(one, "n") for one in pods], {"n": 1})) == ["young"]
    assert victims(Trial([(one, "n") for one in pods], {"n": 2})) == ["old", "young"]


def test_pods_of_groups_are_more_important_than_others_and_large_groups_than_small_ones(victims: Victims) -> None:
    pods = [running("plain", start=0), running("s1", group="small"), *(running(f"l{n}", group="large") for n in (1, 2))]
    together = (group("small", 0), group("large", 0))
    trial = Trial([(one, "n") for one in pods], {"n": 1})
    assert victims(trial, together=together) == ["plain"]
    assert victims(Trial([(one, "n") for one in pods], {"n": 2}), together=together) == ["s1", "plain"]


def test_the_pods_of_a_group_leave_together_wherever_they_are(victims: Victims) -> None:
    pods = [(running("a", group="g"), "n"), (running("b", group="g"), "m")]
    assert victims(Trial(pods, {"n": 1}), together=(group("g", 0),)) == ["a", "b"]
    assert victims(Trial(pods, {"n": 1})) == ["a"]


def test_the_priority_of_a_group_counts_for_its_pods(victims: Victims) -> None:
    pods = [(running("a", group="g", priority=0), "n")]
    assert victims(Trial(pods, {"n": 1}), together=(group("g", 20),)) == NO_VICTIMS


def test_pods_that_a_budget_protects_are_reprieved_first(victims: Victims) -> None:
    pods = [running("db", start=50, labels={"app": "db"}), running("web", start=0)]
    assert victims(Trial([(one, "n") for one in pods], {"n": 1}), budgets=[budget({"app": "db"}, allowed=0)]) == ["web"]


def test_every_pod_of_a_group_uses_up_the_budgets_that_protect_it(victims: Victims) -> None:
    group_pods = [running("g0", group="g", labels={"app": "db"}), running("g1", group="g", labels={"tier": "x"})]
    pods = [*group_pods, running("single", start=50, labels={"tier": "x"}), running("plain", start=0)]
    budgets = [budget({"app": "db"}, allowed=0), budget({"tier": "x"}, allowed=1)]
    trial = Trial([(one, "n") for one in pods], {"n": 1})
    assert victims(trial, together=(group("g", 0),), budgets=budgets) == ["plain"]


def test_pods_elsewhere_are_reprieved_without_a_try_unless_they_matter(victims: Victims) -> None:
    many = [(running(f"far-{number}"), f"m{number}") for number in range(50)]
    trial = Trial([*many, (running("near"), "n")], {"n": 1})
    assert victims(trial) == ["near"]
    assert trial.runs < 6
    found = victims(Trial([*many, (running("near"), "n")], {"n": 1}, elsewhere="far-7"))
    assert isinstance(found, list)
    assert sorted(found) == ["far-7", "near"]


@pytest.mark.parametrize(
    ("known", "policy", "code", "text"),
    [
        ([], None, Code.ERROR, 'failed to get pod group object: podgroup.scheduling.k8s.io "important" not found'),
        (
            [group(schedulingConstraints={"topology": [{"key": "rack"}]})],
            None,
            Code.UNSCHEDULABLE,
            "workload aware preemption is not supported for pod groups with scheduling constraints",
        ),
        ([group()], "Never", Code.UNSCHEDULABLE, "not eligible due to preemptionPolicy=Never."),
        ([group()], None, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VICTIMS.message),
    ],
)
def test_when_nobody_is_evicted_for_a_group(known: list[PodGroup], policy: str | None, code: Code, text: str) -> None:
    handle = FakeHandle(
        gates={"WorkloadAwarePreemption": True}, known_objects={"PodGroup": known, "PodDisruptionBudget": []}
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    pods = (member("p", "important", preemption_policy=policy),)
    status = plugin.pod_group_post_filter(PodGroupInfo("default", "important", pods), Trial([], {}))
    assert (status.code, status.message) == (code, text)


OF_1_37 = (1, 37)


@pytest.mark.parametrize(
    ("known", "policy", "code", "text"),
    [
        ([], None, Code.ERROR, 'failed to get pod group object: podgroup.scheduling.k8s.io "important" not found'),
        ([group()], "Never", Code.UNSCHEDULABLE, "not eligible due to preemptionPolicy=Never."),
        ([group()], None, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, NO_VICTIMS.message),
    ],
)
def test_since_1_37_the_answer_says_that_it_is_about_the_group(
    known: list[PodGroup], policy: str | None, code: Code, text: str
) -> None:
    handle = FakeHandle(
        emulated_version=OF_1_37, known_objects={"PodGroup": known, "PodDisruptionBudget": []}, gates=GROUPS
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    pods = (member("p", "important", preemption_policy=policy),)
    status = plugin.pod_group_post_filter(PodGroupInfo("default", "important", pods), Trial([], {}))
    assert (status.code, status.message) == (code, f"pod group preemption: {text}")


@pytest.mark.parametrize(("version", "expected"), [((1, 36), ["low", "of_high"]), ((1, 37), ["high", "low"])])
def test_since_1_37_a_pod_that_leaves_alone_has_the_priority_of_its_group(
    version: tuple[int, int], expected: list[str]
) -> None:
    known = [group(), group("low_group", 0), group("high_group", 10)]
    handle = FakeHandle(
        emulated_version=version,
        known_objects={"PodGroup": known, "PodDisruptionBudget": []},
        gates=GROUPS | {"WorkloadAwarePreemption": True},
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    pods = [
        running("low"),
        running("high", group="low_group", priority=50),
        running("of_high", group="high_group", priority=0),
    ]
    trial = Trial([(one, "n") for one in pods], {"n": 2})
    found = plugin.pod_group_post_filter(PodGroupInfo("default", "important", (member("p", "important"),)), trial)
    assert sorted(one.name for one in found.victims) == expected


@pytest.mark.parametrize(("of_group", "of_pods"), [("Never", None), (None, "Never")])
def test_with_the_gate_the_policy_of_the_group_says_whether_it_preempts(
    of_group: str | None, of_pods: str | None
) -> None:
    known = [group(preemptionPolicy=of_group)]
    handle = FakeHandle(
        emulated_version=OF_1_37,
        known_objects={"PodGroup": known, "PodDisruptionBudget": []},
        gates=GROUPS | {"PodGroupPreemptionPolicy": True},
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    info = PodGroupInfo("default", "important", (member("p", "important", preemption_policy=of_pods),))
    found = plugin.pod_group_post_filter(info, Trial([(running("low"), "n")], {"n": 1}))
    if of_group == "Never":
        assert found.message == "pod group preemption: not eligible due to preemptionPolicy=Never."
    else:
        assert [one.name for one in found.victims] == ["low"]


def test_since_1_37_a_group_with_a_topology_key_preempts_too_and_victims_are_counted() -> None:
    known = [group(schedulingConstraints={"topology": [{"key": "rack"}]})]
    handle = FakeHandle(
        emulated_version=OF_1_37, known_objects={"PodGroup": known, "PodDisruptionBudget": []}, gates=GROUPS
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    trial = Trial([(running("a"), "n"), (running("b"), "n"), (running("c"), "n")], {"n": 2})
    found = plugin.pod_group_post_filter(PodGroupInfo("default", "important", (member("p", "important"),)), trial)
    assert len(found.victims) == 2
    assert found.message == "pod group preemption: found a placement for podgroup, preempting 2 victims"


def test_since_1_37_nobody_else_is_evicted_while_victims_leave_a_node_that_a_pod_is_nominated_to() -> None:
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = running("low", node_name="n")
    leaving = replace(
        leaving,
        metadata=replace(leaving.metadata, deletion_timestamp="2026-01-01T00:00:30Z"),
        status=replace(leaving.status, conditions=(condition,)),
    )
    handle = FakeHandle(
        emulated_version=OF_1_37,
        known_objects={"PodGroup": [group()], "PodDisruptionBudget": []},
        gates=GROUPS,
        nodes=NodeColumns(make_table([node("n")], pods=[leaving])),
    )
    plugin = make_plugin("DefaultPreemption", handle=handle)
    info = PodGroupInfo("default", "important", (member("p", "important", nominated_node_name="n"),))
    found = plugin.pod_group_post_filter(info, Trial([(running("other"), "m")], {"m": 1}))
    assert (found.victims, found.message) == ((), "pod group preemption: ongoing preemption on nominated nodes")
    handle.nodes = NodeColumns(make_table([node("n")], pods=[running("low", node_name="n")]))
    found = plugin.pod_group_post_filter(info, Trial([(running("other"), "m")], {"m": 1}))
    assert [one.name for one in found.victims] == ["other"]


def test_pods_of_a_group_are_gated_while_victims_of_the_group_leave() -> None:
    handle = FakeHandle(gates={"WorkloadAwarePreemption": True}, known_objects={"PodGroup": [group()]})
    plugin = make_plugin("DefaultPreemption", handle=handle)
    one = member("p", "important")
    assert plugin.pre_enqueue(one) is None
    handle.preempting_for.add("important")
    assert plugin.pre_enqueue(one).message == "waiting for the preemption for this pod group to be finished"
    assert plugin.pre_enqueue(member("q", "unknown")) is None
