from collections.abc import Iterable
from typing import Any, ClassVar

import pytest
from plugin_base import PluginBase
from trio.testing import MockClock

from trio_sched.daemon.plugins.kind_mistakes import kind_mistakes
from trio_sched.daemon.watching.watched_kinds import kind_of
from trio_sched.engine.queue.queueing_hints import build_hint_table
from trio_sched.engine.registry.plugin_registry import PluginRegistry
from trio_sched.plugin_api import Action, CustomResource, Resource, hookimpl, on
from trio_sched.testing import NotConforming, check_conformance, make_plugin, pod, virtual_cluster
from trio_sched.testing.plugin_harness import make_profile

SEAT = CustomResource("example.com", "v1", "Seat")


def mistakes(watches: Iterable[Any] = (), writes: Iterable[Any] = (), events: Iterable[Any] = ()) -> list[str]:
    plugin = type("Some", (), {"watches": watches, "writes": dict.fromkeys(writes, ("patch",))})
    return list(kind_mistakes(plugin(), [one.event for one in events]))


def test_kinds_that_do_not_exist_are_named_with_the_one_that_is_meant() -> None:
    assert mistakes(watches=("Namspace",), writes=("Pods/status",)) == [
        "its watches name 'Namspace', which is no kind that trio-sched knows; did you mean 'Namespace'?",
        "its writes name 'Pods', which is no kind that trio-sched knows; did you mean 'Pod'?",
    ]


@pytest.mark.parametrize("kind", ["Secret", "CronJob", "Ingress"])
def test_a_kind_without_a_class_is_declared_and_no_other_is_suggested(kind: str) -> None:
    (problem,) = mistakes(watches=(kind,))
    assert problem == (
        f"its watches name {kind!r}, which is no kind that trio-sched knows; declare it with CustomResource, and use "
        "that here"
    )


@pytest.mark.parametrize(
    ("group", "kind", "resource", "api_version"),
    [
        ("", "Secret", "secrets.v1", "v1"),
        ("batch", "CronJob", "cronjobs.v1.batch", "batch/v1"),
        ("networking.k8s.io", "IngressClass", "ingressclasses.v1.networking.k8s.io", "networking.k8s.io/v1"),
        (
            "gateway.networking.k8s.io",
            "Gateway",
            "gateways.v1.gateway.networking.k8s.io",
            "gateway.networking.k8s.io/v1",
        ),
        ("networking.k8s.io", "NetworkPolicy", "networkpolicies.v1.networking.k8s.io", "networking.k8s.io/v1"),
    ],
)
def test_kinds_of_kubernetes_can_be_declared(group: str, kind: str, resource: str, api_version: str) -> None:
    declared = CustomResource(group, "v1", kind)
    assert (declared.resource, declared.api_version) == (resource, api_version)
    assert mistakes(watches=(declared, resource), writes=(declared, declared.status)) == []
    watch = kind_of(resource)
    assert watch is not None
    assert watch[1].api_version == api_version


def test_events_of_what_does_not_exist_are_named() -> None:
    assert mistakes(events=[on("Nodes", Action.ADD)]) == [
        "events_to_register names 'Nodes', which is no kind that trio-sched knows; did you mean 'Node'?"
    ]


@pytest.mark.parametrize(
    ("resource", "action", "never"),
    [
        (Resource.UNSCHEDULABLE_POD, Action.UPDATE_NODE_LABEL, "Action.UPDATE_NODE_LABEL"),
        (Resource.NODE, Action.ADD | Action.UPDATE_POD_LABEL, "Action.UPDATE_POD_LABEL"),
        (Resource.CSI_NODE, Action.UPDATE_NODE_TAINT, "Action.UPDATE_NODE_TAINT"),
    ],
)
def test_updates_that_never_happen_are_named(resource: str, action: Action, never: str) -> None:
    assert mistakes(events=[on(resource, action)]) == [
        f"events_to_register names {never} of {resource}, which never happens; take it out"
    ]


def test_what_exists_is_no_mistake() -> None:
    registrations = [
        on(Resource.NODE, Action.UPDATE),
        on(Resource.WILDCARD, Action.ALL),
        on(Resource.POD, Action.DELETE | Action.UPDATE_POD_LABEL),
        on("Namespace", Action.ADD | Action.UPDATE),
        on("seats.v1.example.com", Action.ALL),
        on(SEAT, Action.ALL),
    ]
    written = ("Pod/eviction", SEAT, SEAT.status, "PersistentVolume")
    assert mistakes(("Service", SEAT, "seats.v1.example.com"), written, registrations) == []


@pytest.mark.parametrize("name", sorted(PluginRegistry.discover().names))
def test_the_plugins_of_this_distribution_have_none(name: str) -> None:
    profile = make_profile([name])
    events = build_hint_table(profile).events_of(name)
    assert list(kind_mistakes(profile.plugins[name], events)) == []


class Writer(PluginBase):
    writes: ClassVar[dict[str, tuple[str, ...]]] = {"Node": ("patch",)}

    def __init__(self, args: None, handle: Any) -> None:
        self.handle = handle

    @hookimpl
    async def pre_bind(self, pod: Any) -> None:
        changes = {"metadata": {"annotations": {"seen": "yes"}}}
        await self.handle.patch("Pod", pod.name, changes, namespace=pod.namespace)


WRITES = 'it may not patch Pod in a cluster, because its writes do not say so, .*; add "Pod": \\("patch",\\) to them'


async def test_a_write_that_is_not_declared_is_logged_once(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with virtual_cluster(nodes=1, plugins=[Writer]) as cluster:
        for name in ("a", "b"):
            await cluster.create(pod(name))
            await cluster.wait_scheduled(name)
    lines = [record.getMessage() for record in caplog.records if "plugin Writer: " in record.getMessage()]
    assert len(lines) == 1
    assert "plugin Writer: it may not patch Pod in a cluster" in lines[0]


async def test_a_write_that_is_declared_is_not_logged(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Declared(Writer):
        writes: ClassVar[dict[str, tuple[str, ...]]] = {"Pod": ("patch",)}

    async with virtual_cluster(nodes=1, plugins=[Declared]) as cluster:
        await cluster.create(pod("a"))
        await cluster.wait_scheduled("a")
    assert "its writes do not say so" not in caplog.text


def test_conformance_finds_it_too() -> None:
    with pytest.raises(NotConforming, match=WRITES):
        check_conformance(Writer)


def test_conformance_finds_kinds_that_do_not_exist() -> None:
    class Typo(PluginBase):
        watches = ("Namspace",)

        @hookimpl
        def filter_node(self) -> None: ...

    assert make_plugin(Typo) is not None
    with pytest.raises(NotConforming, match="its watches name 'Namspace'"):
        check_conformance(Typo)
