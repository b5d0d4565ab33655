import re
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pytest
from attrs import frozen

from trio_sched.engine.hooks.plugin_errors import BadPlugin, PluginArgsError, UnknownPlugin
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    Code,
    EventRegistration,
    Handle,
    Hint,
    Int64Array,
    KindNotWatched,
    NodeColumns,
    NodeView,
    Pod,
    Resource,
    Status,
    Verdicts,
    hookimpl,
    on,
    unschedulable,
)
from trio_sched.testing import (
    FakeHandle,
    UnknownNode,
    ask_hint,
    make_plugin,
    make_profile,
    make_table,
    node,
    pod,
    schedule,
)


class Even:
    """Likes nodes with even numbers."""

    @frozen(kw_only=True)
    class Args:
        bonus_points: int = 10

    name: ClassVar[str] = "Even"

    def __init__(self, args: Args, handle: Handle) -> None:
        self.bonus = args.bonus_points
        self.handle = handle

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        even = np.array([int(name[-1]) % 2 == 0 for name in nodes.names], dtype=np.bool_)
        return Verdicts.where(even, unschedulable("odd"))

    @hookimpl
    def score(self, nodes: NodeColumns) -> Int64Array:
        return np.array([int(name[-1]) for name in nodes.names], dtype=np.int64)

    @hookimpl
    def normalize_score(self, scores: Int64Array) -> Int64Array:
        return scores * self.bonus

    @hookimpl
    def events_to_register(self) -> Iterable[EventRegistration]:
        return [on(Resource.NODE, Action.ADD, lambda pod, old, new: Hint.SKIP), on(Resource.NODE, Action.DELETE)]


class Shut:
    name: ClassVar[str] = "Shut"

    def __init__(self, args: None, handle: Handle) -> None:
        pass

    @hookimpl
    def pre_enqueue(self, pod: Pod) -> Status | None:
        return unschedulable("closed on Sundays") if pod.labels.get("day") == "Sunday" else None

    @hookimpl
    def filter_node(self, pod: Pod, node: NodeView) -> Status | None:
        raise LookupError("lost the key")


NODES = [node(f"n{i}", memory="2Gi") for i in range(5)]


def test_pod_larger_than_every_node_names_the_short_resource() -> None:
    outcome = schedule(pod(memory="4Gi"), on=[node("a", memory="2Gi"), node("b", memory="3Gi")])
    assert outcome.node_name is None
    assert outcome.reasons == {"a": ["Insufficient memory"], "b": ["Insufficient memory"]}
    assert outcome.message == "0/2 nodes are available: 2 Insufficient memory."
    assert outcome.rejected_by == {"NodeResourcesFit"}


def test_scores_are_shown_raw_normalised_and_in_sum() -> None:
    outcome = schedule(pod(), on=NODES, plugins=[Even], weights={"Even": 2})
    assert outcome.feasible == ("n0", "n2", "n4")
    assert outcome.raw_scores == {"Even": {"n0": 0, "n2": 2, "n4": 4}}
    assert outcome.scores == {"Even": {"n0": 0, "n2": 20, "n4": 40}}
    assert outcome.totals == {"n0": 0, "n2": 40, "n4": 80}
    assert (outcome.node_name, outcome.best) == ("n4", ("n4",))
    assert outcome.reasons == {"n1": ["odd"], "n3": ["odd"]}


def test_arguments_are_read_as_the_configuration_file_writes_them() -> None:
    outcome = schedule(pod(), on=NODES, plugins=[Even], args={"Even": {"bonusPoints": 5}})
    assert outcome.totals["n4"] == 20
    assert make_plugin(Even, {"bonusPoints": 3}).bonus == 3
    assert make_plugin(Even, Even.Args(bonus_points=4)).bonus == 4
    with pytest.raises(PluginArgsError, match=r"args\.bonus: unknown field"):
        make_plugin(Even, {"bonus": 3})


def test_installed_plugins_are_taken_by_name() -> None:
    tainted = [node("n0", taints=["a:NoSchedule"]), node("n2"), node("n4", memory="1Mi")]
    outcome = schedule(pod(memory="1Gi"), on=tainted, plugins=["TaintToleration", "NodeResourcesFit", Even])
    assert outcome.node_name == "n2"
    assert outcome.reasons == {"n0": ["node(s) had untolerated taint(s)"], "n4": ["Insufficient memory"]}
    with pytest.raises(UnknownPlugin):
        schedule(pod(), on=NODES, plugins=["NoSuchPlugin"])


def test_running_pods_take_room() -> None:
    big = [pod("r", memory="1.5Gi", node_name="n0"), pod("s", memory="1.5Gi", node_name="n2")]
    outcome = schedule(pod(memory="1Gi"), on=NODES, plugins=["NodeResourcesFit", Even], pods=big)
    assert outcome.feasible == ("n4",)


