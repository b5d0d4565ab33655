"""Kinds besides pods and nodes, and which of their changes drop the signature cache."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from kind_handlers import handler_of
from plugin_base import PluginBase
from stage import MakeStage, Stage, picky_plugin
from trio.testing import MockClock

from trio_sched.engine.evaluation.decision import ScheduleResult, SchedulingFailure
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.resource.device_class import DeviceClass, DeviceClassSpec
from trio_sched.plugin_api import (
    Action,
    EventRegistration,
    Input,
    LabelSelector,
    NodeColumns,
    Pod,
    Resource,
    TopologySpreadConstraint,
    Verdicts,
    hookimpl,
    unschedulable,
)
from trio_sched.testing import node, pod

PICKY = pod("waiting", labels={"picky": "yes"})
GPU = "example.com/gpu"
SPREAD = TopologySpreadConstraint(
    max_skew=1,
    topology_key="kubernetes.io/hostname",
    when_unsatisfiable="DoNotSchedule",
    label_selector=LabelSelector(match_labels={"app": "a"}),
)


def widget(name: str, *, namespace: str = "", **spec: Any) -> AnyObject:
    return AnyObject(metadata=ObjectMeta(name=name, namespace=namespace), spec=spec)


def device_class(name: str, resource: str | None = GPU) -> DeviceClass:
    return DeviceClass(metadata=ObjectMeta(name=name), spec=DeviceClassSpec(extended_resource_name=resource))


def known(stage: Stage, kind: str) -> list[Any]:
    return list(stage.assembly.scheduler.object_cache.objects(kind))


async def test_objects_are_cached_in_their_newest_version_until_they_are_deleted(
    stage: Stage, autojump_clock: MockClock
) -> None:
    take = handler_of(stage.delivery, "Widget", "widgets.v1.example.com", Action.ALL)
    assert known(stage, "Widget") == []
    here, there = widget("w", namespace="here"), widget("w", namespace="there")
    take(Listed([here], "1"))
    take(Changes([Change("ADDED", None, there)], "2"))
    assert known(stage, "Widget") == [here, there]
    newer = widget("w", namespace="here", size=2)
    take(Changes([Change("MODIFIED", here, newer)], "3"))
    assert known(stage, "Widget") == [newer, there]
    take(Changes([Change("DELETED", newer, None), Change("DELETED", there, there)], "4"))
    assert known(stage, "Widget") == []


async def test_an_object_recreated_under_the_same_name_stays_cached(stage: Stage, autojump_clock: MockClock) -> None:
    take = handler_of(stage.delivery, "Widget", "widgets.v1.example.com", Action.ALL)
    old, new = widget("w"), widget("w", size=2)
    take(Listed([old], "1"))
    take(Changes([Change("DELETED", old, None), Change("ADDED", None, new)], "2", relisted=True))
    assert known(stage, "Widget") == [new]


CHANGES: dict[str, Callable[[AnyObject], Any]] = {
    "listed": lambda one: Listed([one], "1"),
    "added": lambda one: Changes([Change("ADDED", None, one)], "1"),
    "updated": lambda one: Changes([Change("MODIFIED", one, one)], "1"),
    "deleted": lambda one: Changes([Change("DELETED", one, None)], "1"),
}


async def test_every_change_counts_also_a_deletion_in_the_last_state(stage: Stage, autojump_clock: MockClock) -> None:
    take, version = (
        handler_of(stage.delivery, "Widget", "widgets.v1.example.com", Action.ALL),
        stage.assembly.scheduler.object_cache.version,
    )
    one, renewed, changed = widget("w"), widget("w"), widget("w", size=2)
    seen = [version("Widget")]
    for batch in (
        Listed([one], "1"),
        Changes([Change("MODIFIED", one, renewed)], "2"),
        Changes([Change("MODIFIED", renewed, changed)], "3"),
        Changes([Change("DELETED", changed, changed)], "4"),
    ):
        take(batch)
        seen.append(version("Widget"))
    assert seen == [0, 1, 1, 2, 3]


async def test_objects_nested_too_deep_to_be_compared_count_as_changed(stage: Stage, autojump_clock: MockClock) -> None:
    def deep() -> AnyObject:
        inner: dict[str, Any] = {}
        for _ in range(1_000_000):  # newer Pythons compare what their stack has room for
            inner = {"a": inner}
        return widget("w", inner=inner)

    take = handler_of(stage.delivery, "Widget", "widgets.v1.example.com", Action.ALL)
    old, new = deep(), deep()
    take(Listed([old], "1"))
    take(Changes([Change("MODIFIED", old, new)], "2"))
    assert stage.assembly.scheduler.object_cache.version("Widget") == 2
    assert known(stage, "Widget")[0] is new


@pytest.mark.parametrize(
    ("registered", "moving"),
    [
        (Action.ADD, {"listed", "added"}),
        (Action.UPDATE, {"updated"}),
        (Action.DELETE, {"deleted"}),
        (Action.ADD | Action.UPDATE, {"listed", "added", "updated"}),
    ],
)
@pytest.mark.parametrize("change", CHANGES)
async def test_only_registered_events_move_pods(
    staged: MakeStage, change: str, registered: Action, moving: set[str], autojump_clock: MockClock
) -> None:
    stage = staged(picky_plugin(("widgets.v1.example.com", Action.ALL)))
    stage.add(node("n"))
    (waiting,) = stage.refuse(PICKY)
    handler_of(stage.delivery, "Widget", "widgets.v1.example.com", registered)(CHANGES[change](widget("w")))
    assert stage.where(waiting) == ("backoff" if change in moving else "unschedulable")


async def test_a_new_device_class_takes_over_an_extended_resource_of_a_node(
    stage: Stage, autojump_clock: MockClock
) -> None:
    stage.add(node("n", allocatable={GPU: 1}), node("without"))
    take = handler_of(stage.delivery, "DeviceClass", Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
    _first, second, third = stage.add(*(pod(name, requests={GPU: 1}) for name in ("first", "second", "third")))
    assert isinstance(stage.attempt(), ScheduleResult)
    refusal = stage.attempt()
    assert isinstance(refusal, SchedulingFailure)
    assert refusal.message == f"0/2 nodes are available: 2 Insufficient {GPU}."
    take(Changes([Change("ADDED", None, device_class("gpus"))], "1"))
    assert stage.where(second) == "backoff"
    assert stage.where(third) == "active"
    refusal = stage.attempt()  # of the same signature as the others, queued before the class came
    assert isinstance(refusal, SchedulingFailure)
    assert refusal.message == f"0/2 nodes are available: 1 Insufficient {GPU}, 1 cannot allocate all claims."
    assert not stage.cache.is_assumed(third.uid)


async def test_a_device_class_of_another_resource_moves_no_pods(stage: Stage, autojump_clock: MockClock) -> None:
    stage.add(node("n"))
    take = handler_of(stage.delivery, "DeviceClass", Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE)
    (waiting,) = stage.refuse(pod("p", requests={GPU: 1}))
    take(Listed([device_class("nics", "example.com/nic")], "1"))
    assert stage.where(waiting) == "unschedulable"
    take(Changes([Change("MODIFIED", device_class("nics", "example.com/nic"), device_class("nics"))], "2"))
    assert stage.where(waiting) == "backoff"


class Licences(PluginBase):
    """Passes pods while there is a licence, and signs them, so that its verdicts are cached."""

    depends_on: ClassVar[frozenset[Input]] = frozenset({Input.NODE})

    @hookimpl
    def filter(self, nodes: NodeColumns) -> Verdicts:
        has_licence = bool(list(self.handle.objects("Licence")))
        return Verdicts.where(np.full(len(nodes), has_licence), unschedulable("no licence"))

    @hookimpl
    def sign(self, pod: Pod) -> tuple[()]:
        return ()

    @hookimpl
    def events_to_register(self) -> list[EventRegistration]:
        return []


@pytest.mark.parametrize(("kind", "expected"), [("Licence", ScheduleResult), ("Other", SchedulingFailure)])
async def test_the_signature_cache_is_dropped_when_a_kind_changes_that_signing_plugins_read(
    staged: MakeStage, kind: str, expected: type[Any], autojump_clock: MockClock
) -> None:
    stage = staged(Licences)
    stage.add(node("n"))
    take_licences = handler_of(stage.delivery, "Licence", "licences.v1.example.com", Action.ADD)
    take_others = handler_of(stage.delivery, "Other", "others.v1.example.com", Action.ADD)
    stage.add(pod("first"), pod("second"))
    assert isinstance(stage.attempt(), SchedulingFailure)
    if kind == "Licence":
        take_licences(Changes([Change("ADDED", None, widget("l"))], "1"))
    else:
        # A licence put into the cache like this is no event, so the signature cache stays as it is.
        stage.assembly.scheduler.object_cache.put("Licence", "l", "", widget("l"))
        take_others(Changes([Change("ADDED", None, widget("o"))], "1"))
        take_licences(Changes([], "2"))
    assert isinstance(stage.attempt(), expected)


async def test_a_new_version_without_other_changes_leaves_the_signature_cache_alone(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(Licences)
    stage.add(node("n"))
    take = handler_of(stage.delivery, "Licence", "licences.v1.example.com", Action.ADD)
    take(Listed([widget("l")], "1"))
    stage.add(pod("first"))
    assert isinstance(stage.attempt(), ScheduleResult)
    epoch = stage.assembly.scheduler.signatures.epoch
    again = AnyObject(metadata=ObjectMeta(name="l", resource_version="2", generation=2), spec={})
    take(Changes([Change("MODIFIED", widget("l"), again)], "2"))
    assert stage.assembly.scheduler.signatures.epoch == epoch
    labelled = AnyObject(metadata=ObjectMeta(name="l", resource_version="3", labels={"site": "north"}), spec={})
    take(Changes([Change("MODIFIED", again, labelled)], "3"))
    assert stage.assembly.scheduler.signatures.epoch == epoch + 1


async def test_a_deleted_licence_is_noticed_despite_the_signature_cache(
    staged: MakeStage, autojump_clock: MockClock
) -> None:
    stage = staged(Licences)
    stage.add(*(node(name) for name in ("k", "m", "n")))
    take = handler_of(stage.delivery, "Licence", "licences.v1.example.com", Action.ADD)
    take(Listed([widget("l")], "1"))
    stage.add(*(pod(name) for name in ("first", "second", "third")))
    assert isinstance(stage.attempt(), ScheduleResult)
    assert isinstance(stage.attempt(), ScheduleResult)
    take(Changes([Change("DELETED", widget("l"), None)], "2"))
    assert isinstance(stage.attempt(), SchedulingFailure)


@pytest.mark.parametrize("kind", ["Service", "ReplicaSet", "Namespace", "PodDisruptionBudget"])
async def test_kinds_read_outside_cached_evaluations_leave_the_signature_cache_alone(
    kind: str, stage: Stage, autojump_clock: MockClock
) -> None:
    """On a busy cluster these change all the time."""
    take = handler_of(stage.delivery, kind, kind.lower(), Action.ALL)
    stage.add(node("n", cpu=64))
    for i in range(3):
        stage.assume(pod(f"p{i}", labels={"app": "a"}, spread=[SPREAD]))
    epoch = stage.assembly.scheduler.signatures.epoch
    take(Changes([Change("ADDED", None, widget("new"))], "2"))
    assert stage.assembly.scheduler.signatures.epoch == epoch
    assert kind not in stage.assembly.scheduler.object_cache.dependencies.kinds
