import msgspec
import pytest

from trio_sched.plugin_api import Handle, KindNotWatched, PersistentVolume, unschedulable
from trio_sched.testing import FakeHandle, make_plugin, pod


def test_gates_are_kubernetes_defaults_unless_the_test_says_otherwise() -> None:
    handle = FakeHandle(gates={"NodeDeclaredFeatures": False, "MyOwnGate": True})
    assert not handle.feature_enabled("NodeDeclaredFeatures")
    assert handle.feature_enabled("MyOwnGate")
    assert handle.feature_enabled("PodLevelResources")
    with pytest.raises(KeyError):
        handle.feature_enabled("NoSuchGate")


def test_objects_of_unknown_kinds_are_none() -> None:
    handle: Handle = FakeHandle(known_objects={"Namespace": ["a"]}, clock=5.0)
    assert list(handle.objects("Namespace")) == ["a"]
    assert list(handle.objects("DeviceClass")) == []
    assert handle.now() == 5.0
    assert len(handle.nodes) == 0


async def test_bindings_and_activations_are_noted() -> None:
    handle = FakeHandle(bind_status=unschedulable("no"))
    assert await handle.bind(pod("p"), "n") == unschedulable("no")
    handle.activate([pod("q")])
    assert [(bound.name, node_name) for bound, node_name in handle.bound] == [("p", "n")]
    assert [activated.name for activated in handle.activated] == ["q"]


async def test_patches_are_noted_and_change_what_is_known() -> None:
    volume = msgspec.convert({"metadata": {"name": "pv", "annotations": {"a": "b"}}}, PersistentVolume)
    handle = FakeHandle(known_objects={"PersistentVolume": [volume]})
    before = handle.version("PersistentVolume")
    patch = {"metadata": {"annotations": {"a": None, "c": "d"}}}
    patched = await handle.patch("PersistentVolume", "pv", patch)
    assert patched.metadata.annotations == {"c": "d"}
    assert handle.object("PersistentVolume", "pv") is patched
    assert handle.patched == [("PersistentVolume", "pv", patch)]
    assert handle.version("PersistentVolume") != before
    with pytest.raises(LookupError):
        await handle.patch("PersistentVolume", "other", patch)
    handle.refusal = ValueError("no")
    with pytest.raises(ValueError, match="no"):
        await handle.patch("PersistentVolume", "pv", patch)


async def test_time_passes_while_a_plugin_waits() -> None:
    handle = FakeHandle(pending={"default/p": pod("p")})
    handle.while_waiting = handle.pending.clear
    found = handle.pending_pod("default", "p")
    assert found is not None
    assert found.pod == pod("p")
    assert await handle.changed("PersistentVolume", "pv", timeout_seconds=3)
    assert handle.now() == 3
    assert handle.pending_pod("default", "p") is None


def test_a_waiting_pod_is_allowed_when_the_last_plugin_says_so() -> None:
    handle = FakeHandle()
    waiting = handle.add_waiting(pod("p"), "A", "B")
    assert handle.waiting_pods() == {pod("p").uid: waiting}
    waiting.allow("A")
    assert not waiting.is_allowed
    waiting.allow("B")
    assert waiting.is_allowed
    assert not waiting.reject("A", "too late")


def test_a_waiting_pod_is_rejected_once() -> None:
    waiting = FakeHandle().add_waiting(pod("p"), "A")
    assert waiting.reject("A", "no")
    assert not waiting.reject("A", "no, again")
    assert waiting.rejection == ("A", "no")
    assert not waiting.is_allowed


def test_a_version_grows_with_every_change_of_its_kind_and_only_then() -> None:
    first, second = (msgspec.convert({"metadata": {"name": name}}, PersistentVolume) for name in "ab")
    handle = FakeHandle(known_objects={"PersistentVolume": [first]})
    seen = [handle.version("PersistentVolume"), handle.version("PersistentVolume")]
    handle.known_objects["PersistentVolume"] = [first, second]
    seen.append(handle.version("PersistentVolume"))
    handle.known_objects["PersistentVolume"] = [second]
    seen.append(handle.version("PersistentVolume"))
    handle.known_objects["StorageClass"] = []
    seen.append(handle.version("PersistentVolume"))
    assert seen == [1, 1, 2, 3, 3]
    assert handle.version("StorageClass") == 0


def test_a_handle_of_two_plugins_knows_what_either_watches() -> None:
    handle = FakeHandle()
    for name in ("InterPodAffinity", "DefaultPreemption"):
        make_plugin(name, handle=handle)
    assert list(handle.objects("Namespace")) == list(handle.objects("PodDisruptionBudget")) == []
    with pytest.raises(KindNotWatched, match="kind 'Service' is not watched"):
        handle.objects("Service")


@pytest.mark.parametrize(
    ("plugin", "kinds"),
    [
        ("DefaultPreemption", "PodDisruptionBudget"),
        ("DynamicResources", "DeviceClass"),
        ("InterPodAffinity", "Namespace"),
        ("NodeResourcesBalancedAllocation", "DeviceClass"),
        ("NodeResourcesFit", "DeviceClass"),
        ("NodeVolumeLimits", "CSIDriver CSINode PersistentVolume PersistentVolumeClaim StorageClass VolumeAttachment"),
        ("PodTopologySpread", "ReplicaSet ReplicationController Service StatefulSet"),
        (
            "VolumeBinding",
            "CSIDriver CSINode CSIStorageCapacity PersistentVolume PersistentVolumeClaim StorageClass",
        ),
        ("VolumeRestrictions", "PersistentVolumeClaim"),
        ("VolumeZone", "PersistentVolume PersistentVolumeClaim StorageClass"),
    ],
)
def test_built_in_plugins_watch_what_they_read(plugin: str, kinds: str) -> None:
    handle = FakeHandle(gates={"DRAExtendedResource": True})
    make_plugin(plugin, handle=handle)
    for kind in kinds.split():
        assert list(handle.objects(kind)) == []
