import re
from typing import Any

import pytest
from plugin_base import PluginBase

from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.engine.hooks.plugin_errors import BadPlugin
from trio_sched.engine.queue.queued_pod import QueuedPodInfo
from trio_sched.engine.queue.queueing_hints import (
    EXTENDER_NAME,
    HintEntry,
    HintTable,
    QueueingStrategy,
    build_hint_table,
    watched_resources,
)
from trio_sched.plugin_api import (
    Action,
    ClusterEvent,
    EventRegistration,
    Hint,
    NodeView,
    Pod,
    Resource,
    hookimpl,
    on,
)
from trio_sched.testing import make_profile, node, pod

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_LABEL = ClusterEvent(Resource.NODE, Action.UPDATE_NODE_LABEL)
ANYTHING = ClusterEvent(Resource.WILDCARD, Action.ALL, "Anything")
WAITING = pod("waiting")


def saying(hint: Hint) -> Any:
    return lambda _pod, _old, _new: hint


def failing(_pod: Pod, _old: Any, _new: Any) -> Hint:
    raise LookupError("broken")


def info(*plugins: str, pending: tuple[str, ...] = ()) -> QueuedPodInfo:
    return QueuedPodInfo(WAITING, 0.0, unschedulable_plugins=set(plugins), pending_plugins=set(pending))


TABLE = HintTable(
    (
        HintEntry("Yes", NODE_ADD, BoundHook("Yes", "hint", saying(Hint.QUEUE))),
        HintEntry("No", NODE_ADD, BoundHook("No", "hint", saying(Hint.SKIP))),
        HintEntry("Always", NODE_ADD, None),
        HintEntry("Label", NODE_LABEL, BoundHook("Label", "hint", saying(Hint.QUEUE))),
    )
)


@pytest.mark.parametrize(
    ("waiting", "event", "strategy"),
    [
        (info("Yes"), NODE_ADD, QueueingStrategy.AFTER_BACKOFF),
        (info("No"), NODE_ADD, QueueingStrategy.SKIP),
        (info("No", "Yes"), NODE_ADD, QueueingStrategy.AFTER_BACKOFF),
        (info("Always"), NODE_ADD, QueueingStrategy.AFTER_BACKOFF),
        (info("Label"), NODE_ADD, QueueingStrategy.SKIP),
        (info("Label"), NODE_LABEL, QueueingStrategy.AFTER_BACKOFF),
        (info("Unknown"), NODE_ADD, QueueingStrategy.SKIP),
        (info(), NODE_LABEL, QueueingStrategy.AFTER_BACKOFF),
        (info("Yes", pending=("Yes",)), NODE_ADD, QueueingStrategy.IMMEDIATELY),
        (info("Yes", pending=("Always",)), NODE_ADD, QueueingStrategy.IMMEDIATELY),
        (info("Yes", pending=("No",)), NODE_ADD, QueueingStrategy.AFTER_BACKOFF),
        (info(pending=("Label",)), NODE_ADD, QueueingStrategy.SKIP),
    ],
)
def test_only_hints_of_rejectors_are_called(
    waiting: QueuedPodInfo, event: ClusterEvent, strategy: QueueingStrategy
) -> None:
    assert TABLE.queueing_strategy(waiting, event, None, node()) is strategy


@pytest.mark.parametrize(
    ("new", "strategy"),
    [
        (None, QueueingStrategy.AFTER_BACKOFF),
        (WAITING, QueueingStrategy.AFTER_BACKOFF),
        (pod("other"), QueueingStrategy.SKIP),
        (node(), QueueingStrategy.SKIP),
    ],
)
def test_the_wildcard_event_matches_every_pod_unless_it_names_another_one(new: Any, strategy: QueueingStrategy) -> None:
    assert TABLE.queueing_strategy(info("No"), ANYTHING, None, new) is strategy


def test_a_failing_hint_counts_as_queue_and_is_recorded() -> None:
    table = HintTable((HintEntry("Broken", NODE_ADD, BoundHook("Broken", "hint", failing)),))
    assert table.queueing_strategy(info("Broken"), NODE_ADD, None, node()) is QueueingStrategy.AFTER_BACKOFF
    (reported,) = table.plugin_failures.drain()
    assert (reported.failed.hook.plugin, reported.pod) == ("Broken", "default/waiting")
    assert reported.failed.problem == "hint raised LookupError: broken"


