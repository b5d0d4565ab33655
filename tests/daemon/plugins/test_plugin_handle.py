import re
from typing import Any, ClassVar

import msgspec
import pytest
import trio
from kind_handlers import handler_of
from stage import Assemble
from stored_objects import Store
from trio.testing import MockClock

from trio_sched.daemon.assembly import Assembly
from trio_sched.engine.hooks.bound_hooks import BoundHook
from trio_sched.objects.any_object import AnyObject
from trio_sched.objects.changes import Change, Changes, Listed
from trio_sched.objects.metadata import ObjectMeta
from trio_sched.objects.storage.persistent_volume import PersistentVolumeClaim
from trio_sched.plugin_api import Action, Code, CycleState, Handle, KindNotWatched, QueuedPod, WriteConflict, hookimpl
from trio_sched.simulator import ApiServer
from trio_sched.simulator.registry.lifecycle import create
from trio_sched.testing import node, pod

WIDGETS = "widgets.v1.example.com"


@pytest.fixture
def curious() -> type[Any]:
    """A plugin that does nothing but store its handle on the class."""

    class Curious:
        name: ClassVar[str] = "Curious"
        handle: ClassVar[Handle]
        watches: ClassVar[tuple[str, ...]] = (WIDGETS,)

        def __init__(self, args: None, handle: Handle) -> None:
            type(self).handle = handle

        @hookimpl
        def reserve(self) -> None: ...

    return Curious


@pytest.fixture
def assembly(assembled: Assemble, curious: type[Any]) -> Assembly:
    return assembled(curious, gates={"GenericWorkload": True, "SchedulerPopFromBackoffQ": False})


@pytest.fixture
def handle(assembly: Assembly, curious: type[Any]) -> Handle:
    return curious.handle  # type: ignore[no-any-return]


async def test_a_plugin_knows_its_profile_its_gates_and_the_time(handle: Handle, autojump_clock: MockClock) -> None:
    assert handle.profile_name == "default-scheduler"
    assert handle.feature_enabled("GenericWorkload")
    assert not handle.feature_enabled("SchedulerPopFromBackoffQ")
    await trio.sleep(42)
    assert handle.now() == trio.current_time() == 42


async def test_nodes_are_those_of_now(assembly: Assembly, handle: Handle) -> None:
    assert len(handle.nodes) == 0
    assembly.delivery.nodes_changed(Listed([node("n"), node("m")], "1"))
    assert list(handle.nodes.names) == ["n", "m"]
    assembly.scheduler.cache.assume(pod("p", cpu=1), "m")
    assert handle.nodes.requested[0].tolist() == [0, 1000]


async def test_reading_a_kind_inside_a_cached_evaluation_records_the_dependency(
    assembly: Assembly, handle: Handle
) -> None:
    asked = assembly.scheduler.object_cache.dependencies
    assert list(handle.objects("Namespace")) == []
    with asked.recording():
        assert list(handle.objects(WIDGETS)) == []
        assert handle.object("Service", "s") is None
    assert asked.kinds == {WIDGETS, "Service"}
    widget = AnyObject(metadata=ObjectMeta(name="w"))
    handler_of(assembly.delivery, WIDGETS, WIDGETS, Action.ADD)(Listed([widget], "1"))
    assert list(handle.objects(WIDGETS)) == [widget]
    assert handle.object(WIDGETS, "w") is widget
    assert handle.object(WIDGETS, "w", "elsewhere") is None


async def test_reading_a_kind_that_nothing_watches_is_an_error_that_says_how_to_watch_it(handle: Handle) -> None:
    text = (
        "kind 'gadgets.v1.example.com' is not watched, so its objects are not known; write "
        'watches = ("gadgets.v1.example.com",) in the class of the plugin that reads them, or register for its events'
    )
    for read in (
        lambda: handle.objects("gadgets.v1.example.com"),
        lambda: handle.object("gadgets.v1.example.com", "g"),
        lambda: handle.version("gadgets.v1.example.com"),
    ):
        with pytest.raises(KindNotWatched) as caught:
            read()
        assert str(caught.value).startswith(text)
    with pytest.raises(KindNotWatched, match=re.escape(text)):
        await handle.changed("gadgets.v1.example.com", "g", timeout_seconds=1)


@pytest.mark.parametrize(
    ("kind", "fix"),
    [
        ("pod", "did you mean 'Pod'?"),
        ("storage.k8s.io/CSINode", "did you mean 'CSINode'?"),
        ("Servce", "did you mean 'Service'?"),
        (
            "Foo",
            "there is no kind 'Foo' that trio-sched knows; declare it with CustomResource",
        ),
    ],
)
async def test_a_kind_that_cannot_be_meant_is_said(handle: Handle, kind: str, fix: str) -> None:
    with pytest.raises(KindNotWatched, match=re.escape(fix)):
        handle.objects(kind)