def test_nominated_pods_of_at_least_the_same_priority_keep_their_place() -> None:
    promised = pod("promised", memory="1.5Gi", priority=5, nominated_node_name="n4")
    waiting = pod(memory="1Gi", priority=5)
    assert schedule(waiting, on=NODES, plugins=["NodeResourcesFit", Even], pods=[promised]).node_name == "n2"
    above = pod(memory="1Gi", priority=6)
    assert schedule(above, on=NODES, plugins=["NodeResourcesFit", Even], pods=[promised]).node_name == "n4"


def test_a_pod_that_may_not_enter_the_queue_is_not_tried() -> None:
    outcome = schedule(pod(labels={"day": "Sunday"}), on=NODES, plugins=[Shut])
    assert (outcome.message, outcome.rejected_by) == ("closed on Sundays", {"Shut"})


def test_a_plugin_that_fails_ends_the_attempt() -> None:
    outcome = schedule(pod(), on=NODES, plugins=[Shut])
    assert outcome.message == 'running "Shut" filter plugin: filter_node raised LookupError: lost the key'
    assert outcome.error is not None
    assert outcome.error.code == Code.ERROR
    assert outcome.error.plugin == "Shut"


def test_an_empty_cluster_has_its_own_message() -> None:
    assert schedule(pod(), on=[]).message == "no nodes available to schedule pods"


def test_ties_are_drawn_by_the_seed() -> None:
    drawn = {schedule(pod(), on=NODES, plugins=["NodeName"], seed=seed).node_name for seed in range(30)}
    assert drawn == {"n0", "n1", "n2", "n3", "n4"}


def test_plugins_see_the_nodes_through_the_handle() -> None:
    handle = FakeHandle()
    schedule(pod(), on=NODES, plugins=[Even], handle=handle)
    assert handle.nodes.names == ["n0", "n1", "n2", "n3", "n4"]


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (ClusterEvent(Resource.NODE, Action.ADD), Hint.SKIP),
        (ClusterEvent(Resource.NODE, Action.DELETE), Hint.QUEUE),
        (ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE), None),
    ],
)
def test_hints_are_asked_as_the_queue_asks_them(event: ClusterEvent, expected: Any) -> None:
    assert ask_hint(Even, event, pod(), new=NODES[0]) is expected


def test_a_class_wins_over_an_installed_plugin_of_the_same_name() -> None:
    class Mine(Even):
        name: ClassVar[str] = "NodeName"

    assert schedule(pod(), on=NODES, plugins=[Mine]).reasons == {"n1": ["odd"], "n3": ["odd"]}


def test_a_class_without_a_name_is_an_error_that_says_so() -> None:
    class Nameless:
        pass

    for use in (make_plugin, lambda plugin: ask_hint(plugin, ClusterEvent(Resource.NODE, Action.ADD), pod())):
        with pytest.raises(BadPlugin, match="its class has no name; set name = 'Nameless'"):
            use(Nameless)


def test_a_plugin_that_only_works_in_the_background_is_part_of_the_profile() -> None:
    class Background:
        name: ClassVar[str] = "Background"

        def __init__(self, args: None, handle: Handle) -> None:
            pass

        @hookimpl
        async def run(self) -> None: ...

    assert [hook.plugin for hook in make_profile([Background]).run] == ["Background"]


def test_reading_a_kind_that_the_plugin_does_not_watch_is_an_error_in_tests_too() -> None:
    class Reader:
        name: ClassVar[str] = "Reader"
        watches: ClassVar[tuple[str, ...]] = ("Service",)

        def __init__(self, args: None, handle: Handle) -> None:
            self.handle = handle

        @hookimpl
        def filter_node(self, pod: Pod) -> Status | None:
            return unschedulable("full") if list(self.handle.objects(pod.labels["kind"])) else None

        @hookimpl
        def events_to_register(self) -> Iterable[EventRegistration]:
            return [on("widgets.v1.example.com", Action.ADD), on(Resource.CSI_NODE, Action.ADD)]

    for kind in ("Service", "widgets.v1.example.com", "CSINode"):
        assert schedule(pod(labels={"kind": kind}), on=NODES, plugins=[Reader]).node_name
    outcome = schedule(pod(labels={"kind": "Namespace"}), on=NODES, plugins=[Reader])
    assert "filter_node raised KindNotWatched: kind 'Namespace' is not watched" in outcome.message
    handle = FakeHandle(known_objects={"Namespace": [1]})
    assert schedule(pod(labels={"kind": "Namespace"}), on=NODES, plugins=[Reader], handle=handle).node_name is None
    with pytest.raises(KindNotWatched):
        make_plugin(Reader).handle.version("Namespace")


def test_a_pod_on_a_node_that_does_not_exist_is_an_error_that_names_both() -> None:
    lost = pod("lost", node_name="n11")
    text = "pod default/lost is on node 'n11', but there is no such node; did you mean 'n1'? The nodes are: n1, n2, n3"
    with pytest.raises(UnknownNode, match=re.escape(text)):
        schedule(pod(), on=[node("n1"), node("n2"), node("n3")], pods=[lost], plugins=[Even])
    with pytest.raises(UnknownNode, match=r"but there is no such node\. There are no nodes"):
        make_table([], [lost])