class Rejecting(PluginBase):
    @hookimpl
    def filter_node(self, node: NodeView) -> None: ...

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [
            on(Resource.NODE, Action.ADD),
            on(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
            on("x.v1.y", Action.ALL),
        ]


class Silent(PluginBase):
    """Can reject pods but has no events_to_register."""

    @hookimpl
    def permit(self, pod: Pod) -> None: ...


class Ranking(Silent):
    """Cannot reject pods, so its events are not registered."""

    permit = None  # type: ignore[assignment]

    @hookimpl
    def score_node(self, node: NodeView) -> int:
        return 0

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.NODE, Action.ALL)]


def test_registering_for_new_nodes_registers_for_taint_updates() -> None:
    table = build_hint_table(make_profile([Rejecting]))
    assert table.events_of("Rejecting") == [
        NODE_ADD,
        ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT),
        ClusterEvent("x.v1.y", Action.ALL),
        ClusterEvent(Resource.NODE, Action.UPDATE_NODE_TAINT),
    ]
    assert [entry.event for entry in table.matching(NODE_ADD)] == table.events_of("Rejecting")[:2]


def test_a_plugin_without_events_to_register_is_registered_for_all_events() -> None:
    events = build_hint_table(make_profile([Silent]), extra=["scheduling.k8s.io/PodGroup"]).events_of("Silent")
    assert ClusterEvent(Resource.POD, Action.ALL) in events
    assert ClusterEvent(Resource.CSI_DRIVER, Action.ALL) in events
    assert ClusterEvent("scheduling.k8s.io/PodGroup", Action.ALL) in events


def test_a_plugin_that_cannot_reject_pods_registers_nothing() -> None:
    assert build_hint_table(make_profile([Ranking])).entries == ()


def test_extenders_are_registered_for_all_events() -> None:
    table = build_hint_table(make_profile([Ranking]), extenders=True)
    assert {entry.plugin for entry in table.entries} == {EXTENDER_NAME}
    assert ClusterEvent(Resource.NODE, Action.ALL) in table.events_of(EXTENDER_NAME)


def test_watched_resources_are_the_union_over_all_profiles() -> None:
    tables = {"a": build_hint_table(make_profile([Rejecting])), "b": HintTable((HintEntry("L", NODE_LABEL, None),))}
    assert watched_resources(tables) == {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL,
        "x.v1.y": Action.ALL,
    }


@pytest.mark.parametrize("action", list(Action.__members__.values()))
def test_every_action_can_be_registered(action: Action) -> None:
    class Registers(PluginBase):
        @hookimpl
        def filter_node(self) -> None:
            return None

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            return [on(Resource.POD, action)]

    table = build_hint_table(make_profile([Registers]))
    assert ClusterEvent(Resource.POD, action) in table.events_of("Registers")


def test_a_plugin_whose_events_to_register_raises_is_named() -> None:
    class Mute(PluginBase):
        @hookimpl
        def filter_node(self) -> None:
            return None

        @hookimpl
        def events_to_register(self) -> list[EventRegistration]:
            raise LookupError("nothing to say")

    with pytest.raises(BadPlugin, match=r"'Mute' from class .*Mute: events_to_register raised LookupError") as caught:
        build_hint_table(make_profile([Mute]))
    assert re.search(r"nothing to say \(test_queueing_hints\.py:\d+\)$", str(caught.value))


class HintsForOne(Rejecting):
    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return [on(Resource.NODE, Action.ADD, self.wants)]  # type: ignore[arg-type]

    def wants(self, pod: Pod) -> Hint:
        return Hint.QUEUE


def test_a_hint_function_with_other_arguments_is_refused_at_once() -> None:
    text = "the hint function HintsForOne.wants(pod) cannot be called with the three arguments (pod, old, new): the pod"
    with pytest.raises(BadPlugin, match=re.escape(text)):
        build_hint_table(make_profile([HintsForOne]))