async def test_nothing_is_known_of_any_kind_before_all_plugins_are_loaded(assembled: Assemble) -> None:
    class Early:
        name: ClassVar[str] = "Early"
        found: ClassVar[list[Any]]

        def __init__(self, args: None, handle: Handle) -> None:
            type(self).found = list(handle.objects("gadgets.v1.example.com"))

        @hookimpl
        def reserve(self) -> None: ...

    assembled(Early)
    assert Early.found == []


async def test_preemption_may_be_tried_while_nothing_watches_disruption_budgets(
    assembled: Assemble, curious: type[Any]
) -> None:
    assembled(curious, bare=True)
    assert curious.handle.dry_run_preemption(pod("p"), CycleState(), [], 1).candidates == {}


async def test_waiting_pods_can_be_listed_allowed_and_rejected(
    assembly: Assembly, handle: Handle, autojump_clock: MockClock
) -> None:
    assert handle.waiting_pods() == {}
    waits, waiting = pod("p"), assembly.binding.waiting
    waiting.add(waits, {"Curious": 60.0})
    (uid,) = handle.waiting_pods()
    assert uid == waits.uid
    assert handle.waiting_pods()[uid].pending_plugins == {"Curious"}
    handle.waiting_pods()[uid].allow("Curious")
    assert await waiting.wait_on_permit(uid) is None
    assert handle.waiting_pods() == {}


async def test_activated_pods_are_queued_and_the_scheduler_is_woken(
    assembly: Assembly, handle: Handle, autojump_clock: MockClock
) -> None:
    queue = assembly.scheduler.queue
    waits = pod("p")
    assembly.delivery.pods_changed(Listed([waits], "1"))
    info = queue.pop()
    assert info is not None
    info.unschedulable_plugins = {"Curious"}
    queue.add_unschedulable(info, now=handle.now())
    await assembly.pods_available.wait()  # the pod itself had rung
    assert not queue.has_next

    handle.activate([waits, pod("unknown")])
    assert queue.pop() is info
    with trio.fail_after(1):
        await assembly.pods_available.wait()


async def test_a_plugin_can_bind_through_the_api_server(
    handle: Handle, store: Store, autojump_clock: MockClock
) -> None:
    await store.create_node(node("n"))
    created = await store.create_pod(pod("p"))
    assert await handle.bind(created, "n") is None
    assert store.pod("p")["spec"]["nodeName"] == "n"


async def test_binding_to_an_empty_node_name_is_an_error(
    handle: Handle, store: Store, autojump_clock: MockClock
) -> None:
    refusal = await handle.bind(await store.create_pod(pod("p")), "")
    assert refusal is not None
    assert refusal.code == Code.ERROR
    assert "target.name: Required value" in refusal.message


CLAIM_SPEC = {
    "storageClassName": "fast",
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
}
CLAIM = {"metadata": {"name": "data", "namespace": "default"}, "spec": CLAIM_SPEC}


def show(assembly: Assembly, change: str, claim: PersistentVolumeClaim) -> None:
    """As if a watch of claims had delivered it."""
    take = handler_of(assembly.delivery, "PersistentVolumeClaim", "PersistentVolumeClaim", Action.ADD)
    if change == "ADDED":
        take(Listed([claim], "1"))
    else:
        take(Changes([Change(change, claim, None if change == "DELETED" else claim)], "2"))


async def test_objects_are_patched_only_at_the_given_resource_version(
    handle: Handle, api: ApiServer, autojump_clock: MockClock
) -> None:
    stored = create(api.state, api.state.types.core("persistentvolumeclaims"), "default", dict(CLAIM))
    patch = {"metadata": {"annotations": {"a": "b"}, "resourceVersion": str(stored.version)}}
    patched = await handle.patch("PersistentVolumeClaim", "data", patch, namespace="default")
    assert isinstance(patched, PersistentVolumeClaim)
    assert patched.metadata.annotations == {"a": "b"}
    assert patched.metadata.resource_version == str(stored.version + 1)
    with pytest.raises(WriteConflict, match="the object has been modified"):
        await handle.patch(
            "PersistentVolumeClaim", "data", {"metadata": {**patch["metadata"], "annotations": {}}}, namespace="default"
        )
    with pytest.raises(LookupError, match="'Nonsense' is no kind"):
        await handle.patch("Nonsense", "data", patch)


async def test_waiting_for_a_change_of_one_object(
    assembly: Assembly, handle: Handle, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    claim = msgspec.convert(CLAIM, PersistentVolumeClaim)
    seen: list[tuple[float, bool]] = []

    async def wait(name: str, timeout_seconds: float) -> None:
        came = await handle.changed("PersistentVolumeClaim", name, namespace="default", timeout_seconds=timeout_seconds)
        seen.append((trio.current_time(), came))

    for name, seconds in (("data", 100.0), ("data", 3.0), ("other", 7.0)):
        nursery.start_soon(wait, name, seconds)
    await trio.sleep(5)
    assert seen == [(3.0, False)]
    show(assembly, "ADDED", claim)
    await trio.sleep(5)
    assert seen == [(3.0, False), (5.0, True), (7.0, False)]
    nursery.start_soon(wait, "data", 100.0)
    await trio.sleep(5)
    show(assembly, "DELETED", claim)
    await trio.sleep(5)
    assert seen[-1] == (15.0, True)


async def test_waiting_for_a_change_of_any_object_of_a_kind(
    assembly: Assembly, handle: Handle, nursery: trio.Nursery, autojump_clock: MockClock
) -> None:
    seen: list[tuple[str, float, bool]] = []

    async def wait(kind: str, timeout_seconds: float) -> None:
        came = await handle.changed(kind, timeout_seconds=timeout_seconds)
        seen.append((kind, trio.current_time(), came))

    nursery.start_soon(wait, "PersistentVolumeClaim", 100.0)
    nursery.start_soon(wait, "PersistentVolume", 10.0)
    await trio.sleep(5)
    show(assembly, "ADDED", msgspec.convert(CLAIM, PersistentVolumeClaim))
    await trio.sleep(10)
    assert seen == [("PersistentVolumeClaim", 5.0, True), ("PersistentVolume", 10.0, False)]


async def test_the_version_of_a_kind_changes_with_every_change(
    assembly: Assembly, handle: Handle, autojump_clock: MockClock
) -> None:
    claim = msgspec.convert(CLAIM, PersistentVolumeClaim)
    versions = [(handle.version("PersistentVolumeClaim"), handle.version("PersistentVolume"))]
    for change in ("ADDED", "DELETED", "ADDED"):
        show(assembly, change, claim)
        versions.append((handle.version("PersistentVolumeClaim"), handle.version("PersistentVolume")))
    claims, volumes = zip(*versions, strict=True)
    assert len(set(claims)) == 4
    assert len(set(volumes)) == 1


async def test_pending_pods_are_those_without_a_node(
    assembly: Assembly, handle: Handle, autojump_clock: MockClock
) -> None:
    waits, runs = pod("p"), pod("r", node_name="n")
    assert handle.pending_pod("default", "p") is None
    assembly.delivery.pods_changed(Listed([waits, runs], "1"))
    assembly.scheduler.cache.assume(waits, "n")
    found = handle.pending_pod("default", "p")
    assert found is not None
    assert found.pod is waits
    assert handle.pending_pod("default", "r") is None
    assembly.delivery.pods_changed(Changes([Change("DELETED", waits, None)], "2"))
    assert handle.pending_pod("default", "p") is None


@pytest.mark.parametrize("name", ["", ".", "..", "a\ud800", "x" * 254])
async def test_requests_about_no_object_are_not_sent(
    handle: Handle, api: ApiServer, autojump_clock: MockClock, name: str
) -> None:
    create(api.state, api.state.types.core("persistentvolumeclaims"), "default", dict(CLAIM))
    kind = "PersistentVolumeClaim"
    for request in (handle.read, handle.delete):
        with pytest.raises(LookupError, match="no PersistentVolumeClaim can be called"):
            await request(kind, name, namespace="default")
        with pytest.raises(LookupError, match="no namespace can be called"):
            await request(kind, "data", namespace=["default"])
    with pytest.raises(LookupError, match="give the name"):
        await handle.patch(kind, name, {}, namespace="default")
    assert api.store.get("persistentvolumeclaims", "default/data") is not None


async def test_what_is_no_pod_is_not_activated(handle: Handle) -> None:
    with pytest.raises(TypeError, match=r"handle\.activate takes pods, not str"):
        handle.activate(["default/p"])  # type: ignore[list-item]


async def test_the_queue_is_sorted_again_once_when_the_task_that_asks_waits(assembly: Assembly, handle: Handle) -> None:
    shares, asked = {"a": 1, "b": 2}, list[str]()

    def by_share(queued: QueuedPod) -> int:
        asked.append(queued.pod.name)
        return shares[queued.pod.name]

    queue = assembly.scheduler.queue
    queue.install_queueing(queue.profiles, BoundHook("ByShare", "queue_sort", by_share))
    for name in shares:
        queue.add(pod(name), now=0.0)
    asked.clear()
    shares["a"] = 3
    handle.sort_queue()
    handle.sort_queue()
    assert [info.pod.name for info in queue.active] == ["a", "b"]
    await trio.sleep(0.01)
    assert [info.pod.name for info in queue.active] == ["b", "a"]
    assert sorted(asked) == ["a", "b"]
